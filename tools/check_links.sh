#!/usr/bin/env bash
# Each layer links with only the lower ones: the archives of all the folders named, taken whole, leave nothing undefined.
# And nothing of them runs before main().
# usage: check_links.sh FOLDER...   (lowest layer first; the working folder is where Bazel puts their archives)
set -euo pipefail

mapfile -t archives < <(find -L "$@" -name '*.a')
name=${*: -1}
[[ ${#archives[@]} -gt 0 ]] || { echo "FAILED: no archives in $*" && exit 1; }
work=${TEST_TMPDIR:-$(mktemp -d)}
echo 'int main() {}' >"$work/main.cc"
if g++ -o "$work/main" "$work/main.cc" -Wl,--whole-archive "${archives[@]}" -Wl,--no-whole-archive -l:libz.a -ldl -pthread \
  2>"$work/errors"; then
  echo "OK: $name links with nothing above it (${#archives[@]} archives)"
else
  grep -E 'undefined|multiple|cannot find|error' "$work/errors" | head -n 20
  echo "FAILED: $name needs something of a higher layer, or that nothing defines"
  exit 1
fi
before=$(nm -A --defined-only "${archives[@]}" 2>/dev/null | grep _GLOBAL__sub_I || true)
if [[ -n $before ]]; then
  echo "FAILED: static constructors (<iostream>, or a global with a dynamic initialiser):"
  sed 's/^/  /' <<<"$before"
  exit 1
fi
