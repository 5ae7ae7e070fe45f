#!/usr/bin/env bash
# ./tools/step_kernel steps through a block. It shows what threads read and write, shared memory at barriers, and where every thread
# stands. It shows a planted race, a barrier that not all threads reach, and dynamic shared memory. It says so where there is
# nothing to step through.
# usage: step_kernel_test.sh step_kernel.py sum.cu LIBRARY...
set -euo pipefail

tool=$1 sum=$2 work=${TEST_TMPDIR:-$(mktemp -d)}
shift 2
libraries=()
for file in "$@"; do
  case $file in *.a | *.lo) libraries+=(--library "$file") ;; esac
done
failed=0
# steps NAME PROGRAM OPTIONS...: what it says is in $work/NAME.
steps() {
  local name=$1 program=$2
  shift 2
  python3 "$tool" --root "$PWD" "${libraries[@]}" --source "$program" "$@" >"$work/$name" 2>&1 || echo "exit code $?" >>"$work/$name"
}
expect() {
  grep -qE -- "$2" "$work/$1" || {
    echo "FAILED: $1 did not say: $2"
    failed=1
  }
}
line() { grep -n -- "$1" "$2" | head -1 | cut -d: -f1; }

steps sum "$sum" --do 'n;n;t;w;b;s;b;s part;w;t 5;l;c;f y[0] =;p;t 99;g 3;e;B;q;n'
copy=$(line 'part\[i\] = x\[i\]' "$sum") tree=$(line 'part\[i\] +=' "$sum")
expect sum '^  the sum is 2080$'
expect sum '^kernel sum_kernel <<<\(1, 1, 1\), \(64, 1, 1\), 0>>>, block \(0, 0, 0\): 838 steps of 64 threads$'
expect sum "^    0  thread 0 +sum.cu:$copy +reads x\[0\]: 1\$"
expect sum "^    1  thread 0 +sum.cu:$copy +writes part\[0\] = 1\$"
expect sum "^    2  thread 0 +sum.cu:$((copy + 1)) +comes to a barrier\$"
expect sum "^    1 thread waits at the barrier of sum.cu:$((copy + 1)): 0\$"
expect sum '^   63 threads not started: 1-63$'
expect sum '^  192  the block .*the barrier opens$'
expect sum '^    48: 49\+ 50\+ 51\+'
# Half of the sums: 1 + 33 and so on, and the values before.
expect sum '^ +0: 34\+ 36\+ 38\+'
expect sum '^ +32: +33 +34 +35'
expect sum "^  +64 threads may go on behind the barrier of sum.cu:$((tree + 1)): 0-63\$"
expect sum "^ +[0-9]+  thread 5 +sum.cu:$tree +reads part\[5\]: 44\$"
expect sum "^=> +$tree  .*part\[i\] \+="
expect sum "^  sum_kernel at sum.cu:$tree\$"
expect sum '^ +[0-9]+  thread 0 .*writes y\[0\] = 2080$'
expect sum '^ +[0-9]+  thread 0 .*reads part\[0\]: 2080$'
expect sum '^no such thread: 99 \(there are 0 to 63\)$'
expect sum '^  837  thread 63 +has ended$'
[[ $(grep -c 'the barrier opens' "$work/sum") -eq 3 ]] || { echo "FAILED: three barriers were looked at" && failed=1; }

# The barrier inside of the loop is gone.
sed "$((tree + 1))d" "$sum" >"$work/race.cu"
steps race "$work/race.cu" --do 'f RACE;c'
expect race "^ +[0-9]+  thread 1 +race.cu:$tree +! RACE on __shared__ part"
expect race "^  sum_kernel at race.cu:$tree\$"
expect race '^  \(the program ended with exit code 4\)$'

# Half of the threads reach another barrier.
sed 's/^    __syncthreads();/    if (i < 32)\n      __syncthreads();\n    else\n      __syncthreads();/' "$sum" >"$work/divergent.cu"
steps divergent "$work/divergent.cu" --do 'w;f DIVERGENT;w'
expect divergent '^1 fault, the first one at step [0-9]+: DIVERGENT BARRIER: thread \(32,0,0\)'

# Dynamic shared memory, of whole numbers, not filled in at its end; the second block of the second launch.
cat >"$work/dynamic.cu" <<'END'
#include "runtime/cuda/gpu.h"
__global__ void fill(int* y, int from) {
  int* all = ramet::dynamic_shared<int>();
  if (threadIdx.x < 3) all[threadIdx.x] = from + static_cast<int>(blockIdx.x);
  __syncthreads();
  atomicAdd(y, all[threadIdx.x % 3]);
}
int main() {
  int* y = nullptr;
  if (cudaMalloc(&y, 4) != cudaSuccess || cudaMemset(y, 0, 4) != cudaSuccess) return 1;
  for (int from = 10; from < 40; from += 10) ramet::launch(fill, 2, 4, 16, nullptr, y, from);
  return cudaDeviceSynchronize();
}
END
steps dynamic "$work/dynamic.cu" --launch 1 --block 1 --kernel fil --do 'b;s;f atomic;e'
expect dynamic '^kernel fill <<<\(2, 1, 1\), \(4, 1, 1\), 16>>>, block \(1, 0, 0\)'
expect dynamic '^ +0: 21\+ 21\+ 21\+ +\.$'
expect divergent "^ +32 threads wait at the barrier of divergent.cu:$((tree + 2)): 0-31\$"
expect dynamic 'writes at once \(atomic\) y\[0\] = '

steps none "$sum" --kernel product --do n
expect none '^  sum_kernel <<<\(1, 1, 1\), \(64, 1, 1\)>>>$'
expect none '^step_kernel: no such launch or block; the program launched:$'
expect none '^exit code 1$'
echo 'int main() { return x; }' >"$work/broken.cu"
steps broken "$work/broken.cu" --do n
expect broken '^step_kernel: broken.cu does not compile:$'
[[ $failed -eq 0 ]] || { tail -n +1 "$work"/{sum,race,divergent,dynamic,none,broken} && exit 1; }
echo "OK: a kernel is stepped through"
