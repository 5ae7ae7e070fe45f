#!/usr/bin/env bash
# What ./tools/bench processes prints without PyTorch. Says nothing about how long anything takes.
# usage: bench_processes_test.sh PROCESSES.PY LAUNCH PROGRAM
set -euo pipefail

# expect ROW PATTERN: asked for ROW, the last line is that row's, with a time that matches for what communication adds.
expect() {
  python3 "${@:3}" --only "$1" --rounds 1 >"$TEST_TMPDIR/out"
  cat "$TEST_TMPDIR/out"
  tail -n 1 "$TEST_TMPDIR/out" | grep -qE "^$1 +[0-9]+\.[0-9]{3} +[0-9]+\.[0-9]{3} +$2$" || {
    echo "FAILED: expected the row $1 with two times, then: $2"
    exit 1
  }
}
expect "MLP 784-512-512-10, 128 rows" '-?[0-9]+\.[0-9]{2}' "$@"
expect "all-reduce 64 B" - "$@"
! python3 "$@" --only nosuch 2>"$TEST_TMPDIR/errors" || { echo "FAILED: a row that is not there" && exit 1; }
grep -q 'got "nosuch"' "$TEST_TMPDIR/errors" || { cat "$TEST_TMPDIR/errors" && exit 1; }
echo "OK: rows are as asked for"
