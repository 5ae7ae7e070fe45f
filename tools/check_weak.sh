#!/usr/bin/env bash
# No object of an instruction-set variant may hold a weak function outside its variant's namespace. The linker keeps one
# copy for the whole program, which could be AVX-512 code on a processor without AVX-512.
# usage: check_weak.sh FOLDER   (holds the archives lib*_<variant>.a, as kernel_library names them)
set -euo pipefail

failed=0 checked=0
for archive in $(find -L "$1" -name 'lib*_v[0-9]*.a' | sort); do
  variant=$(sed -E 's/.*_(v[0-9][a-z0-9]*)(\.pic)?\.a$/\1/' <<<"$archive")
  checked=$((checked + 1))
  # W: a weak function. Weak data (V, u) holds no instructions. A template with an argument of the variant's is its own.
  found=$(nm -C --defined-only "$archive" 2>/dev/null | grep -E '^[0-9a-f]+ [Wi] ' | grep -vE "\b$variant::" | sort -u -k 3 || true)
  if [[ -n $found ]]; then
    failed=1
    echo "FAILED: weak functions in $(basename "$archive") outside the namespace $variant (make them RAMET_INLINE, or static):"
    cut -d ' ' -f 3- <<<"$found" | sed 's/^/  /'
  else
    echo "OK: $(basename "$archive"): $(nm --defined-only "$archive" 2>/dev/null | grep -cE ' [TtW] ' || true) functions"
  fi
done
if [[ $checked -eq 0 && $(uname -m) == x86_64 ]]; then
  echo "FAILED: no archives of variants in $1"
  failed=1
fi
exit $failed
