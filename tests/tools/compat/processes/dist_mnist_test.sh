#!/usr/bin/env bash
# dist_mnist_test.sh PROGRAM: as two processes, started by tools/launch and as an mpiexec would number them. Both have seen as
# many images, hold the same parameters at the end, and rank 0 recognises the test images.
set -euo pipefail

launch=$PWD/tools/launch
program=$PWD/$1
work=$TEST_TMPDIR/work
mkdir -p "$work"

fail() {
  echo "FAILED: $*"
  cat "$work/stderr" "$work/stdout" 2>/dev/null || true
  exit 1
}
# says NUMBER PATTERN: so many lines.
says() {
  [[ $(grep -c -- "$2" "$work/stdout") -eq $1 ]] || fail "expected $1 lines with: $2"
}
both_ranks() {
  for rank in 0 1; do says 2 "rank $rank of 2 has seen 1280 images, more right than by chance: yes"; done
  says 2 'The same parameters on all ranks: yes'
  says 1 'Test: 200 images, loss below 1: yes, accuracy above 0.9: yes'
}

timeout 120 "$launch" --nproc 2 -- "$program" >"$work/stdout" 2>"$work/stderr" || fail "launch: exit code $?"
both_ranks

port=$("$launch" --nproc 1 --no-prefix -- /bin/sh -c 'echo $MASTER_PORT')
numbered() {
  env PMI_RANK="$1" PMI_SIZE=2 MPI_LOCALRANKID="$1" MPI_LOCALNRANKS=2 MASTER_PORT="$port" timeout 120 "$program"
}
numbered 1 >"$work/other" 2>"$work/stderr" &
numbered 0 >"$work/stdout" 2>>"$work/stderr" || fail "rank 0 as PMI numbers it: exit code $?"
wait $! || fail "rank 1 as PMI numbers it: exit code $?"
cat "$work/other" >>"$work/stdout"
both_ranks
echo "OK: the same parameters on both ranks"
