#!/usr/bin/env bash
# The main job over two processes, of which a random one is killed at a random moment, again and again: the launcher starts all
# again, and each run ends with the digest of one that nobody disturbed. RAMET_SEED draws other moments.
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

struck=0
for ((round = 1; round <= rounds; ++round)); do
  out=$work/out$round
  # Nothing may hang: 2 minutes are many times what a run takes.
  timeout 120 "$launch" --nproc 2 --max-restarts 3 -- "$train" "${common[@]}" --out "$out" >"$work/stdout" 2>"$work/stderr" &
  run=$!
  moment=$((RANDOM % milliseconds))
  sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  launcher=$(pgrep -P $run || true)
  mapfile -t ranks < <([[ -z $launcher ]] || pgrep -P "$launcher" || true)
  [[ ${#ranks[@]} -eq 0 ]] || kill -KILL "${ranks[RANDOM % ${#ranks[@]}]}" 2>/dev/null || true
  code=0
  wait $run || code=$?
  [[ $code == 0 ]] || fail "round $round, killed after $moment ms: exit code $code"
  [[ $(digest) == "$expected" ]] || fail "round $round, killed after $moment ms: digest $(digest), expected $expected"
  ! grep -qF 'launch: starting again' "$work/stderr" || ((++struck))
  rm -rf "$out"
done
echo "$struck of $rounds runs were killed before their end"
[[ $((2 * struck)) -ge $rounds ]] || fail "most runs had ended before"
echo "OK: digest $expected"
