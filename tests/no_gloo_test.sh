#!/usr/bin/env bash
# A program without processes needs no engine between them, and no object of the core mentions one.
# usage: no_gloo_test.sh PROGRAM LAYER...
set -euo pipefail

program=$1
shift
if readelf -d "$program" | grep -iE 'gloo|nccl|hiredis|ibverbs'; then
  echo "FAILED: $program needs the library above"
  exit 1
fi
mapfile -t archives < <(find -L "$@" -name '*.a')
[[ ${#archives[@]} -gt 0 ]] || { echo "FAILED: no archives in $*" && exit 1; }
if nm -A --undefined-only "${archives[@]}" 2>/dev/null | grep -E 'gloo|nccl|11distributed' | head -n 5 | grep .; then
  echo "FAILED: the core asks for what only parallel/distributed has"
  exit 1
fi
echo "OK: ${#archives[@]} archives and $program know nothing of processes"
