#!/usr/bin/env bash
# ./tools/compare_torch without LibTorch, and what of the comparison needs none: its cases run here, draws repeat, every public
# function has a case, and a changed number is seen.
set -euo pipefail

work=$TEST_TMPDIR
compare=tools/compare/compare
failed=0

fail() {
  echo "FAILED: $*"
  failed=1
}

# A python3 without torch.
mkdir -p "$work/bin"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/python3"
chmod +x "$work/bin/python3"
if compgen -G '/usr/include/torch' >/dev/null || compgen -G '/usr/local/include/torch' >/dev/null; then
  echo "not checked: LibTorch is installed, so nothing would be skipped"
elif ! PATH=$work/bin:$PATH tools/compare_torch >"$work/out" 2>&1 || ! tail -n 1 "$work/out" | grep -q '^skipped: no LibTorch'; then
  cat "$work/out"
  fail "without LibTorch the last line says 'skipped: no LibTorch ...' and the exit code is 0"
fi
if tools/compare_torch --torch "$work" >"$work/out" 2>&1 || ! grep -q "no LibTorch in $work" "$work/out"; then
  fail "a wrong --torch is an error that names the path"
fi

"$compare" --list | python3 tools/compare/coverage.py || fail "every public function has a case"
"$compare" --self --seed 7 --draws 12 >"$work/out" || { cat "$work/out"; fail "this library agrees with itself"; }
tail -n 1 "$work/out" | grep -Eq '^[0-9]+ cases, [1-9][0-9]* draws agree, [0-9]+ refused by both, 0 differ$' || fail "the summary"
"$compare" --self --seed 7 --draws 12 --only add >"$work/again"
"$compare" --self --seed 7 --draws 12 --only add | cmp -s - "$work/again" || fail "a seed repeats its draws"
! "$compare" --self --spoil --seed 7 --draws 12 --only 'add|conv2d|sum|argmax' >"$work/out" || fail "a changed number is seen"
for name in add conv2d sum argmax; do
  grep -q "^DIFFERS $name, draw [0-9]* of seed 7$" "$work/out" || fail "a difference names case, draw and seed: $name"
done

[[ $failed -eq 0 ]] && echo "OK: the comparison runs without LibTorch, and sees what differs"
exit $failed
