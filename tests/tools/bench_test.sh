#!/usr/bin/env bash
# The benchmark program's form: the chosen rows are measured and stand in the JSON file; a choice of nothing is refused. Says
# nothing about how long anything takes.
# usage: bench_test.sh BENCH
set -euo pipefail

json=$TEST_TMPDIR/figures.json
"$1" ops --only 'add16 no grad' --rounds 3 --threads 1 --json "$json" | tee "$TEST_TMPDIR/out"
python3 - "$json" <<'E2'
import json, sys

figures = json.load(open(sys.argv[1]))
assert "ramet: " in figures["config"], figures
assert figures["rounds"] == 3, figures
rows = figures["rows"]
assert [row["name"] for row in rows] == ["add16 no grad"], rows
assert rows[0]["unit"] == "ns" and 0 < rows[0]["low"] <= rows[0]["median"] <= rows[0]["high"], rows
E2
grep -q '^add16 no grad .* ns ' "$TEST_TMPDIR/out" || { echo "FAILED: no such row in the table" && exit 1; }
# A step of a model is captured as well, with the same bits; an operation is not.
"$1" models --only 'Transformer block' --rounds 3 --json "$json" | tee "$TEST_TMPDIR/out"
python3 - "$json" <<'E2'
import json, sys

row, = json.load(open(sys.argv[1]))["rows"]
captured, = row["peers"]
assert row["name"] == "Transformer block" and 0 < row["best"] <= row["median"], row
assert captured["name"] == "captured" and captured["difference"] == 0, row
assert abs(captured["gain"] - row["best"] / captured["best"]) < 1e-9, row
E2
grep -q '^Transformer block .* ms .*captured .* gain ' "$TEST_TMPDIR/out" || { echo "FAILED: no gain in the table" && exit 1; }
for wrong in "--only nosuch" "--json $TEST_TMPDIR/none/x.json"; do
  if "$1" ops --rounds 3 $wrong >/dev/null 2>"$TEST_TMPDIR/errors" || [[ $(wc -l <"$TEST_TMPDIR/errors") -ne 1 ]]; then
    cat "$TEST_TMPDIR/errors"
    echo "FAILED: $wrong: expected one line and an exit code other than 0"
    exit 1
  fi
done
echo "OK: rows and figures are as asked for"
