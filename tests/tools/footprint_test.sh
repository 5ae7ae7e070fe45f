#!/usr/bin/env bash
# usage: footprint_test.sh FOOTPRINT.PY HELLO PROGRAM
set -euo pipefail
python3 "$1" limits "$2" "$3"
# The check can fail: the Python interpreter is larger and loads more.
if python3 "$1" limits "$2" "$(command -v python3)" >/dev/null 2>&1; then
  echo "FAILED: a program of more than 3 MB passed"
  exit 1
fi
