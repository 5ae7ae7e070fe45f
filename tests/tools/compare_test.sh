#!/usr/bin/env bash
# ./tools/compare_torch without LibTorch, and the parts of the comparison that need none. Its cases run here, draws repeat, and
# every public function has a case. A changed number is seen, and so is a changed declaration.
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

# First, number and largest: the last number is the one that was changed most.
grep -Eq '^  .*, element 0: [^;]*; 2 of ([0-9]+) elements differ, most of all element [1-9][0-9]*: ' "$work/out" ||
  { cat "$work/out"; fail "a difference tells how many elements differ and which most"; }

# Declarations, with a LibTorch of two methods that are declared here; then with another default and a function that is not.
include=$work/torch/include/ATen
mkdir -p "$include/core" "$include/ops"
{
  echo '  at::Tensor add(const at::Tensor & other, const at::Scalar & alpha=1) const;'
  echo '  at::Tensor & uniform_(double from=0, double to=1, ::std::optional<at::Generator> generator=::std::nullopt) const;'
} >"$include/core/TensorBody.h"
signatures() { python3 tools/compare/signatures.py --torch "$work/torch" | grep -v '^LEFT_OUT names'; }
signatures >"$work/out" || true
grep -q '^2 overloads of LibTorch compared, 0 left out, [0-9]* differ$' "$work/out" || { cat "$work/out"; fail "declarations that agree"; }
! grep -q '^method' "$work/out" || { cat "$work/out"; fail "declarations that agree are not named"; }
sed -i 's/alpha=1/alpha=2/' "$include/core/TensorBody.h"
echo 'inline at::Tensor exp(const at::Tensor & self, int64_t more) {' >"$include/ops/exp.h"
echo 'inline at::Tensor sqrt(const at::Tensor & self, int dim) {' >"$include/Functions.h"
signatures >"$work/out" || true
grep -q '^method add(Tensor other, Scalar alpha = 2)$' "$work/out" || { cat "$work/out"; fail "another default is named"; }
grep -q '^function exp(Tensor self, int64_t more)$' "$work/out" || { cat "$work/out"; fail "a missing overload is named"; }
grep -q '^function sqrt(Tensor self, int dim)$' "$work/out" || { cat "$work/out"; fail "one written by hand is named"; }

[[ $failed -eq 0 ]] && echo "OK: the comparison runs without LibTorch, and sees what differs"
exit $failed
