#!/usr/bin/env bash
# The main job over processes, under tools/launch: one digest for 1, 2 and 4 of them, and a killed run goes on.
# usage: train_ddp_test.sh TRAIN_PROGRAM
set -euo pipefail

train=$PWD/$1
launch=$PWD/tools/launch
work=$TEST_TMPDIR/work
mkdir -p "$work"
python3 tests/tools/small_images.py "$work/data"
common=(--data "$work/data" --model cnn --epochs 4 --batch 62 --dropout 0.2 --reduce tree:4 --seed 3 --digest --threads 1)

fail() {  # also inside $(...)
  { echo "FAILED: $*"; cat "$work/stderr" "$work/stdout" 2>/dev/null || true; } >&2
  exit 1
}
# run NAME PROCESSES OPTIONS...: prints the digest.
run() {
  local name=$1 processes=$2
  shift 2
  "$launch" --nproc "$processes" "${launch_options[@]}" -- "$train" --ddp "${common[@]}" --out "$work/$name" "$@" \
    >"$work/stdout" 2>"$work/stderr" || fail "$name: exit code $?"
  sed -n 's/^\[0\] digest //p' "$work/stdout"
}
launch_options=()

one=$(run one 1)
[[ $one =~ ^[0-9a-f]{16}$ ]] || fail "no digest: $one"
two=$(run two 2)
[[ $two == "$one" ]] || fail "2 processes: digest $two, expected $one"
four=$(run four 4)
[[ $four == "$one" ]] || fail "4 processes: digest $four, expected $one"
# Processes and devices of each combine.
both=$(run both 2 --devices cpu:0,cpu:1 --explore)
[[ $both == "$one" ]] || fail "2 processes of 2 devices: digest $both, expected $one"
grep -q '"processes": 2' "$work/both/summary.json" || fail "the summary does not say how many processes"
cmp -s "$work/one/model.safetensors" "$work/four/model.safetensors" || fail "another model file"
! grep -q '^\[1\]' "$work/stdout" || fail "rank 1 prints"
grep -qxF "[0] step 5 recorded: $work/both/step.html is its page, $work/both/step.ramet.gz for ./tools/explore" "$work/stdout" ||
  fail "it does not say what was recorded"

# Outputs with channels that lie together: the loss sees the same memory as without processes.
unet=(--model unet --data shapes --limit 8 --batch 8 --epochs 1 --reduce tree:4 --digest --threads 1)
"$train" "${unet[@]}" --devices cpu:0 --out "$work/unet" >"$work/stdout" 2>"$work/stderr" || fail "unet: exit code $?"
alone=$(sed -n 's/^digest //p' "$work/stdout")
for processes in 2 4; do
  "$launch" --nproc $processes --no-prefix -- "$train" --ddp "${unet[@]}" --out "$work/unet_$processes" >"$work/stdout" 2>"$work/stderr" ||
    fail "unet with $processes processes: exit code $?"
  [[ $(sed -n 's/^digest //p' "$work/stdout") == "$alone" ]] || fail "unet with $processes processes: another digest than $alone"
done

# A ledger that two processes wrote is checked by one of two devices, and the other way round.
run ledger 2 --ledger >/dev/null
RAMET_LEDGER_VERIFY=9:$work/ledger/run.ledger "$train" --devices cpu:0,cpu:1 >"$work/stdout" 2>"$work/stderr" || fail "verify: exit code $?"
grep -q "^verify: step 9 is as recorded: batch, random state, 12 gradients" "$work/stdout" || fail "one process does not verify"
RAMET_LEDGER_VERIFY=9:$work/ledger/run.ledger "$launch" --nproc 4 --no-prefix -- "$train" --ddp >"$work/stdout" 2>"$work/stderr" ||
  fail "verify with 4 processes: exit code $?"
grep -q "^verify: step 9 is as recorded: batch, random state, 12 gradients" "$work/stdout" || fail "4 processes do not verify"
[[ $(grep -c verify "$work/stdout") -eq 1 ]] || fail "more than rank 0 says so"

# Nor does it matter that they are processes.
"$train" "${common[@]}" --devices cpu:0,cpu:1 --out "$work/alone" --explore "$work/page" >"$work/stdout" 2>"$work/stderr" || fail "no processes: exit code $?"
alone=$(sed -n 's/^digest //p' "$work/stdout")
[[ $alone == "$one" ]] || fail "no processes: digest $alone, expected $one"

# What --explore has recorded: all of one step, and nothing else. Its gradients are the same bits wherever they were computed.
python3 - "$work/both/model.safetensors" "$work"/{both/step,page}.ramet.gz "$work"/{both/step.html,page} <<'E2' || fail "recordings"
import gzip
import json
import struct
import sys

with open(sys.argv[1], "rb") as f:
    names = set(json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))) - {"__metadata__"}
