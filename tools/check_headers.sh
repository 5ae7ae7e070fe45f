#!/usr/bin/env bash
# Each public header compiles alone, warnings as errors: as C++17, C++20 and C++23, with g++ and with the newest clang.
# usage: check_headers.sh HEADER|FOLDER...   (paths from the repository's root, which is the working folder)
set -euo pipefail

clang=$(compgen -G '/usr/bin/clang++*' | sort -V | tail -n 1) || {
  echo "FAILED: no clang: run ./tools/setup.sh test" >&2
  exit 1
}
export clang

# Included from standard input: alone, and `#pragma once` stands in an included file.
compile() {
  local header=$1 failed=0 flags=(-x c++ -fsyntax-only -Wall -Wextra -Werror -fvisibility=hidden -I. -)
  local line="#include \"$header\""
  for compiler in g++ "$clang"; do
    for standard in 17 20 2b; do
      "$compiler" "-std=c++$standard" "${flags[@]}" <<<"$line" ||
        { echo "FAILED: $header as C++$standard with $compiler" && failed=1; }
    done
  done
  return $failed
}
export -f compile

headers=()
for argument in "$@"; do
  if [[ $argument != *.h ]]; then
    # A folder without a header is not even there.
    mapfile -t -O ${#headers[@]} headers < <(find -L "$argument" 2>/dev/null -name '*.h' ! -name '*_internal.h' | sort)
  else
    headers+=("$argument")
  fi
done
[[ ${#headers[@]} -gt 0 ]] || { echo "no headers in $*" && exit 0; }
if printf '%s\0' "${headers[@]}" | xargs -0 -n 1 -P 2 bash -c 'compile "$0"'; then
  echo "OK: ${#headers[@]} headers as C++17, C++20 and C++23 (g++ $(g++ -dumpfullversion), $("$clang" --version | head -n 1))"
else
  echo "FAILED: see above"
  exit 1
fi
