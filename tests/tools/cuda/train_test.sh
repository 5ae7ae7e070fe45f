#!/usr/bin/env bash
# The training program on GPUs as users start it. 1, 2 and 4 GPUs give one digest, and the losses of a run on CPUs.
# usage: train_test.sh TRAIN_PROGRAM
set -euo pipefail

train=$PWD/$1
work=$TEST_TMPDIR/work
mkdir -p "$work"
python3 tests/tools/small_images.py "$work/data" 600
export RAMET_EMULATED_DEVICES=4

fail() {
  { echo "FAILED: $*" && cat "$work/stderr" "$work/stdout"; } >&2 || true
  exit 1
}
# run NAME DEVICES: prints the digest.
run() {
  "$train" --data "$work/data" --devices "$2" --limit 512 --epochs 1 --batch 64 --reduce tree:4 --digest --out "$work/$1" \
    >"$work/stdout" 2>"$work/stderr" || fail "$1: exit code $?"
  grep -qF "devices ${2//,/, };" "$work/stdout" || fail "$1: the devices are not named"
  sed -n 's/^digest //p' "$work/stdout"
}

four=$(run four cuda:0,cuda:1,cuda:2,cuda:3)
[[ $four =~ ^[0-9a-f]{16}$ ]] || fail "no digest: $four"
two=$(run two cuda:0,cuda:1)
[[ $two == "$four" ]] || fail "2 GPUs: digest $two, expected $four"
one=$(run one cuda:0)
[[ $one == "$four" ]] || fail "1 GPU: digest $one, expected $four"
cmp -s "$work/one/model.safetensors" "$work/four/model.safetensors" || fail "another model file"

# On CPUs the kernels round differently: the first loss is of the same weights, later ones drift apart slowly.
run cpus cpu:0,cpu:1 >"$work/cpus.digest"
python3 - "$work/four/metrics.jsonl" "$work/cpus/metrics.jsonl" <<'E2' || fail "losses"
import json
import sys

def losses(path):
    with open(path) as lines:
        return [record["loss"] for record in map(json.loads, lines) if "loss" in record]

gpu, cpu = losses(sys.argv[1]), losses(sys.argv[2])
assert len(gpu) == len(cpu) >= 8, (gpu, cpu)
assert abs(gpu[0] - cpu[0]) <= 1e-6 * cpu[0], (gpu, cpu)
assert all(abs(a - b) <= 1e-3 * b for a, b in zip(gpu, cpu)), (gpu, cpu)
E2

# What there is not.
code=0
"$train" --data "$work/data" --devices cuda:0,cuda:4 --out "$work/none" >"$work/stdout" 2>"$work/stderr" || code=$?
[[ $code == 2 ]] || fail "a GPU too many: exit code $code"
grep -qF 'got cuda:4, expected cuda:0 to cuda:3' "$work/stderr" || fail "a GPU too many"
[[ ! -e $work/none ]] || fail "refused runs leave a folder"
echo "OK: digest $four"
