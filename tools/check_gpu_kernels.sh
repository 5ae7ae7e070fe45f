#!/usr/bin/env bash
# Every kernel that the layers call has a GPU side. There it is a weak entry (kernels/kernel.h), so that a program without
# GPUs links. A missing one would show only when a user calls it. In a program with GPUs no entry is empty.
# usage: check_gpu_kernels.sh PROGRAM FOLDER...   (they hold the archive of //kernels:cuda and those of the layers above)
set -euo pipefail
program=$1
shift

# Names NAME of ramet::kernels::cuda::NAME(...) in what nm lists, of these types: undefined (w), defined (W; t in a program).
kernels() {
  sed -nE "s/^[0-9a-f ]+ [$1] ramet::kernels::cuda::(\w+)\(ramet::kernels::.*/\1/p" | sort -u
}
archives() {
  find -L "$@" \( -name 'lib*.a' -o -name 'lib*.lo' \) -exec nm -C {} + 2>/dev/null
}

called=$(archives "$@" | kernels w)
missing=$(comm -23 <(echo "$called") <(archives "$@" | kernels W))
count=$(wc -l <<<"$called")
if [[ -n $missing || $count -lt 50 ]]; then
  echo "FAILED: of $count kernels that are called these have no GPU side:"
  echo "$missing"
  exit 1
fi
# What a program does not call is not in it.
linked=$(nm -C "$program" | kernels wtTW | wc -l)
empty=$(nm -C "$program" | kernels w)
if [[ -n $empty || $linked -lt 5 ]]; then
  echo "FAILED: of $linked kernels in $program these are empty:"
  echo "$empty"
  exit 1
fi
echo "OK: $count kernels are called, and have a GPU side; $linked in $(basename "$program")"
