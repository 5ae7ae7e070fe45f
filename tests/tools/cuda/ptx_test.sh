#!/usr/bin/env bash
# What tools/cuda/check_ptx.py says of right machine code, and of faults. They are a stack, narrow loads, a kernel that is gone
# and divisions in inner loops. Others are products of warpgroups that have to wait, registers of roles that ptxas ignores, and
# kernels that cost more than their budget. Needs nvcc.
set -euo pipefail

check=$PWD/tools/cuda/check_ptx.py
if ! ls "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" >/dev/null 2>&1; then
  [[ $(python3 "$check") == *"not run: no nvcc"* ]] || { echo "expected that it says it was not run"; exit 1; }
  echo "skipped: no CUDA toolkit (CUDA_PATH, /usr/local/cuda)"
  exit 0
fi
work=$TEST_TMPDIR/work
mkdir -p "$work"/{good,bad,divides,waits,ignores,budgets}
failed=0
expect() { # what is printed, a part of it that must be there
  [[ $1 == *"$2"* ]] || { echo "expected: $2"; echo "got: $1"; failed=1; }
}

cat >"$work/good/fill.cu" <<'CU'
__global__ void fill(float* p) { p[threadIdx.x] = 1; }
CU
expect "$(python3 "$check" --folder "$work/good")" "check_ptx: 1 kernels in 1 files, 0 complaints"

cat >"$work/bad/softmax.cu" <<'CU'
template <class T> __global__ void forward_kernel(const T* in, T* out) { out[threadIdx.x] = in[threadIdx.x] * T(2); }
template <class T> __global__ void backward_kernel(const float4* in, float4* out) { out[threadIdx.x] = in[threadIdx.x]; }
template __global__ void forward_kernel<float>(const float*, float*);
template __global__ void backward_kernel<float>(const float4*, float4*);
CU
cat >"$work/bad/stack.cu" <<'CU'
__global__ void keeps(const int* in, int* out) {
  int list[64];
  for (int i = 0; i < 64; ++i) list[in[i] & 63] = i;
  out[threadIdx.x] = list[in[threadIdx.x] & 63];
}
CU
code=0
printed=$(python3 "$check" --folder "$work/bad") || code=$?
[[ $code == 1 ]] || { echo "exit code: got $code, expected 1"; failed=1; }
expect "$printed" "forward_kernelIfEvPKT_PS0_ has no 16-byte load"
expect "$printed" "no kernel named ...forward_kernelINS1_10BfloatBits..."
expect "$printed" "keepsPKiPi has 256 bytes of stack"
expect "$printed" "3 kernels in 2 files, "
# This softmax.cu has none of the kernels that have budgets, either.
complaints=$(grep '^check_ptx: .*\.cu: ' <<<"$printed" | grep -vc 'budgets\.py') || true
[[ $complaints == 4 ]] || { echo "expected 4 complaints: $printed"; failed=1; }
[[ $printed != *backward_kernelIfEv* ]] || { echo "16-byte loads were not seen: $printed"; failed=1; }

# Sums that are used while a product of the warpgroup writes them, and those that are not.
for use in early late; do
  cat <<CU
__global__ void ${use}_kernel(float* out, unsigned long long tile) {
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int i = 0; i < 2; ++i) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %4, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(tile));
    $([[ $use == late ]] || echo 'd[0] += 1;')
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (float& x : d) asm volatile("" : "+f"(x) :: "memory");
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
CU
done >"$work/waits/waits.cu"
printed=$(python3 "$check" --folder "$work/waits") && { echo "waits were not seen: $printed"; failed=1; }
expect "$printed" "waits.cu: _Z12early_kernelPfy: "
[[ $printed != *late_kernel* ]] || { echo "no waits there: $printed"; failed=1; }

# Without launch bounds ptxas does not know how many registers a role may give away.
cat >"$work/ignores/ignores.cu" <<'CU'
__global__ void roles(float* p) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  p[threadIdx.x] = 1;
}
CU
printed=$(python3 "$check" --folder "$work/ignores") && { echo "registers that are ignored were not seen: $printed"; failed=1; }
expect "$printed" "ignores.cu: 'setmaxnreg' ignored"

