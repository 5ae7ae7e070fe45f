#!/usr/bin/env bash
# gdb prints tensors, nodes, modules and storages. It does so for an optimised program with a library without debug information, for
# a running one and for its core. The offsets in ramet_gdb.py are the compiler's.
# usage: gdb_printers_test.sh PROGRAM LAYOUT ramet_gdb.py
set -euo pipefail

if ! command -v gdb >/dev/null; then
  echo "skipped: no gdb here (Debian package gdb)"
  exit 0
fi
program=$1 layout=$2 printers=$3 work=${TEST_TMPDIR:-$(mktemp -d)}

# Reads a file; needs no process.
gdb -q -nx -batch -ex "source $printers" -ex 'python check_layout()' "$layout" >"$work/layout" 2>&1
grep -q '^layout: 0 wrong$' "$work/layout" || { echo "FAILED: offsets" && cat "$work/layout" && exit 1; }

# Where a process may not trace another, gdb cannot do anything.
if ! grep -q '^Breakpoint 1, ' <(gdb -q -nx -batch -ex 'break main' -ex run "$program" 2>&1); then
  echo "skipped: gdb cannot run a program here (the offsets are right):"
  gdb -q -nx -batch -ex 'break main' -ex run "$program" 2>&1 | tail -5
  exit 0
fi

looks=(-ex 'print x' -ex 'print leaf' -ex 'print half' -ex 'print many' -ex 'print product' -ex 'print undefined' -ex 'print node'
  -ex 'print storage' -ex 'print *module' -ex 'ramet print raw' -ex 'ramet print module' -ex 'ramet graph product' -ex 'print net')
gdb -q -nx -batch -ex 'set pagination off' -ex 'set breakpoint pending off' -ex "source $printers" -ex 'break look' -ex run \
  "${looks[@]}" -ex "generate-core-file $work/core" -ex 'ramet print 3' "$program" >"$work/running" 2>&1 || true
gdb -q -nx -batch -ex 'set pagination off' -ex "source $printers" "${looks[@]}" "$program" "$work/core" >"$work/dead" 2>&1 || true

failed=0
expect() {
  for said in running dead; do
    grep -qE -- "$1" "$work/$said" || {
      echo "FAILED: gdb ($said) did not say: $1"
      failed=1
    }
  done
}
expect '^\$1 = .* float32\[3, 2\] cpu \{0, 3, 1, 4, 2, 5\}$'
expect '^\$2 = .* float64\[2, 2\] cpu \{1.5, 1.5, 1.5, 1.5\}, requires_grad, grad float64\[2, 2\] cpu \{3, 3, 3, 3\}$'
expect '^\$3 = .* bfloat16\[3\] cpu \{-2.5, -2.5, -2.5\}$'
expect '^\$4 = .* int64\[100\] cpu \{7, 8, 9, 10, 11, 12, 13, 14, \.\.\.\}$'
expect '^\$5 = .* float64\[\] cpu \{18\}, requires_grad, grad_fn SumBackward0$'
expect '^\$6 = .* undefined$'
expect '^\$7 = .* ReluBackward0 on cpu, sequence [0-9]+ = \{edge 0 = CatBackward0 on cpu, sequence [0-9]+\}$'
expect '^\$8 = .* 800 bytes on cpu at 0x[0-9a-f]+, version 1, last written by add_$'
expect '^\$9 = .*NetImpl, evaluating = \{scale = float32\[2\] cpu \{0.5, 0.5\}, fc = ramet::nn::LinearImpl, evaluating, fc.weight = float32\[3, 2\]'
expect '^ReluBackward0 on cpu, sequence'
expect '^  edge 0 = LinearBackward0 on cpu'
expect '^  fc.weight = float32\[3, 2\] cpu \{0.25, 0.25, 0.25, 0.25, 0.25, 0.25\}, requires_grad, no grad yet$'
expect '^  act = ramet::nn::ReLUImpl, evaluating$'
expect '^#0 SumBackward0 on cpu, sequence [0-9]+ -> #1$'
expect '^#2 AccumulateGrad on cpu, grad float64\[2, 2\] cpu \{3, 3, 3, 3\}$'
expect '^\$10 = .*Net.* act = ramet::nn::ReLUImpl, evaluating\}$'
grep -q 'neither tensor, node, module nor storage: 3 of type int' "$work/running" || { echo "FAILED: ramet print 3" && failed=1; }
[[ $failed -eq 0 ]] || { cat "$work/running" "$work/dead" && exit 1; }
echo "OK: gdb prints tensors, nodes, modules and storages"
