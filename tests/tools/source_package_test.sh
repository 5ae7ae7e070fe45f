#!/usr/bin/env bash
# ./tools/package source: a program includes <torch/torch.h> of the unpacked archive with a compiler alone. The same files give the
# same bytes. Changes that are not committed are refused, and so is a tree that is no clone.
set -euo pipefail

clone=$TEST_TMPDIR/clone
work=$TEST_TMPDIR/work
failed=0

fail() {
  echo "FAILED: $*"
  [[ ! -s $work/out ]] || cat "$work/out"
  failed=1
}
# package CODE TEXT OPTION...
package() {
  local code=0 wanted=$1 text=$2
  shift 2
  "$clone/tools/package" source "$@" >"$work/out" 2>&1 || code=$?
  [[ $code -eq $wanted ]] && tail -n 1 "$work/out" | grep -q -- "$text" || fail "source $*: exit code $code, expected $wanted and: $text"
}
# git without the settings of a user.
in_clone() { HOME=$work git -C "$clone" -c user.name=test -c user.email=test@localhost "$@"; }

mkdir -p "$clone" "$work"
tar -ch --mode=u+w ramet.h autograd kernels nn parallel runtime tools | tar -x -C "$clone"
rm -f "$clone"/tools/compat/include/ramet/compat/{names,own_names}.h # Bazel's
package 1 'is no clone'
in_clone init -q
in_clone add -A
GIT_COMMITTER_DATE='2024-05-06 07:08:09 +0000' in_clone commit -q -m sources
package 0 '^package: OK: .*/first.tar.gz, [0-9.]* MiB; [0-9]* files$' --out "$work/first.tar.gz"
find "$clone" -exec touch -d '2020-01-01' {} +
chmod g+w "$clone/ramet.h"
package 0 OK --out "$work/second.tar.gz"
cmp "$work/first.tar.gz" "$work/second.tar.gz" || fail "the same files give the same bytes"
[[ -z $(in_clone status --porcelain) ]] || fail "it leaves something in the clone"
tar -tvf "$work/first.tar.gz" | grep -v '^[-l]rw\S* 0/0 .* 2024-05-06 .* ramet-[0-9.]*/' | grep -v '^[-l]rwx' >"$work/out" && fail "owners, times and folder"

mkdir "$work/unpacked"
tar -xf "$work/first.tar.gz" -C "$work/unpacked"
root=$(echo "$work"/unpacked/ramet-*)
cat >"$work/program.cc" <<'PROGRAM'
#include <torch/torch.h>

int main() {
  torch::nn::Linear layer(2, 1);
  at::Tensor loss = torch::mse_loss(layer->forward(torch::ones({3, 2})), torch::zeros({3, 1}));
  loss.backward();
  return loss.item<float>() > 0 ? 0 : 1;
}
PROGRAM
g++ -std=c++17 -fsyntax-only -I"$root/tools/compat/include" -isystem "$root" "$work/program.cc" >"$work/out" 2>&1 || fail "<torch/torch.h>"
echo '#include <ATen/ops/matmul.h>
#include <ramet/compat/own_names.h>
#include "ramet.h"' >"$work/headers.cc"
g++ -std=c++17 -fsyntax-only -I"$root/tools/compat/include" -isystem "$root" "$work/headers.cc" >"$work/out" 2>&1 || fail "single headers"
"$root/tools/install" --help >"$work/out" || fail "the scripts of an unpacked archive"

echo '// another line' >>"$clone/ramet.h"
package 1 'FAILED: 1 changes are not committed (--changed packs them), the first:  M ramet.h' --out "$work/third.tar.gz"
[[ ! -e $work/third.tar.gz ]] || fail "an archive of a changed tree"
package 0 OK --changed --out "$work/third.tar.gz"
tar -xOf "$work/third.tar.gz" --wildcards '*/ramet.h' | grep -q 'another line' || fail "--changed packs the changed file"
package 2 'source takes --out and --changed: got --shared' --shared

[[ $failed -eq 0 ]] && echo "OK: the source archive compiles, repeats its bytes, and is refused of what git does not have"
exit $failed
