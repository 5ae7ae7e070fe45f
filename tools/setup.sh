#!/usr/bin/env bash
# Shared by every script here: finds the repository, installs missing packages, calls Bazel.
#
#   ./tools/setup.sh [build|test|arm64|wasm|see|train|openblas|mpi|beside|docs|page]...
#                                                  installs the packages of these groups (by default build, test and train)
#   source tools/setup.sh                          gives the functions ramet_*; the caller then runs ramet_need GROUP...
#
# The names of packages of Debian, Ubuntu, Fedora, Arch and Alpine are in packages.txt. Where there is no Bazel, CMake builds.
#
# Variables: RAMET_BAZEL (default: bazel; none: CMake builds), RAMET_OUTPUT_BASE (Bazel's --output_base), RAMET_CACHE (the disk
# cache's folder; default: ramet/bazel in the user's cache folder). RAMET_CMAKE_FOLDER is CMake's build folder (default: one for
# each clone and compiler, next to RAMET_CACHE). RAMET_CACHE_GIB (the most that the disk cache may take; default: 24), RAMET_JOBS
# (compilations and tests at once; default: one for each core).
set -euo pipefail

RAMET_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

ramet_say() { printf '%s: %s\n' "${RAMET_PROGRAM:-ramet}" "$*" >&2; }
ramet_die() {
  ramet_say "$*"
  exit 1
}

# The comment at the top of the calling script.
ramet_usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }
# Wrong use: one line.
ramet_misuse() {
  ramet_say "$* (--help says what there is)"
  exit 2
}
# Sets words to the arguments, with --option=value as two.
ramet_words() {
  local word
  words=()
  for word in "$@"; do
    if [[ $word == --*=* ]]; then words+=("${word%%=*}" "${word#*=}"); else words+=("$word"); fi
  done
}
# ramet_number OPTION VALUE LOW HIGH
ramet_number() {
  [[ $2 =~ ^[0-9]{1,18}$ ]] && ((10#$2 >= $3 && 10#$2 <= $4)) ||
    ramet_misuse "$1: got ${2:-nothing}, expected a whole number from $3 to $4"
}

# Of which distribution's family this machine is: debian (Ubuntu, too), fedora, arch, alpine or other. RAMET_OS_RELEASE is a file like
# /etc/os-release.
ramet_system() {
  local like
  like=$(sed -n 's/^ID\(_LIKE\)\?=//p' "${RAMET_OS_RELEASE:-/etc/os-release}" 2>/dev/null | tr -d \"\' | tr '\n' ' ') || true
  case " $like " in
    *" debian "* | *" ubuntu "*) echo debian ;;
    *" fedora "*) echo fedora ;;
    *" arch "*) echo arch ;;
    *" alpine "*) echo alpine ;;
    *) if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then echo debian; else echo other; fi ;;
  esac
}

# Is Ramet built with CMake here? Debian has the Bazel that it needs. Elsewhere an installed Bazel is taken. RAMET_BAZEL=none is CMake.
ramet_by_cmake() {
  [[ ${RAMET_BAZEL:-} != none ]] || return 0
  ! command -v "${RAMET_BAZEL:-bazel}" >/dev/null || return 1
  ! grep -qx 'ID="\?debian"\?' "${RAMET_OS_RELEASE:-/etc/os-release}" 2>/dev/null
}

# Packages of a group, by this system's names (packages.txt). The real data is needed by training and by the tests.
ramet_packages() {
  local system column groups=("$1")
  case $(ramet_system) in
    fedora) column=3 ;;
    arch) column=4 ;;
    alpine) column=5 ;;
    *) column=2 ;;
  esac
  grep -q "^$1 " "$RAMET_ROOT/tools/packages.txt" ||
    ramet_die "no such group of packages: $1 (there are build, test, arm64, wasm, see, train, openblas, mpi, beside, docs and page)"
  if [[ $1 == build ]]; then
    # Debian's Bazel needs two packages of rules; another Bazel brings its own.
    if ramet_by_cmake; then groups+=(cmake); elif ! ramet_has_own_bazel; then groups+=(bazel); fi
  fi
  local group
  for group in "${groups[@]}"; do
    awk -v group="$group" -v column="$column" '$1 == group && $column != "-" { print $column }' "$RAMET_ROOT/tools/packages.txt"
  done
  if [[ $1 == test && $column == 2 ]] && ! ramet_has_clang; then ramet_clang_package; fi
}

ramet_has_own_bazel() {
  local bazel
  bazel=$(command -v "${RAMET_BAZEL:-bazel}") || return 1
  [[ $(readlink -f "$bazel") != /usr/bin/bazel-4 && $(readlink -f "$bazel") != /usr/bin/bazel ]]
}

