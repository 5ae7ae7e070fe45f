#!/usr/bin/env bash
# A debugger can step through a kernel on an emulated GPU. The test uses a breakpoint at a line of the .cu file, conditional on
# thread and block. It checks the values there, the next line, and where the block's other threads stand.
# usage: gdb_test.sh PROGRAM threads_gdb.py stepping.cu
set -euo pipefail

if ! command -v gdb >/dev/null; then
  echo "skipped: no gdb here (Debian package gdb)"
  exit 0
fi
program=$1 commands=$2 source=$3
line() { grep -n "place: $1" "$source" | cut -d: -f1; }
write=$(line write) read=$(line read)
export RAMET_EMULATED_STREAMS=eager RAMET_EMULATED_WORKERS=1

# Where a process may not trace another, gdb cannot do anything.
if ! grep -q '^Breakpoint 1, ' <(gdb -q -nx -batch -ex 'break main' -ex run "$program" 2>&1); then
  echo "skipped: gdb cannot run a program here:"
  gdb -q -nx -batch -ex 'break main' -ex run "$program" 2>&1 | tail -5
  exit 0
fi

gdb -q -nx -batch -ex 'set pagination off' -ex 'set breakpoint pending off' -ex "source $commands" \
  -ex "break stepping.cu:$write if threadIdx.x == 3 && blockIdx.x == 1" -ex run \
  -ex 'print threadIdx' -ex 'print blockIdx.x' -ex 'print own' -ex next -ex 'print tile[3]' \
  -ex next -ex 'print threadIdx.x' \
  -ex delete -ex "break stepping.cu:$read if threadIdx.x == 5" -ex continue \
  -ex 'print tile' -ex 'cuda threads' -ex 'cuda thread 6' \
  -ex delete -ex continue "$program" >"$TEST_TMPDIR/said" 2>&1 || true

failed=0
expect() {
  grep -qE -- "$1" "$TEST_TMPDIR/said" || {
    echo "FAILED: gdb did not say: $1"
    failed=1
  }
}
expect "turn .* at .*stepping\.cu:$write\$"
expect '^\$1 = \{x = 3, y = 0, z = 0\}$'
expect '^\$2 = 1$'
expect '^\$3 = 11$'
expect '^\$4 = 11$' # the line has been stepped over
expect "turn .* at .*stepping\.cu:$read\$"
expect '^\$5 = 3$'  # behind the barrier, in the same thread
expect '^\$6 = \{8, 9, 10, 11, 12, 13, 14, 15\}$'
expect ' 1 thread\(s\) running .*first 5, last 5$'
expect ' 2 thread\(s\) ready .*first 6, last 7$'
expect ' 5 thread\(s\) done .*first 0, last 4$'
expect "turn .* at .*stepping\.cu:$((read - 1))\$" # the calls of thread 6
expect '^turned$'
expect 'exited normally'
[[ $failed -eq 0 ]] || { cat "$TEST_TMPDIR/said" && exit 1; }
echo "OK: gdb steps through an emulated kernel"
