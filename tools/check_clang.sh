#!/usr/bin/env bash
# Does the library compile with a clang? Each source is checked alone, without code. ./tools/test --long calls this.
# usage: check_clang.sh [--compiler CLANG++] [SOURCE...]   (default: the newest clang++ that is installed, and all sources but GPUs')
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

compiler=
if [[ ${1:-} == --compiler ]]; then
  compiler=$2
  shift 2
fi
if [[ -z $compiler ]]; then compiler=$(compgen -c clang++ | grep -E '^clang\+\+(-[0-9]+)?$' | sort -V | tail -n 1 || true); fi
if [[ -z $compiler ]]; then
  echo "skipped: there is no clang++"
  exit 0
fi
sources=("$@")
[[ ${#sources[@]} -gt 0 ]] || mapfile -t sources < <(git ls-files '*.cc' | grep -E '^(runtime|kernels|autograd|nn|parallel)/' | grep -v /cuda/)
# libstdc++ itself uses what it calls deprecated.
options=(-std=c++20 -fPIC -fno-math-errno -ffp-contract=off -Wall -Wextra -Werror -Wno-deprecated-declarations -DNDEBUG -I. -isystem /usr/include/eigen3 -fsyntax-only)
failed=0
for source in "${sources[@]}"; do
  of_file=()
  case $source in
    kernels/config.cc | kernels/kernel.cc | kernels/linalg/factor.cc) ;;
    kernels/*) of_file=(-DRAMET_VARIANT=v3 -march=x86-64-v3) ;;
  esac
  [[ $(uname -m) == x86_64 ]] || of_file=(-DRAMET_VARIANT=base)
  if ! "$compiler" "${options[@]}" "${of_file[@]}" "$source"; then
    echo "FAILED: $source"
    failed=1
  fi
done
echo "${#sources[@]} sources with $compiler"
exit $failed