ramet_has_clang() { compgen -G '/usr/bin/clang++*' >/dev/null; }

ramet_clang_package() {
  local version
  for version in 16 19 18 17 15 14; do
    if [[ -n $(apt-cache --names-only search "^clang-$version\$" 2>/dev/null) ]]; then
      echo "clang-$version"
      return
    fi
  done
  echo clang
}

ramet_missing() {
  local group package packages=() installed machine
  for group in "$@"; do packages+=($(ramet_packages "$group")); done
  case $(ramet_system) in
    fedora)
      for package in "${packages[@]}"; do rpm -q --whatprovides "$package" >/dev/null 2>&1 || echo "$package"; done | sort -u
      return
      ;;
    arch)
      pacman -T "${packages[@]}" | sort -u || true
      return
      ;;
    alpine)
      for package in "${packages[@]}"; do apk info -e "$package" >/dev/null 2>&1 || echo "$package"; done | sort -u
      return
      ;;
  esac
  installed=$(dpkg-query -W -f='${Package}:${Architecture} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
  machine=$(dpkg --print-architecture)
  for package in "${packages[@]}"; do
    if [[ $package == *:* ]]; then
      grep -qxF "$package installed" <<<"$installed" || echo "$package"
    else
      grep -qxF -e "$package:$machine installed" -e "$package:all installed" <<<"$installed" || echo "$package"
    fi
  done | sort -u
}

# How a system installs packages.
ramet_installer() {
  case $1 in
    fedora) echo dnf install -y ;;
    arch) echo pacman -Syu --needed --noconfirm ;; # a new container has no lists of packages, and Arch no partial upgrades
    alpine) echo apk add -U ;;
    *) echo apt-get install ;;
  esac
}

# Installs the missing packages of the named groups. Quick when nothing is missing.
ramet_need() {
  ramet_home
  [[ $RAMET_ROOT != *' '* ]] || ramet_die "Bazel does not work in a folder with a space in its path: $RAMET_ROOT"
  local system
  system=$(ramet_system)
  if [[ $system == other ]]; then
    ramet_say "of this distribution no names of packages are known, so nothing is installed here. Needed: CMake 3.20, Python 3," \
      "GCC 11 or clang 14 or newer of both, and what these Debian packages hold:"
    local group
    for group in "$@"; do ramet_packages "$group" >&2; done
    exit 1
  fi
  local missing as_root=()
  missing=$(ramet_missing "$@")
  [[ -n $missing ]] || return 0
  missing=$(echo $missing)
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null ||
      ramet_die "missing packages, and neither root nor sudo to install them. Run as root: $(ramet_installer "$system") $missing"
    as_root=(sudo)
  fi
  ramet_say "installing: $missing"
  if [[ $system != debian ]]; then
    "${as_root[@]}" $(ramet_installer "$system") $missing >&2 || ramet_die "could not install: $missing"
    missing=$(echo $(ramet_missing "$@"))
    [[ -z $missing ]] || ramet_die "still missing after the installation: $missing"
    return
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  # Packages for another processor: apt knows them once the architecture is named.
  if [[ $missing == *:arm64* ]] && ! dpkg --print-foreign-architectures | grep -qx arm64; then
    "${as_root[@]}" dpkg --add-architecture arm64
  fi
  local log
  log=$(mktemp)
  "${apt[@]}" update >&2 || ramet_say "apt-get update failed; trying with the lists that are there"
  # Asked again: after an update the lists may name a clang.
  missing=$(echo $(ramet_missing "$@"))
  if ! "${apt[@]}" install -y --no-install-recommends $missing >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log"
    ramet_die "apt-get could not install: $missing"
  fi
  rm -f "$log"
  missing=$(echo $(ramet_missing "$@"))
  [[ -z $missing ]] || ramet_die "still missing after the installation: $missing"
}

# Bazel needs a home folder that it can write to.
ramet_home() {
  if [[ -z ${HOME:-} || ! -w ${HOME:-/} ]]; then
    HOME=${TMPDIR:-/tmp}/ramet-$(id -u)
    mkdir -p "$HOME"
    export HOME
  fi
}

ramet_cache_root() { echo "${RAMET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ramet/bazel}"; }