# A copy of the check with a budget of its own. A thread copies four numbers in a turn, with an exponential and a reciprocal each.
# The path for an address that is not aligned is longer, and does not count.
cp "${check%/*}"/*.py "$work/budgets"
mkdir "$work/budgets/kernels"
cat >"$work/budgets/kernels/turns.cu" <<'CU'
__global__ void turns_kernel(const float* in, float* out, int n, bool aligned) {
  for (int i = (blockIdx.x * 256 + threadIdx.x) * 4; i < n; i += gridDim.x * 1024) {
    float x[4];
    if (aligned) *(float4*)x = *(const float4*)(in + i);
    else for (int j = 0; j < 4; ++j) x[j] = in[i + j];
    for (int j = 0; j < 4; ++j) x[j] = __frcp_rn(1 + __expf(x[j]));
    if (aligned) *(float4*)(out + i) = *(float4*)x;
    else for (int j = 0; j < 4; ++j) out[i + j] = x[j];
  }
}
__global__ void products_kernel(const float* in, float* out, int n) {
  __shared__ float shared[256];
  shared[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) sum = fmaf(shared[i & 255], sum, 2.f);
  out[threadIdx.x] = sum;
}
CU
budgets() { # the rows of the table
  python3 - "$work/budgets/budgets.py" "$1" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
text = re.sub(r"(BUDGETS = \[Budget\(\*row\) for row in \(\n).*?\n\)\]", lambda m: m[1] + sys.argv[2] + "\n)]", text, flags=re.S)
open(sys.argv[1], "w").write(text)
PY
  python3 "$work/budgets/check_ptx.py" --folder "$work/budgets/kernels"
}
printed=$(budgets '("turns.cu", "turns_kernel", 4, 99, 0, 200, 8, 0, 0, 0), ("turns.cu", "products_kernel", 0, 99, 1024, 20, 0, 0, 1, 1),') ||
  { echo "within its budget: $printed"; failed=1; }
expect "$printed" ", 8 special, 0 conversions: "
expect "$printed" "1024 B shared"
expect "$printed" "1.00 reads of shared memory a product"
printed=$(budgets '("turns.cu", "turns_kernel", 4, 2, 0, 9, 7, 0, 0, 0), ("turns.cu", "products_kernel", 0, 99, 1000, 20, 0, 0, 0, 2), ("turns.cu", "gone", 1, 1, 0, 1, 0, 0, 0, 0),') &&
  { echo "more than the budget was not seen: $printed"; failed=1; }
expect "$printed" "has 8 special functions a turn, expected at most 7 (tools/cuda/budgets.py)"
expect "$printed" " registers, expected at most 2 "
expect "$printed" " instructions a turn, expected at most 9 "
expect "$printed" "has 1024 bytes of shared memory, expected at most 1000 "
expect "$printed" "has 1 reads of shared memory a turn, expected at most 0 "
expect "$printed" "has 1 products a turn, expected at least 2 "
expect "$printed" "no kernel named ...gone... (tools/cuda/budgets.py)"
expect "$printed" "7 complaints"

# A division is nothing before a loop, and for each task of a block; for each element, and in a sum, it is.
cat >"$work/divides/divides.cu" <<'CU'
#include <cstdint>
__global__ void before_kernel(float* p, int64_t n, int64_t d) {
  const int64_t from = (threadIdx.x + n) / d;
  for (int64_t i = from; i < n; i += 7) p[i] = 1;
}
__global__ void tasks_kernel(float* p, int64_t tasks, int64_t d) {
  __shared__ float s[32];
  for (int64_t t = blockIdx.x; t < tasks; t += gridDim.x) {
    const int64_t row = t / d, column = t % d;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < column; i += 32) sum += p[row + i];
    s[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) p[t] = s[0] + s[1];
    __syncthreads();
  }
}
__global__ void elements_kernel(float* p, int64_t n, int64_t d) {
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) p[i] = static_cast<float>(i / d);
}
__global__ void windows_kernel(float* p, int64_t n, int64_t d) {
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    float sum = 0;
    for (int64_t k = 0; k < d; ++k) sum += p[i + k];
    p[i / d] = sum;
  }
}
__global__ void sums_kernel(float* p, int n, int d) {
  __shared__ float s[32];
  for (int t = blockIdx.x; t < n; t += gridDim.x) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += p[i % d];
    s[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) p[t] = s[0] / s[1];
    __syncthreads();
  }
}
__device__ __noinline__ int64_t rest_of(int64_t i, int64_t d) { return i % d + 1; }
__device__ __noinline__ int64_t through(int64_t i, int64_t d) { return rest_of(i * i, d) * i; }
__global__ void calls_kernel(float* p, int64_t n, int64_t d) {
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) p[through(i, d)] = 1;
}
__device__ __noinline__ float harmless(float x, float y) { return x / y + 1; }
__global__ void harmless_kernel(float* p, int64_t n, float d) {
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) p[i] = harmless(p[i], d);
}
CU
code=0
printed=$(python3 "$check" --folder "$work/divides" --counts) || code=$?
[[ $code == 1 ]] || { echo "exit code: got $code, expected 1"; failed=1; }
for name in elements windows sums calls; do
  [[ $printed =~ ${name}_kernel[A-Za-z]*\ has\ [1-9][0-9]*\ integer\ divisions ]] ||
    { echo "expected divisions in ${name}_kernel: $printed"; failed=1; }
done
expect "$printed" "7 kernels in 1 files, 4 complaints"
[[ $printed =~ tasks_kernel[^$'\n']*divisions\ 0\ in\ inner\ loops\ of\ [1-9] ]] ||
  { echo "expected divisions outside of inner loops in tasks_kernel: $printed"; failed=1; }
exit $failed
