#!/usr/bin/env bash
# Ramet for WebAssembly, by Emscripten and CMake, under Node.js.
#
# usage: wasm_test.sh quick|full
#
#   quick   configures, and compiles the sources that differ there. It is a step of ./tools/test; without Emscripten it is skipped.
#   full    builds the core and three examples, and compares digests with those of the variant base on x86-64. A program may have at
#           most 4 MB. ./tools/test --wasm and --long run it. RAMET_JOBS is how many compilations run at once.
#
# RAMET_WASM_WORK keeps what is built (default: a temporary folder).
set -euo pipefail
clone=$(cd "$(dirname "$0")/../../.." && pwd -P)
most_bytes=4000000
examples=(first_program save_and_resume data_parallel)
unset CXXFLAGS LDFLAGS CMAKE_PREFIX_PATH CMAKE_GENERATOR RAMET_ISA

if ! command -v emcmake >/dev/null; then
  echo "skipped: there is no Emscripten (emcmake); Debian's package is emscripten"
  exit 0
fi
if [[ -n ${RAMET_WASM_WORK:-} ]]; then
  work=$RAMET_WASM_WORK
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi

# quietly COMMAND...: shows what it says only where it fails
quietly() {
  "$@" >"$work/log" 2>&1 || {
    tail -n 60 "$work/log"
    echo "failed: $*"
    exit 1
  }
}

# configure SOURCE OPTIONS...
configure() {
  local programs="//tests/digests:digests_test;//tests/tools/wasm:one_thread_test" example
  for example in "${examples[@]}"; do programs+=";//tools/examples:$example"; done
  quietly emcmake cmake -S "$1" -B "$work/build" -G "Unix Makefiles" -DRAMET_PROGRAMS="$programs" "${@:2}"
}

# What has a branch of its own there, with devices' workers and large blocks of memory among it.
quick() {
  configure "$clone/tools/cmake" -DRAMET_PRECOMPILED_HEADERS=OFF
  local object made=ramet/made/runtime
  for object in "$made/devices/joined_by_6_1" "$made/memory/joined_by_6_1" "$made/tensor/joined_by_6_1" "${clone#/}/kernels/pointwise/nary_sum"; do
    quietly make -C "$work/build" -s --no-print-directory "$object.o"
    [[ -n $(find "$work/build/CMakeFiles" -path "*${object##*/made/}.cc.o") ]] || {
      echo "no object of $object"
      exit 1
    }
  done
}

full() {
  # As a project that fetches Ramet has it.
  local project=$work/project example bytes targets=(trains ramet_libraries ramet_tests_digests_digests_test ramet_tests_tools_wasm_one_thread_test)
  mkdir -p "$project"
  cp "$clone/tests/tools/cmake/consumer/CMakeLists.txt" "$clone/tests/tools/sdk/program/trains.cc" "$project"
  configure "$project" -DHOW=fetch -DRAMET_CLONE="$clone" -DCMAKE_BUILD_TYPE=Release
  for example in "${examples[@]}"; do targets+=("ramet_tools_examples_$example"); done
  quietly cmake --build "$work/build" -j "${RAMET_JOBS:-$(nproc)}" --target "${targets[@]}"
  (cd "$work/build" && node --no-experimental-fetch trains.js)
  local bin=$work/build/_deps/ramet-build/ramet/bin
  for example in "${examples[@]}"; do
    echo "$example"
    (cd "$bin/tools/examples" && node --no-experimental-fetch "$example.js")
    bytes=$(stat -c %s "$bin/tools/examples/$example.wasm")
    echo "$example.wasm: $bytes bytes"
    [[ $bytes -le $most_bytes ]] || {
      echo "$example.wasm has $bytes bytes, expected at most $most_bytes"
      exit 1
    }
  done
  (cd "$bin/tests/digests" && node --no-experimental-fetch digests_test.js)
  (cd "$bin/tests/tools/wasm" && node --no-experimental-fetch one_thread_test.js)
}

case ${1:-} in
  quick) quick ;;
  full) full ;;
  *)
    echo "usage: wasm_test.sh quick|full"
    exit 2
    ;;
esac
echo OK
