#!/usr/bin/env bash
# The main job over two processes. A random one is killed at a random moment, until ROUNDS were. The launcher starts all again, and
# each run ends with the digest of an undisturbed one. RAMET_SEED draws other moments.
# usage: train_ddp_killed_test.sh ROUNDS TRAIN_PROGRAM
set -euo pipefail

rounds=$1
train=$PWD/$2
launch=$PWD/tools/launch
work=$TEST_TMPDIR/work
mkdir -p "$work"
python3 tests/tools/small_images.py "$work/data"
RANDOM=${RAMET_SEED:-1}
echo "RAMET_SEED=${RAMET_SEED:-1}"
common=(--data "$work/data" --model mlp --epochs 6 --batch 62 --reduce tree:4 --seed 3 --digest --threads 1 --ddp)

fail() {
  echo "FAILED: $*"
  cat "$work/stderr" "$work/stdout" 2>/dev/null || true
  exit 1
}
digest() { sed -n 's/^\[0\] digest //p' "$work/stdout" | tail -n 1; }
started=$(date +%s%3N)
"$launch" --nproc 2 -- "$train" "${common[@]}" --out "$work/whole" >"$work/stdout" 2>"$work/stderr" || fail "undisturbed: exit code $?"
milliseconds=$(($(date +%s%3N) - started))
expected=$(digest)
[[ $expected =~ ^[0-9a-f]{16}$ ]] || fail "no digest: $expected"

# An earlier run's checkpoint is none of this launch's: where the first attempt ends before it has written one, the second begins.
cat >"$work/second_time" <<'E2'
#!/bin/bash
[[ $RAMET_RESTARTS -gt 0 || $RANK -eq 0 ]] || exit 7
exec "$@"
E2
chmod +x "$work/second_time"
"$train" --data "$work/data" --model mlp --epochs 1 --seed 4 --threads 1 --out "$work/older" >"$work/stdout" 2>"$work/stderr" ||
  fail "an older run: exit code $?"
timeout 120 "$launch" --nproc 2 --max-restarts 1 -- "$work/second_time" "$train" "${common[@]}" --out "$work/older" \
  >"$work/stdout" 2>"$work/stderr" || fail "beside an older run's checkpoint: exit code $?"
[[ $(digest) == "$expected" ]] || fail "beside an older run's checkpoint: digest $(digest), expected $expected"

# ranks_of RUN: the processes of its launcher (not what python3 may start, where that is a script).
ranks_of() {
  local launcher
  launcher=$(pgrep -P "$1" || true)
  [[ -z $launcher ]] || pgrep -P "$launcher" -f -- --ddp || true
}
# A run that ended before its moment says how long runs take now, and does not count.
struck=0 resumed=0
for ((round = 1; struck < rounds; ++round)); do
  [[ $round -le $((5 * rounds)) ]] || fail "only $struck of $((round - 1)) runs were killed before their end, expected $rounds"
  out=$work/out$round
  # Nothing may hang: 2 minutes are many times what a run takes.
  timeout 120 "$launch" --nproc 2 --max-restarts 3 -- "$train" "${common[@]}" --out "$out" >"$work/stdout" 2>"$work/stderr" &
  run=$!
  moment=$((RANDOM % milliseconds))
  # The moment counts from when there is a rank to kill, which takes time on a busy machine.
  until [[ -n $(ranks_of $run) ]] || ! kill -0 $run 2>/dev/null; do sleep 0.05; done
  sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  mapfile -t ranks < <(ranks_of $run)
  [[ ${#ranks[@]} -eq 0 ]] || kill -KILL "${ranks[RANDOM % ${#ranks[@]}]}" 2>/dev/null || true
  code=0
  wait $run || code=$?
  [[ $code == 0 ]] || fail "round $round, killed after $moment ms: exit code $code"
  [[ $(digest) == "$expected" ]] || fail "round $round, killed after $moment ms: digest $(digest), expected $expected"
  if grep -qE ', resumed after step [1-9]' "$work/stdout"; then ((++resumed)); fi
  if grep -qF 'launch: starting again' "$work/stderr"; then ((++struck)); else milliseconds=$((moment > 100 ? moment : 100)); fi
  rm -rf "$out"
done
# A run that always started from the beginning would end with the same digest.
((resumed > 0)) || fail "none of $struck killed runs went on from a checkpoint"
echo "OK: $struck of $((round - 1)) runs were killed before their end, $resumed went on from a checkpoint; digest $expected"
