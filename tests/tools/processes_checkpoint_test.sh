#!/usr/bin/env bash
# The example of checkpoints under tools/launch. A rank kills itself, all start again and go on; and four processes stop, two go on.
# The weights are those of one undisturbed process.
# usage: processes_checkpoint_test.sh EXAMPLE
set -euo pipefail

example=$PWD/$1
launch=$PWD/tools/launch
work=$TEST_TMPDIR/work
mkdir -p "$work"

fail() {
  echo "FAILED: $*"
  cat "$work/stderr" "$work/stdout" 2>/dev/null || true
  exit 1
}
# run ARGUMENTS OF THE LAUNCHER... -- ARGUMENTS OF THE EXAMPLE...
run() {
  local options=()
  while [[ $1 != -- ]]; do options+=("$1"); shift; done
  shift
  timeout 120 "$launch" "${options[@]}" -- "$example" "$@" >"$work/stdout" 2>"$work/stderr" || fail "$*: exit code $?"
}
weights() { sed -n 's/^\[0\] step 40: sum of the weights //p' "$work/stdout"; }

run --nproc 1 -- "$work/one"
expected=$(weights)
[[ $expected =~ ^-?[0-9.]+$ ]] || fail "no weights: $expected"

run --nproc 4 --max-restarts 1 -- "$work/killed"
grep -qF 'launch: starting again (1 of 1)' "$work/stderr" || fail "nobody was killed"
grep -qxF '[0] goes on from step 20, which 4 ranks saved' "$work/stdout" || fail "it did not go on from step 20"
[[ $(weights) == "$expected" ]] || fail "killed and started again: $(weights), expected $expected"

run --nproc 4 -- "$work/other" 20
grep -qF 'step 20: sum' "$work/stdout" || fail "four did not stop at step 20"
run --nproc 2 --max-restarts 1 -- "$work/other"
grep -qxF '[0] goes on from step 20, which 4 ranks saved' "$work/stdout" || fail "two did not go on from step 20"
[[ $(weights) == "$expected" ]] || fail "four, then two: $(weights), expected $expected"
ls "$work/other" | grep -c json | grep -qx 2 || fail "not two checkpoints in the folder"
echo "OK: $expected"
