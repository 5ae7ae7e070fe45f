#!/usr/bin/env bash
# Ramet from source with CMake, as its users build it.
#
# usage: cmake_test.sh quick|full
#
#   quick   configures each kind of project, compiles one source of the library and one of a program. It is a step of ./tools/test.
#   full    builds the core, a program, some tests and a training program. It installs, and compares bits and trees with Bazel's.
#           ./tools/test --long runs it. RAMET_JOBS is how many compilations run at once.
#
# RAMET_CMAKE_WORK keeps what is built (default: a temporary folder).
set -euo pipefail
clone=$(cd "$(dirname "$0")/../../.." && pwd -P)
here=$clone/tests/tools/cmake
unset CXXFLAGS LDFLAGS CMAKE_PREFIX_PATH CMAKE_GENERATOR RAMET_ISA
if [[ -n ${RAMET_CMAKE_WORK:-} ]]; then
  work=$RAMET_CMAKE_WORK
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
project=$work/project
mkdir -p "$project"
cp "$here/consumer/CMakeLists.txt" "$here"/../sdk/program/{trains,files,ranks,gpus}.cc "$here/../sdk/program/plain.c" "$project"

die() {
  echo "$*"
  exit 1
}

# configured NAME SOURCE ARGUMENTS...: in $work/NAME
configured() {
  cmake -S "$2" -B "$work/$1" "${@:3}" >"$work/$1.log" 2>&1 || {
    cat "$work/$1.log"
    die "cmake -S $2 ${*:3}: failed"
  }
}

# built NAME ARGUMENTS...
built() {
  cmake --build "$work/$1" "${@:2}" >"$work/$1.build.log" 2>&1 || {
    tail -n 60 "$work/$1.build.log"
    die "cmake --build $1 ${*:2}: failed"
  }
}

# refused TEXT ARGUMENTS...: the configuration of $work/quick fails then, and says so (CMake breaks its lines)
refused() {
  ! cmake "$work/quick" "${@:2}" >"$work/refused.log" 2>&1 || die "${*:2}: was not refused"
  tr -s '[:space:]' ' ' <"$work/refused.log" | grep -qF -- "$1" || {
    cat "$work/refused.log"
    die "${*:2}: expected: $1"
  }
}

# One build folder for all of it: CMake tries the compilers once.

# compiled FOLDER SOURCE: one object, in a folder of $work/quick
compiled() {
  make -C "$work/quick/$1" -s --no-print-directory "$2.o" >"$work/object.log" 2>&1 || die "$(cat "$work/object.log")"
  [[ -n $(find "$work/quick/$1/CMakeFiles" -path "*${2##*/}.cc.o") ]] || die "no object of $2"
}

# Three lines of a project: enough to compile with the headers as they are installed.
check_fetch() {
  configured quick "$project" -G "Unix Makefiles" -DHOW=fetch -DRAMET_CLONE="$clone" -DRAMET_VARIANTS=base
  # Objects, not targets: a target waits for the libraries that it is linked with.
  compiled _deps/ramet-build "${clone#/}/nn/formats/tensorboard/png"
  compiled . trains
}

# All components and tests at once: each test that Bazel has is there, or is named with a reason.
check_subdirectory() {
  local made program
  configured quick "$project" -DHOW=subdirectory -DRAMET_COMPONENTS=all -DRAMET_TESTS=ON -DRAMET_VARIANTS=all
  made=$(ctest --test-dir "$work/quick" -N | sed -n 's/^Total Tests: //p')
  echo "$made tests of ctest"
  [[ $made -gt 350 ]] || die "got $made tests, expected more than 350"
  cmake --build "$work/quick" --target help >"$work/targets"
  for program in trains files ranks gpus plain; do grep -qx "[.]* $program" "$work/targets" || die "no target $program"; done
}

# What vcpkg's port says of versions and components. (Conan's recipe reads the version.)
check_port() {
  python3 -B - "$clone" <<'END'
import json, pathlib, re, sys
root = pathlib.Path(sys.argv[1])
port = json.loads((root / "tools/cmake/packaging/vcpkg/ramet/vcpkg.json").read_text())
text = (root / "runtime/base/version.h").read_text()
version = ".".join(re.search(r"#define RAMET_VERSION_%s (\d+)" % part, text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))
assert port["version"] == version, "vcpkg.json: got version %s, expected %s" % (port["version"], version)
sys.path.insert(0, str(root / "tools/cmake"))
from graph import Graph
rows = Graph(str(root)).components()
for name in port["features"]:
    assert name in rows, "vcpkg.json: no component " + name
allowed = {"name", "version", "description", "license", "supports", "dependencies", "features", "homepage"}
assert set(port) <= allowed, sorted(set(port) - allowed)
for dependency in port["dependencies"]:
    name = dependency if isinstance(dependency, str) else dependency["name"]
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name), name
END
}