# All clones share the disk cache. Objects depend on the compiler, which Bazel does not inspect: its version is in the path. The
# cache is pruned at most every ten minutes (a cold run of --all writes a GiB in two). Entries that were not read for three weeks
# go. The entries read longest ago go while all of them take more than RAMET_CACHE_GIB, or more than is free on the same disk. Where
# the disk is full, all go at once.
ramet_cache() {
  local root
  root=$(ramet_cache_root)
  local cache free limit=${RAMET_CACHE_GIB:-24}
  if [[ ! $limit =~ ^[0-9]{1,6}$ ]]; then
    ramet_say "RAMET_CACHE_GIB: got $limit, expected a whole number; taking 24"
    limit=24
  fi
  limit=$((10#$limit))
  cache=$root/g++-$(g++ -dumpfullversion)
  mkdir -p "$cache"
  free=$(df --output=avail -BG "$root" 2>/dev/null | tail -n 1 | tr -dc 0-9) || true
  if [[ ${free:-99} -lt 2 && -n $(find "$root" -type f -size +0 -print -quit) ]]; then
    ramet_say "less than 2 GiB are free where the disk cache is: emptying it ($root)"
    limit=0
  elif [[ ${free:-99} -lt $limit ]]; then
    limit=$free
  fi
  if [[ $limit -eq 0 || -z $(find "$root/pruned" -mmin -10 2>/dev/null) ]]; then
    find "$root" -type f -atime +21 -delete 2>/dev/null || true
    find "$root" -type f -printf '%A@ %s %p\0' | sort -z -r -n |
      awk -v most="$((limit << 30))" 'BEGIN { RS = ORS = "\0" }
        (sum += $2) > most { sub(/^[^ ]+ [^ ]+ /, ""); print }' | xargs -0 -r rm -f
    touch "$root/pruned"
  fi
  echo "$cache"
}

# Where CMake builds: a folder for each clone and compiler.
ramet_cmake_folder() {
  if [[ -n ${RAMET_CMAKE_FOLDER:-} ]]; then
    echo "$RAMET_CMAKE_FOLDER"
    return
  fi
  echo "$(ramet_cache_root)-cmake/$("${CXX:-c++}" -dumpfullversion 2>/dev/null || echo other)-$(cksum <<<"$RAMET_ROOT ${CXX:-c++}" | cut -d ' ' -f 1)"
}

# ramet_cmake OPTIONS... -- TARGET...: configures and builds, quietly unless it fails.
ramet_cmake() {
  local folder options=() log
  folder=$(ramet_cmake_folder)
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  if [[ ! -e $folder/CMakeCache.txt ]] && command -v ninja >/dev/null; then options+=(-G Ninja); fi
  mkdir -p "$folder"
  log=$folder/ramet.log
  if ! { cmake -S "$RAMET_ROOT/tools/cmake" -B "$folder" "${options[@]}" &&
    cmake --build "$folder" -j "${RAMET_JOBS:-$(nproc)}" --target "$@"; } >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    return 1
  fi
}

# ramet_cmake_build LABEL [OPTIONS...]: a program of the tree with CMake; prints its path.
ramet_cmake_build() {
  local label=$1 variants=native path
  for option in "${@:2}"; do
    case $option in
      --//tools/bazel:variants=*) variants=${option#*=} ;;
      *) ramet_die "this needs Bazel 4.2: CMake has no $option (tools/cmake/NOTES.md says what CMake builds)" ;;
    esac
  done
  path=${label#//}
  local package=${path%:*} name=${path#*:} target
  target=ramet_${package}
  [[ ${package##*/} == "$name" ]] || target+=_$name
  ramet_say "building $label with CMake (the first time takes minutes)"
  ramet_cmake -DRAMET_PROGRAMS="$label" -DRAMET_VARIANTS="$variants" -DRAMET_TESTS=OFF -- "${target//[^A-Za-z0-9_]/_}" ||
    ramet_die "FAILED: could not build $label"
  echo "$(ramet_cmake_folder)/ramet/bin/$package/$name"
}

# ramet_bazel COMMAND ARGUMENTS...: in the repository, with the disk cache, quiet where there is no terminal.
ramet_bazel() {
  local command=$1 startup=() options
  ! ramet_by_cmake || ramet_die "this needs Bazel 4.2, which is not installed (tools/cmake/NOTES.md says what CMake builds)"
  shift
  # An output of sources that changed while it was made must not stay in the cache.
  options=(--disk_cache="$(ramet_cache)" --experimental_guard_against_concurrent_changes)
  [[ -z ${RAMET_OUTPUT_BASE:-} ]] || startup+=(--output_base="$RAMET_OUTPUT_BASE")
  # A query runs nothing.
  [[ -z ${RAMET_JOBS:-} || $command == query ]] || options+=(--jobs="$RAMET_JOBS" --local_test_jobs="$RAMET_JOBS")
  if [[ ! -t 2 ]]; then options+=(--color=no --curses=no --show_progress_rate_limit=60); fi
  (cd "$RAMET_ROOT" && exec "${RAMET_BAZEL:-bazel}" "${startup[@]}" "$command" "${options[@]}" "$@")
}

# ramet_build LABEL [OPTIONS...]: builds one program and prints its path. During the build it shows the progress: in a terminal
# Bazel's own changing lines, otherwise one now and then. Bazel's other words appear only when it fails.
ramet_build() {
  local label=$1 log path
  if ramet_by_cmake; then
    ramet_cmake_build "$@"
    return
  fi
  ramet_say "building $label (the first time takes minutes)"
  if [[ -t 2 ]]; then
    ramet_bazel build --ui_event_filters=-info "$@" >&2 || ramet_die "FAILED: could not build $label"
  else
    log=$(mktemp)
    if ! ramet_bazel build --show_progress_rate_limit=20 "$@" 2>&1 | tee "$log" |
      sed -u -n "s/^\\(\\[[0-9,]* \\/ [0-9,]*\\] [^;]*\\).*/$RAMET_PROGRAM: \\1/p" >&2; then
      cat "$log" >&2
      rm -f "$log"
      ramet_die "FAILED: could not build $label"
    fi
    rm -f "$log"
  fi
  path=${label#//}
  echo "$(ramet_bazel info bazel-bin 2>/dev/null)/${path/://}"
}

# The variant of the kernels for this machine (kernels/kernel.cc): base, v3 or v4, or the one that RAMET_ISA names.
# ramet_variant [FILE]: FILE is like /proc/cpuinfo.
ramet_variant() {
  local variant=${RAMET_ISA:-} flags
  if [[ ! $variant =~ ^(base|v3|v4)$ ]]; then
    flags=$(sed -n '/^flags[[:space:]]*:/{p;q}' "${1:-/proc/cpuinfo}" 2>/dev/null || true)
    variant=base
    if ramet_all_in "$flags" avx2 fma bmi1 bmi2; then
      variant=v3
      if ramet_all_in "$flags" avx512f avx512bw avx512dq avx512vl avx512cd; then variant=v4; fi
    fi
  fi
  echo "$variant"
}

# ramet_all_in WORDS WORD...
ramet_all_in() {
  local word
  for word in "${@:2}"; do [[ " $1 " == *" $word "* ]] || return 1; done
}

# ramet_build_train ARGUMENTS...: builds the smallest training program that does what they ask for, with kernels for this machine,
# and prints its path.
ramet_build_train() {
  local label=//tools/training:train i
  ramet_words "$@"
  [[ " ${words[*]} " != *" --ddp "* ]] || label+=_processes
  for ((i = 1; i < ${#words[@]}; ++i)); do
    if [[ ${words[i - 1]} == --devices && ${words[i]} == *cuda* ]]; then
      label+=_gpus
      break
    fi
  done
  if [[ " ${words[*]} " == *" --explore "* ]]; then
    ramet_need see
    label+=_explore
  fi
  ramet_build "$label" --//tools/bazel:variants="$(ramet_variant)"
}

# ramet_find_torch FOLDER: sets include and lib from a LibTorch or PyTorch there; false where none is.
ramet_find_torch() {
  include=$1/include
  lib=$1/lib
  # Debian's headers and libraries lie among all others.
  [[ -e $lib/libtorch_cpu.so ]] || lib=$1/lib/$(gcc -print-multiarch 2>/dev/null || true)
  [[ -f $include/torch/csrc/api/include/torch/torch.h && -e $lib/libtorch_cpu.so ]]
}

# The same for a folder that the user named.
ramet_need_torch() {
  ramet_find_torch "$1" ||
    ramet_misuse "no LibTorch in $1: include/torch/csrc/api/include/torch/torch.h or lib/libtorch_cpu.so is missing"
}

# ramet_torch_to_compare FOLDER: the same for that folder or, where it is empty, for the usual places. Where those have none, the
# program ends without a comparison.
ramet_torch_to_compare() {
  local python
  if [[ -n $1 ]]; then
    ramet_need_torch "$1"
  else
    python=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2>/dev/null || true)
    if ! { [[ -n $python ]] && ramet_find_torch "$python"; } && ! ramet_find_torch /usr && ! ramet_find_torch /usr/local; then
      echo "skipped: no LibTorch here: python3 has no module torch, and /usr/include/torch is missing (--torch PATH names one)"
      exit 0
    fi
  fi
  ramet_say "comparing with the LibTorch in $include and $lib"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  RAMET_PROGRAM=setup
  for argument in "$@"; do
    case $argument in
      build | test | arm64 | wasm | see | train | openblas | mpi | beside | docs | page) ;;
      -h | --help)
        ramet_usage
        exit 0
        ;;
      *) ramet_misuse "no such group of packages: $argument" ;;
    esac
  done
  [[ $# -gt 0 ]] || set -- build test train
  ramet_need "$@"
  ramet_say "OK: everything for $* is installed"
fi
