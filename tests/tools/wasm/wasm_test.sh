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
# Debian's emcc wants a package of Node.js that another Node.js does not find.
export NODE_PATH=${NODE_PATH:-/usr/share/nodejs}
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

configure() {
  local programs=//tests/digests:digests_test example
  for example in "${examples[@]}"; do programs+=";//tools/examples:$example"; done
  quietly emcmake cmake -S "$clone/tools/cmake" -B "$work/build" -G "Unix Makefiles" -DRAMET_PROGRAMS="$programs" "$@"
}

# compiled SOURCE TARGET: one object
compiled() {
  quietly make -C "$work/build" -s --no-print-directory -f "CMakeFiles/$2.dir/build.make" "CMakeFiles/$2.dir/${clone#/}/$1.o"
}

# What has a branch of its own there.
quick() {
  configure -DRAMET_PRECOMPILED_HEADERS=OFF
  local source
  for source in runtime/base/machine runtime/base/checked_size runtime/devices/devices runtime/devices/devices_wait runtime/memory/arena runtime/tensor/print; do
    compiled "$source.cc" ramet_runtime
  done
  compiled kernels/pointwise/nary_sum.cc ramet_kernels_variants_base
}

full() {
  configure
  local example target bytes targets=(ramet_libraries ramet_tests_digests_digests_test)
  for example in "${examples[@]}"; do targets+=("ramet_tools_examples_$example"); done
  quietly cmake --build "$work/build" -j "${RAMET_JOBS:-$(nproc)}" --target "${targets[@]}"
  local bin=$work/build/ramet/bin
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