check_refusals() {
  refused 'RAMET_VARIANTS: got "v5", expected one of' -DRAMET_VARIANTS=v5 -DRAMET_TESTS=OFF
  refused 'RAMET_COMPONENTS: got teleport, expected all or some of processes, formats' -DRAMET_VARIANTS=all -DRAMET_COMPONENTS=teleport
  refused 'RAMET_PROGRAMS: no such target: //tools/training:fly' -DRAMET_COMPONENTS=formats -DRAMET_PROGRAMS=//tools/training:fly
  refused "Ramet needs libzip (zip.h), which was not found. Debian's package is libzip-dev." -DRAMET_PROGRAMS= -DRamet_ZIP_INCLUDE_DIR=
}

# ---- the whole of it -----------------------------------------------------------------------------

prefix=$work/prefix

check_built() {
  configured built "$project" -DHOW=fetch -DRAMET_CLONE="$clone" -DRAMET_INSTALL=ON -DRAMET_TESTS=ON -DRAMET_SHARED=ON \
    -DRAMET_PROGRAMS=//tools/training:train -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix"
  built built --target trains --target ramet_libraries -j "${RAMET_JOBS:-$(nproc)}"
  "$work/built/trains"
  ! grep -n "warning:" "$work/built.build.log" || die "warnings"
}

# One digest, by the same kernels, of Bazel's training program and of this one.
check_bits() {
  built built --target ramet_tools_training_train -j "${RAMET_JOBS:-$(nproc)}"
  local words=(--model cnn --epochs 2 --limit 256 --batch 32 --dropout 0.2 --reduce tree:4 --seed 3 --devices cpu:0,cpu:1 --digest) bazels
  rm -rf "$work/images"
  python3 -B "$clone/tests/tools/small_images.py" "$work/images"
  words+=(--data "$work/images")
  bazels=$(RAMET_PROGRAM=cmake_test && source "$clone/tools/setup.sh" && ramet_build_train "${words[@]}") || die "Bazel did not build it"
  "$bazels" "${words[@]}" --out "$work/bazels" | grep -i digest >"$work/digest_bazel"
  "$work/built/_deps/ramet-build/ramet/bin/tools/training/train" "${words[@]}" --out "$work/cmakes" | grep -i digest >"$work/digest_cmake"
  cat "$work/digest_cmake"
  diff "$work/digest_bazel" "$work/digest_cmake" || die "CMake's build computes other bits than Bazel's"
}

# ctest, where the tests' data are.
check_ctest() {
  built built --target ramet_tests_runtime_all -j "${RAMET_JOBS:-$(nproc)}"
  ctest --test-dir "$work/built" -R "^tests/runtime:" --output-on-failure >"$work/ctest.log" 2>&1 || die "$(cat "$work/ctest.log")"
  tail -n 3 "$work/ctest.log"
}

# The installed tree is that of ./tools/install, and moves.
check_installed() {
  cmake --install "$work/built" --prefix "$prefix" >"$work/install.log" 2>&1 || die "$(cat "$work/install.log")"
  local moved=$work/moved
  rm -rf "$moved"
  mv "$prefix" "$moved"
  local shared
  for shared in OFF ON; do
    configured "package_$shared" "$project" -DHOW=package -DCMAKE_PREFIX_PATH="$moved" -DRamet_SHARED=$shared -DCMAKE_BUILD_TYPE=Release
    built "package_$shared"
    "$work/package_$shared/trains"
  done
  g++ -std=c++17 "$project/trains.cc" -o "$work/by_pkg_config" $(PKG_CONFIG_PATH=$moved/lib/pkgconfig pkg-config --cflags --libs ramet)
  "$work/by_pkg_config"
  ! grep -rIlE "$work|$clone" "$moved" || die "these files name a folder of this machine"
}

# Its files are those of ./tools/install, but for what the compilers wrote.
check_tree() {
  local bazels=$work/bazels_tree
  (
    RAMET_PROGRAM=cmake_test
    source "$clone/tools/setup.sh"
    ramet_bazel build //tools/sdk:ramet --//tools/bazel:variants="$(ramet_variant)" >"$work/bazel.log" 2>&1
  ) || die "$(cat "$work/bazel.log")"
  (cd "$clone" && python3 -B tools/sdk/make_tree.py --prefix "$bazels" --shared --built bazel-bin bazel-bin/tools/sdk/ramet.json)
  diff -r -x 'libramet.*' "$bazels" "$work/moved" || die "another tree than that of ./tools/install"
  diff <(ar t "$bazels/lib/libramet.a" | sort) <(ar t "$work/moved/lib/libramet.a" | sort) || die "other objects in libramet.a"
}

case ${1:-} in
  full)
    check_built
    check_bits
    check_ctest
    check_installed
    check_tree
    ;;
  quick)
    check_fetch
    check_subdirectory
    check_refusals
    check_port
    ;;
  *) die "usage: cmake_test.sh quick|full" ;;
esac
echo OK