names = {n for n in names if not n.endswith(("running_mean", "running_var", "num_batches_tracked"))}
gradients = []
for path, ranks in zip(sys.argv[2:4], (2, 1)):
    r = json.load(gzip.open(path))
    assert r["ranks"] == ranks and r["title"].startswith("cnn on ") and ", step 5: cpu:0,cpu:1, batch 52" in r["title"], r["title"]
    assert [(d["name"], d["rank"]) for d in r["devices"]] == [(d, k) for k in range(ranks) for d in ("cpu:0", "cpu:1")], r["devices"]
    replicas = sorted(o["replica"] for o in r["operations"] if o["name"] == "convolution")  # two layers of four in all
    assert replicas == sorted([k for k in range(4 // ranks)] * 2 * ranks), replicas
    events = [e["kind"] for e in r["events"]]
    for kind in ("backward_begin", "backward_end", "step_begin", "step_end"):
        assert events.count(kind) == ranks, (kind, events.count(kind))
    kinds = {m["kind"] for m in r["movements"]}
    assert {"scatter", "gather", "all_reduce" if ranks > 1 else "reduce_add"} <= kinds, kinds
    scopes = {s for k in r["kernels"] for s in k["scope"].split(" > ")}
    assert {"step", "forward", "backward", "optimizer"} <= scopes, scopes
    for rank in range(ranks):
        mine = [p for p in r["parameters"] if r["devices"][r["tensors"][p["tensor"]]["device"]]["rank"] == rank]
        assert {p["name"] for p in mine} >= names, (names, mine)
        gradients.append({p["name"]: r["statistics"][r["tensors"][p["gradient"]]["statistics"]]["digest"] for p in mine if p["name"] in names})
assert all(g == gradients[0] for g in gradients) and all(gradients[0].values()), gradients
for path in sys.argv[4:]:
    with open(path) as page:
        assert page.read(15).lower() == "<!doctype html>", path
E2
[[ ! -e $work/four/step.html ]] || fail "a page that nobody asked for"

# Killed in the middle: the launcher starts all again, they go on from the checkpoint, and end at the same bits.
cat >"$work/fragile" <<E2
#!/usr/bin/env bash
# Rank 1's first attempt is killed when the first epoch is in the checkpoint, or about to be. Before that, rank 0 waits for it.
"$train" "\$@" &
program=\$!
if [[ \$RANK == 1 && \$RAMET_RESTARTS == 0 ]]; then
  until grep -q test_accuracy "$work/killed/metrics.jsonl" 2>/dev/null; do sleep 0.02; done
  kill -KILL \$program
fi
wait \$program
E2
chmod +x "$work/fragile"
"$launch" --nproc 2 --max-restarts 1 -- "$work/fragile" --ddp "${common[@]}" --out "$work/killed" \
  >"$work/stdout" 2>"$work/stderr" || fail "killed: exit code $?"
grep -qF 'launch: starting again (1 of 1)' "$work/stderr" || fail "it ended before it was killed"
killed=$(sed -n 's/^\[0\] digest //p' "$work/stdout" | tail -n 1)
[[ $killed == "$one" ]] || fail "killed and started again: digest $killed, expected $one"
# (A run that started from the beginning would end at the same bits.)
grep -qE ', resumed after step [1-9]' "$work/stdout" || fail "killed: it did not go on from the checkpoint"

# Wrong calls give an error.
code=0
env -u RANK -u WORLD_SIZE "$train" --ddp "${common[@]}" --out "$work/x" >"$work/stdout" 2>"$work/stderr" || code=$?
[[ $code == 2 ]] || fail "without a launcher: exit code $code"
grep -qF 'environment variable RANK expected, but not set' "$work/stderr" || fail "without a launcher"
code=0
"$launch" --nproc 3 -- "$train" --ddp "${common[@]}" --out "$work/x" >"$work/stdout" 2>"$work/stderr" || code=$?
[[ $code == 2 ]] || fail "3 processes for tree:4: exit code $code"
grep -qF 'expected a number of ranks that divides V' "$work/stderr" || fail "3 processes for tree:4"

# GPT-2, of which each shard returns the sum of its losses. The last batch of an epoch has 6 pieces, not the same number for each shard.
common=(--data tests/tools/small_images.py --model gpt2 --length 16 --epochs 2 --limit 14 --batch 8 --autocast bf16 --dropout 0.1 --reduce tree:4
  --digest --threads 1)
gpt2_one=$(run gpt2_one 1)
gpt2_both=$(run gpt2_both 2 --devices cpu:0,cpu:1)
[[ $gpt2_one =~ ^[0-9a-f]{16}$ && $gpt2_both == "$gpt2_one" ]] || fail "GPT-2 of 2 processes: digest $gpt2_both, expected $gpt2_one"
cmp -s "$work/gpt2_one/model.safetensors" "$work/gpt2_both/model.safetensors" || fail "GPT-2: another model file"

# Each process on the GPU of its number, and two GPUs in each.
export RAMET_EMULATED_DEVICES=2  # real ones do not read it
# Twice: rank 0 alone tests in between, which takes numbers of the host's generator, as the order of the images does.
common=(--data "$work/data" --model mlp --epochs 2 --limit 186 --batch 62 --reduce tree:4 --seed 3 --digest --threads 1)
gpu_one=$(run gpu_one 1 --devices cuda)
gpu_two=$(run gpu_two 2 --devices cuda)
[[ $gpu_one =~ ^[0-9a-f]{16}$ && $gpu_two == "$gpu_one" ]] || fail "2 GPUs: digest $gpu_two, expected $gpu_one"
gpu_both=$(run gpu_both 2 --devices cuda:1,cuda:0 --explore)
[[ $gpu_both == "$gpu_one" ]] || fail "2 processes of 2 GPUs: digest $gpu_both, expected $gpu_one"
grep -qE '"kind":"(emulated )?gpu"' <(zcat "$work/gpu_both/step.ramet.gz") || fail "2 processes of 2 GPUs: no GPU in the recording"
code=0
"$launch" --nproc 4 -- "$train" --ddp "${common[@]}" --devices cuda --out "$work/x" >"$work/stdout" 2>"$work/stderr" || code=$?
[[ $code == 2 ]] || fail "4 processes with 2 GPUs: exit code $code"
grep -qE 'device does not exist: got cuda:[23], expected cuda:0 to cuda:1' "$work/stderr" || fail "4 processes with 2 GPUs"
[[ ! -e $work/x ]] || fail "refused runs leave a folder"
echo "OK: digests $one, on GPUs $gpu_one"
