#!/usr/bin/env bash
# The examples of processes as two of them, under tools/launch. Each ends well on both ranks (they check themselves what they show)
# and prints its text for two ranks. Started alone, as tests, they reduce nothing.
# usage: processes_pages_test.sh EXAMPLE...
set -euo pipefail

launch=$PWD/tools/launch
work=$TEST_TMPDIR/work
mkdir -p "$work"

fail() {
  echo "FAILED: $*"
  cat "$work/stderr" "$work/stdout" 2>/dev/null || true
  exit 1
}
# pair "RANK PATTERN"...: the page as two processes; a line of that rank begins with each pattern.
pair() {
  local line
  timeout 60 "$launch" --nproc 2 -- "$page" >"$work/stdout" 2>"$work/stderr" || fail "$name: exit code $?"
  for line in "$@"; do
    grep -q -- "^\[${line%% *}\] ${line#* }" "$work/stdout" || fail "$name: rank ${line%% *} does not say: ${line#* }"
  done
}

[[ $# -gt 0 ]] || fail "no pages"
for page in "$@"; do
  page=$PWD/$page
  name=${page##*/processes_}
  case $name in
    accumulate)
      pair '0 each backward: .* [1-9][0-9]* bytes' '0 process 0 of 2: gradients the same' \
        '1 process 1 of 2: gradients the same'
      ;;
    compression) pair '0 bf16 .* sent [1-9]' '0 power_sgd and int8 .* sent [1-9]' '0 post_local_sgd .* sent [1-9]' ;;
    fully_shard)
      pair '0 process 0 of 2 on mesh (shard=2) holds ' '1 process 1 of 2 on mesh (shard=2) holds ' '0 loss '
      ;;
    # Its ranks need GPUs of their own. Emulated GPUs, and the emulated NCCL between them, belong to one process, in which the page
    # makes threads. Without GPUs it ends at once, and says so.
    gpus) CUDA_VISIBLE_DEVICES='' pair '0 no GPU' '1 no GPU' ;;
    recompute) pair '0 kept for backward: .* gradients are the same' ;;
    replicate) pair '0 over 2 ranks: head.bias' '0 step 60: loss of rank 0 ' ;;
    step_in_backward) pair '0 step 30: loss of rank 0 ' ;;
    tensor_parallel)
      pair '0 process 0 of 2: weight of the first layer 48 x 16' '1 process 1 of 2: weight of the first layer 48 x 16'
      ;;
    timeline) pair '0 step 1: gradients computed ' '0 step 2: gradients computed ' ;;
    training) pair '0 step 60: mean loss of 2 ranks ' ;;
    uneven) pair '0 rank 0: 100 rows, ' '1 rank 1: 170 rows, ' ;;
    # Their ranks are threads that they make themselves: one that never comes (failure), inproc:// (rendezvous).
    failure | rendezvous) ;;
    # Its last rank kills itself: processes_checkpoint_test.sh.
    checkpoint) ;;
    *) fail "$name: what does it say as two processes?" ;;
  esac
done
echo "OK: $# pages"
