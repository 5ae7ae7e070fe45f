#!/usr/bin/env bash
# Every kernel that the layers call has a GPU side. There it is a weak entry (kernels/kernel.h), so that a program without
# GPUs links; a missing one would show only when a user calls it.
# usage: check_gpu_kernels.sh FOLDER...   (hold the archive of //kernels:cuda and those of the layers above)
set -euo pipefail

# Names NAME of ramet::kernels::cuda::NAME(...) in archives, undefined (w) or defined (W).
kernels() {
  find -L "${@:2}" \( -name 'lib*.a' -o -name 'lib*.lo' \) -exec nm -C {} + 2>/dev/null |
    sed -nE "s/^[0-9a-f ]+ $1 ramet::kernels::cuda::(\w+)\(ramet::kernels::.*/\1/p" | sort -u
}

called=$(kernels w "$@")
missing=$(comm -23 <(echo "$called") <(kernels W "$@"))
count=$(wc -l <<<"$called")
if [[ -n $missing || $count -lt 50 ]]; then
  echo "FAILED: of $count kernels that are called these have no GPU side:"
  echo "$missing"
  exit 1
fi
echo "OK: $count kernels are called, and have a GPU side"
