#!/usr/bin/env bash
# check.sh PROGRAM FILE: PROGRAM prints what stands in FILE, which is what it printed with LibTorch (tools/compat/compare).
set -euo pipefail
"$1" >"$TEST_TMPDIR/printed" || { echo "FAILED: $1 ended with exit code $?" && exit 1; }
diff -u "$2" "$TEST_TMPDIR/printed" || { echo "FAILED: $1 prints something else than with LibTorch" && exit 1; }
echo "OK: the same as with LibTorch"
