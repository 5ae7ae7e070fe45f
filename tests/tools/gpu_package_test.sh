#!/usr/bin/env bash
# What gpu_package does with a package before and after it is built. The cases are its list of tests, what may be wrong with it,
# and a missing toolkit.
# usage: gpu_package_test.sh GPU_BENCH
set -euo pipefail

bench=$(realpath "$1")
work=$TEST_TMPDIR/work
failed=0
mkdir -p "$work"
fail() {
  echo "FAILED: $*"
  for file in stdout stderr report.md; do [[ ! -f $work/$file ]] || { echo "--- $file" && cat "$work/$file"; }; done
  failed=1
}

# The list that gpu_package writes: the table in pieces, files as they are, nothing forgotten.
python3 - "$work/listing.json" <<'E2'
import json, sys

suites = [
    ("Rows/OpTable", [("GpuMillion/row%d" % i, "tests/autograd/gpu/op_gpu_suite.cc") for i in range(50)]),
    ("Rows/OpTable", [("GpuValuesAndGradients/row0", "tests/autograd/gpu/op_gpu_suite.cc")]),
    ("Rows/RandomTable", [("Draws/0", "tests/autograd/table/op_table_random_test.cc")]),
    ("Scenario", [("One", "tests/parallel/move/comm_test.cc"), ("Two", "tests/parallel/move/comm_test.cc")]),
    ("Group", [("One", "tests/parallel/distributed/cuda/collectives_test.cc")]),
    ("Rows", [("Norm", "tests/autograd/gpu/rows_test.cc")]),
]
listing = {"testsuites": [{"name": n, "testsuite": [{"name": c, "file": f} for c, f in cases]} for n, cases in suites]}
json.dump(listing, open(sys.argv[1], "w"))
E2
printf '//tests/%s\n' parallel:comm_gpus_test autograd/gpu:op_gpu_test autograd/gpu:rows_test \
  parallel/distributed/cuda:collectives_test >"$work/labels"
tools/gpu/test_list.py "$work/listing.json" "$work/labels" | awk -F'\t' '{ print $1, $2, split($3, cases, ":") }' >"$work/list"
diff "$work/list" - <<'E2' || fail "test_list.py"
autograd/gpu/rows_test tests,sanitizer 1
op_table/GpuMillion.1 tests 40
op_table/GpuMillion.2 tests 10
op_table/GpuValuesAndGradients.1 tests,sanitizer 1
parallel/comm_test scenarios 2
parallel/distributed/cuda/collectives_test cards 1
E2
echo //tests/nn/gpu:forgotten_test >>"$work/labels"
! tools/gpu/test_list.py "$work/listing.json" "$work/labels" >/dev/null 2>"$work/stderr" || fail "test_list.py: nothing missing"
grep -q ': //tests/nn/gpu:forgotten_test$' "$work/stderr" || fail "test_list.py: what is missing"

# Errors of a package: files, then programs of emulated GPUs, which want libstdc++ and have neither kernels nor tests.
archive=$work/ramet-gpu
mkdir -p "$archive/bench"
cp "$bench" "$archive/gpu_bench"
cp "$bench" "$archive/gpu_tests"
cp tools/gpu_check tools/gpu/run_group "$archive/"
cp tools/benchmarks/gpu/{drive,torch_rows}.py "$archive/bench/"
printf 'Ramet 1\nCUDA 13.0, a compiler\n' >"$archive/VERSION"
packed() {
  tar -C "$work" -cf "$work/archive" ramet-gpu
  ! tools/gpu/check_package.py "$work/archive" 2>"$work/stderr" || fail "check_package.py: nothing wrong"
  for said in "$@"; do grep -q "^check_package: .*$said" "$work/stderr" || fail "check_package.py does not say: $said"; done
}
echo >"$archive/notes"
packed 'tests.list is missing' 'notes is in it'
rm "$archive/notes"
printf 'a/first_test\ttests,sanitizer\tFirst.One\nb/second_test\tscenarios\tFirst.One\n' >"$archive/tests.list"
packed 'gpu_tests asks the machine for libstdc++' 'gpu_bench has no kernels' 'gpu_tests lists no cases' 'tests.list has First.One twice' \
  'tests.list has First.One, gpu_tests has not' 'nothing for the part cards' 'VERSION has no line ^glibc' 'VERSION has no line ^CUDA'

# Each case that is for GPUs stands in the list, and no other.
cp "$work/listing.json" "$archive/"
printf '#!/bin/sh\ncp "${0%%/*}/listing.json" "${2#--gtest_output=json:}"\n' >"$archive/gpu_tests"
lists() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tools/gpu python3 -c 'import check_package, sys; print(*check_package.lists(sys.argv[1]), sep="\n")' "$archive"; }
sed -i '$d' "$work/labels"
tools/gpu/test_list.py "$work/listing.json" "$work/labels" >"$archive/tests.list"
[[ -z $(lists) ]] || fail "check_package.py: a good list: $(lists)"
sed -i 's,:Scenario.Two$,:Rows/RandomTable.Draws/0,' "$archive/tests.list"
diff <(lists) - <<'E2' || fail "check_package.py: a list with a case that is not for GPUs, and without one that is"
tests.list has Rows/RandomTable.Draws/0, a case for CPUs
tests.list is without 1 of 55 cases: Scenario.Two ...
E2

grep -q '^ *\./tools/gpu_package' <(tools/gpu_package --help) || fail "gpu_package --help"
grep -q 'of CUDA 13, 580 or later' <(tools/gpu_package --help) || fail "gpu_package --help: which driver"
code=0
CUDA_PATH=$work/none tools/gpu_package >"$work/stdout" 2>"$work/stderr" || code=$?
[[ $code -eq 3 && $(cat "$work/stderr") == "gpu_package: no CUDA toolkit: $work/none/bin/nvcc is missing (CUDA_PATH names where one is)" ]] ||
  fail "gpu_package without a toolkit: exit code $code"
[[ $failed -eq 0 ]] || exit 1
echo "OK: gpu_package lists what it packs, and what is wrong with it"
