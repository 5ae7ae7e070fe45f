#!/usr/bin/env bash
# What ./tools/install makes, as its users get it. The tree is made once and moved, and programs are built from it alone.
#
# usage: sdk_test.sh [CHECK...]   (by default all that begin with check_)
# The working folder has the files of the repository. BUILT (default: the same) has what Bazel built.
set -euo pipefail

work=${TEST_TMPDIR:-$(mktemp -d)}/sdk
rm -rf "$work"
mkdir -p "$work"
here=$PWD/tests/tools/sdk
built=${BUILT:-$PWD}
prefix=$work/prefix
unset RAMET_NUM_THREADS OMP_NUM_THREADS CXXFLAGS LDFLAGS CMAKE_PREFIX_PATH PKG_CONFIG_PATH RAMET_ISA
export CXX=g++ CMAKE_BUILD_PARALLEL_LEVEL=1

die() {
  echo "$*"
  exit 1
}
make_tree() { python3 tools/sdk/make_tree.py --built "$built" "$@"; }
lists() { printf "$built/tools/sdk/%s.json\n" "$@"; }

# has TEXT FILE: somewhere in it, else the file is shown
has() {
  grep -qF -- "$1" "$2" || {
    cat "$2"
    die "expected there: $1"
  }
}

# refused NAME TEXT COMMAND...: fails, and prints TEXT (CMake breaks its lines where paths before the text are long)
refused() {
  local log=$work/refused_$1
  ! "${@:3}" >"$log" 2>&1 || die "$1: was not refused"
  tr -s '[:space:]' ' ' <"$log" >"$log.line"
  has "$2" "$log.line"
}

# configured FOLDER ARGUMENTS...: a CMake project, built in $work/FOLDER's name
configured() {
  local to=$work/build_$1
  mkdir -p "$to"
  cmake -S "$2" -B "$to" "${@:3}" >"$to/configure.log" 2>&1 || {
    cat "$to/configure.log"
    die "cmake -S $2: failed"
  }
}

# A program by pkg-config: linked SOURCE|OBJECT PROGRAM "PACKAGE..." [OPTIONS]
linked() {
  local flags
  flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs $3)
  g++ "$1" -o "$2" ${4:-} $flags
}

# ---- the tree -----------------------------------------------------------------------------------

# Nothing in the files says where they were made or where they stand.
check_tree() {
  ! grep -rIlE "$work|$built" "$prefix" || die "these files name a folder of this machine"
  local file name
  while read -r file; do [[ -e $prefix/$file ]] || die "the manifest names $file"; done <"$prefix/share/ramet/manifest"
  [[ $(find "$prefix" ! -type d | wc -l) -eq $(wc -l <"$prefix/share/ramet/manifest") ]] || die "files that the manifest does not name"
  ! ar t "$prefix/lib/libramet.a" | sort | uniq -d | grep . || die "members of one name"
  # Headers name each other as users do, and what they name is there.
  while read -r name; do
    [[ $name == ramet.h || $name == ramet/* ]] || die "a header includes \"$name\""
    [[ -f $prefix/include/$name ]] || die "a header includes \"$name\", which is not installed"
  done < <(grep -rhoE '^[ \t]*#[ \t]*include[ \t]*"[^"]+"' "$prefix/include" | sed 's/[^"]*"//; s/"//' | sort -u)
  for name in Eigen nlohmann-json xxHash D3; do [[ -s $prefix/share/doc/ramet/LICENSE.$name ]] || die "no licence of $name"; done
}

# Installed twice, with less the second time: what is gone is gone. Uninstalled: what is not Ramet's stays.
check_uninstall() {
  local other=$work/other
  make_tree --prefix "$other" --shared $(lists ramet) >/dev/null
  touch "$other/lib/mine"
  make_tree --prefix "$other" $(lists ramet) >/dev/null
  [[ ! -e $other/lib/libramet.so && -e $other/lib/libramet.a ]] || die "an earlier installation's library stayed"
  cmp "$other/lib/libramet.a" "$prefix/lib/libramet.a" || die "two installations differ"
  make_tree --prefix "$other" --uninstall >/dev/null
  [[ $(cd "$other" && find . ! -type d) == ./lib/mine && ! -e $other/include ]] || die "not all of it, or more, was removed"
  [[ $(make_tree --prefix "$other" --uninstall) == 0 ]]
}

# ---- CMake and pkg-config -----------------------------------------------------------------------

check_cmake() {
  # Without MPI, whatever is there: FindMPI makes its targets in any case. (check_mpi has the examples with MPI.)
  configured examples "$prefix/share/ramet/examples" -DMPI_SKIP_GUESSING=ON -DMPI_SKIP_COMPILER_WRAPPER=ON -DMPI_ASSUME_NO_BUILTIN_MPI=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON
  cmake --build "$work/build_examples" --target help >"$work/examples"
  has "... processes_training" "$work/examples"
  ! grep mpi_ "$work/examples" || die "examples of MPI where there is none"
  cmake --build "$work/build_examples" >"$work/log_examples" 2>&1 || die "$(cat "$work/log_examples")"
  "$work/build_examples/first_program" >/dev/null

  configured program "$here/program" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release -DRAMET_VERSION_WANTED=0.1
  cmake --build "$work/build_program" >"$work/log_program" 2>&1 || die "$(cat "$work/log_program")"
  local program=$work/build_program/trains bytes
  "$program"
  ! ldd "$program" | grep -i ramet || die "the archive was to be linked"
  strip -o "$program.stripped" "$program"
  bytes=$(stat -c %s "$program.stripped")
  echo "a stripped MLP program: $bytes bytes"
  [[ $bytes -le 3145728 ]] || die "expected at most 3 MiB"
}

check_shared() {
  configured shared "$here/program" -DCMAKE_PREFIX_PATH="$prefix" -DRamet_SHARED=ON -DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON \
    -DCMAKE_INSTALL_PREFIX="$work/shared_installed"
  cmake --build "$work/build_shared" --target install >"$work/log_shared" 2>&1 || die "$(cat "$work/log_shared")"
  local program=$work/shared_installed/bin/trains
  "$work/build_shared/trains"
  "$program"
  grep -q "libramet.so.0.1 => $prefix/lib" <(ldd "$program") || die "$(ldd "$program")"
  [[ $(stat -c %s "$program") -lt 1000000 ]] || die "the program holds the library"
  # A library of other headers under the same name is not taken: the loader names the error.
  mkdir "$work/stale"
  sed "s/one_build__0_1_0_......../one_build__0_1_0_00000000/" "$prefix/lib/libramet.so.0.1" >"$work/stale/libramet.so.0.1"
  refused stale ramet_headers_and_library_of_one_build env LD_LIBRARY_PATH="$work/stale" "$program"
}

check_components() {
  configured components "$here/program" -DCMAKE_PREFIX_PATH="$prefix" -DRAMET_COMPONENTS_WANTED="formats;c_processes;cuda"
  cmake --build "$work/build_components" --target ranks --target files --target plain --target pair --target gpus >"$work/log_components" 2>&1 || die "$(cat "$work/log_components")"
  "$work/build_components/ranks"
  "$work/build_components/gpus"
  (cd "$work" && build_components/files)
  "$work/build_components/plain"
  "$work/build_components/pair"
  grep -q libgloo <(ldd "$work/build_components/ranks") || die "processes do not link Gloo"
  ! grep -q libgloo <(ldd "$work/build_components/gpus") || die "Gloo where nobody asked for processes"
  cd "$work"
  refused component 'lacks the component "teleport":' cmake -S "$here/program" \
    -B "$work/build_1" -DCMAKE_PREFIX_PATH="$prefix" -DRAMET_COMPONENTS_WANTED=teleport
  refused version 'version: 0.1.0' cmake -S "$here/program" -B "$work/build_2" -DCMAKE_PREFIX_PATH="$prefix" -DRAMET_VERSION_WANTED=0.2
  refused old_version 'version: 0.1.0' cmake -S "$here/program" -B "$work/build_3" -DCMAKE_PREFIX_PATH="$prefix" -DRAMET_VERSION_WANTED=0.0.9
  # Archives here and the shared library there, in one folder, would be two libraries in one program.
  local both=$work/both
  mkdir "$both"
  printf 'cmake_minimum_required(VERSION 3.16)\nproject(both CXX)\nset(Ramet_SHARED ${FIRST})\nfind_package(Ramet CONFIG REQUIRED)\n' >"$both/CMakeLists.txt"
  printf 'unset(Ramet_SHARED)\nunset(Ramet_SHARED CACHE)\nif(DEFINED THEN)\n  set(Ramet_SHARED ${THEN})\nendif()\nfind_package(Ramet CONFIG REQUIRED COMPONENTS formats)\n' >>"$both/CMakeLists.txt"
  printf 'get_target_property(kind Ramet::formats TYPE)\nmessage(STATUS "formats: ${kind}")\n' >>"$both/CMakeLists.txt"
  refused both_1 "Ramet_SHARED must be alike" cmake -S "$both" -B "$work/build_9" -DCMAKE_PREFIX_PATH="$prefix" -DFIRST=OFF -DTHEN=ON
  refused both_2 "Ramet_SHARED must be alike" cmake -S "$both" -B "$work/build_10" -DCMAKE_PREFIX_PATH="$prefix" -DFIRST=ON -DTHEN=OFF
  configured both "$both" -DCMAKE_PREFIX_PATH="$prefix" -DFIRST=ON
  has "formats: INTERFACE_LIBRARY" "$work/build_both/configure.log"
  # On a machine that lacks what optional components want, the examples are those of the rest.
  configured few "$prefix/share/ramet/examples" -DRamet_CAIRO_LIBRARY= -DRamet_ZIP_LIBRARY= -DRamet_GLOO_LIBRARY= \
    -DCMAKE_DISABLE_FIND_PACKAGE_Gloo=ON -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
  cmake --build "$work/build_few" --target help >"$work/few"
  has "... first_program" "$work/few"
  has "... game_loop" "$work/few"
  ! grep -E "(pictures|weights_of_others|processes_.*)$" "$work/few" || die "examples whose libraries are not there"
}

# The library see, together with formats, with which it shares pictures. It is linked from the archives by CMake and pkg-config, and
# from libramet.so.
check_see() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  local object=$work/recorded.o program name
  (cd "$here/program" && g++ -std=c++17 -g -c $(pkg-config --cflags ramet-see) nn/recorded.cc -o "$object")
  configured see "$here/program" -DCMAKE_PREFIX_PATH="$prefix" -DRAMET_COMPONENTS_WANTED="see;formats" -DRAMET_RECORDED_OBJECT="$object"
  cmake --build "$work/build_see" --target recorded >"$work/log_see" 2>&1 || die "$(cat "$work/log_see")"
  linked "$object" "$work/recorded_archive" "ramet-see ramet-formats"
  linked "$object" "$work/recorded_shared" ramet-shared
  for program in "$work/build_see/recorded" "$work/recorded_archive" "$work/recorded_shared"; do
    mkdir "$work/seen"
    (cd "$work/seen" && "$program")
    for name in step.html step.ramet.gz curve.png weight.svg; do [[ -s $work/seen/$name ]] || die "$program wrote no $name"; done
    grep -qF '"file":"nn/recorded.cc"' <(zcat "$work/seen/step.ramet.gz") || die "$program: the recording does not name its line"
    python3 "$prefix/share/ramet/see/read_recording.py" "$work/seen/step.ramet.gz" >/dev/null
    rm -r "$work/seen"
  done
  local library
  for library in libcairo libdw libelf; do
    grep -q $library <(ldd "$work/build_see/recorded") || die "see does not link $library"
  done
  configured examples_see "$prefix/share/ramet/examples"
  cmake --build "$work/build_examples_see" --target recorded_step >"$work/log_examples_see" 2>&1 || die "$(cat "$work/log_examples_see")"
  "$work/build_examples_see/recorded_step" "$work/recorded_step" >/dev/null
  [[ -s $work/recorded_step/step.html ]] || die "the example wrote no page"
  # What is missing is named, with Debian's package.
  refused cairo "lacks Cairo (Debian: libcairo2-dev)" cmake -S "$here/program" -B "$work/build_7" \
    -DCMAKE_PREFIX_PATH="$prefix" -DRAMET_COMPONENTS_WANTED=see -DRamet_CAIRO_LIBRARY=
  refused dw "lacks libdw of elfutils (Debian: libdw-dev)" cmake -S "$here/program" -B "$work/build_8" \
    -DCMAKE_PREFIX_PATH="$prefix" -DRAMET_COMPONENTS_WANTED=see -DRamet_DW_LIBRARY=
}

# The library ledger, from its archive and from libramet.so.
check_ledger() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  local object=$work/ledger.o program
  g++ -std=c++17 -c $(pkg-config --cflags ramet-ledger) "$prefix/share/ramet/examples/ledger.cc" -o "$object"
  linked "$object" "$work/ledger_archive" ramet-ledger
  linked "$object" "$work/ledger_shared" ramet-shared
  for program in "$work/ledger_archive" "$work/ledger_shared"; do
    (cd "$work" && "$program") >"$program.log" || die "$(cat "$program.log")"
    has "verify: step 42 is as recorded" "$program.log"
  done
}

# Projects in C alone and in Fortran alone. Also the flags of pkg-config, where the linker drops libraries that nothing before them
# needs.
check_languages() {
  local project=$work/languages language
  for language in C Fortran; do
    mkdir -p "$project/$language"
    printf 'cmake_minimum_required(VERSION 3.16)\nproject(alone %s)\nfind_package(Ramet CONFIG REQUIRED COMPONENTS c)\nadd_executable(alone ${SOURCES})\ntarget_link_libraries(alone PRIVATE Ramet::c)\n' \
      $language >"$project/$language/CMakeLists.txt"
  done
  cc -Wl,--as-needed -I "$prefix/include" "$here/program/plain.c" -o "$work/plain" $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --libs ramet-c)
  "$work/plain"
  configured C "$project/C" -DCMAKE_PREFIX_PATH="$prefix" -DSOURCES="$here/program/plain.c"
  cmake --build "$work/build_C" >"$work/log_C" 2>&1 || die "$(cat "$work/log_C")"
  "$work/build_C/alone"
  command -v gfortran >/dev/null || {
    echo "skipped: no Fortran here"
    return
  }
  configured Fortran "$project/Fortran" -DCMAKE_PREFIX_PATH="$prefix" \
    -DSOURCES="$prefix/include/ramet/ramet.f90;$prefix/share/ramet/examples/c/arrays.f90"
  cmake --build "$work/build_Fortran" >"$work/log_Fortran" 2>&1 || die "$(cat "$work/log_Fortran")"
  (cd "$work" && build_Fortran/alone)
}

# From Python: the shared library under the name for other languages, with all functions that the headers declare.
check_ctypes() {
  local library=$prefix/lib/libramet_c.so
  RAMET_LIBRARY=$library python3 "$prefix/share/ramet/examples/c/ramet_ctypes.py"
  printf '#include <ramet/c.h>\n#include <ramet/c_processes.h>\n' | gcc -E -P -I "$prefix/include" - |
    grep -o '\bramet_[a-z0-9_]*(' | tr -d '(' | sort -u >"$work/declared_c"
  nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/defined_c"
  [[ $(wc -l <"$work/declared_c") -gt 50 ]] || die "$(cat "$work/declared_c")"
  ! comm -23 "$work/declared_c" "$work/defined_c" | grep . || die "declared for C, and not in libramet_c.so"
}

# Ranks of an MPI program, in C and in Fortran: the installed examples.
check_mpi() {
  local program=mpi_training
  command -v mpicc >/dev/null && command -v mpirun >/dev/null || {
    echo "skipped: no MPI here"
    return
  }
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  export OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader TMPDIR=$work
  configured mpi "$prefix/share/ramet/examples"
  command -v gfortran >/dev/null && command -v mpifort >/dev/null && program="mpi_training mpi_ranks"
  cmake --build "$work/build_mpi" --target $program >"$work/log_mpi" 2>&1 || die "$(cat "$work/log_mpi")"
  for program in $program; do timeout 150 mpirun -np 2 "$work/build_mpi/$program"; done
}

# And headers of another build do not link, whether sections are collected or not.
check_pkg_config() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  g++ $(pkg-config --cflags ramet) -c "$here/program/two_lines.cc" -o "$work/two_lines.o"
  local package
  for package in ramet ramet-shared; do
    linked "$work/two_lines.o" "$work/two_lines_$package" $package
    "$work/two_lines_$package"
  done
  # With processes: no program for it, which check_components has.
  pkg-config --libs ramet-c_processes | grep -q -- "-l:libramet_c_processes.a.*-l:libramet_processes.a.*-lgloo.*-l:libramet_c.a.*-lstdc++.*-l:libramet.a.*-lm" ||
    die "the order of the libraries"
  pkg-config --exact-version=0.1.0 ramet

  local includes=$work/other_headers option
  cp -r "$prefix/include" "$includes"
  sed -i "s/one_build__0_1_0_......../one_build__0_1_0_00000000/" "$includes/ramet/installed.h"
  g++ -c -I "$includes" "$here/program/two_lines.cc" -o "$work/mismatch.o"
  for option in -Wl,--gc-sections -Wl,--no-gc-sections -fuse-ld=lld; do
    refused mismatch ramet_headers_and_library_of_one_build__0_1_0_00000000 \
      g++ "$work/mismatch.o" -o "$work/mismatch" "$option" -L "$prefix/lib" -l:libramet.a -lz -pthread
  done
}

# Without the component that it needs, a program's error names the component.
check_pickle() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  printf '#include <ramet.h>\nint main() { return ramet::pickle_load(ramet::pickle_save(ramet::IValue(7))).toInt() == 7 ? 0 : 1; }\n' >"$work/pickle.cc"
  g++ -c $(pkg-config --cflags ramet) "$work/pickle.cc" -o "$work/pickle.o"
  refused pickle pickle_load__link_Ramet_formats_too linked "$work/pickle.o" "$work/pickle" ramet
  linked "$work/pickle.o" "$work/pickle" ramet-formats
  "$work/pickle"
}

# Of the same tree; installed in a folder as if it were a system's.
check_deb() {
  local deb=$work/ramet.deb root=$work/system
  python3 tools/sdk/make_deb.py "$prefix" "$deb" -Zgzip -z1 >"$work/needs"
  has "libc6 (>= 2." "$work/needs"
  for package in zlib1g-dev libgloo-dev libcairo2-dev libdw1 libstdc++6; do has "$package" "$work/needs"; done
  [[ $(dpkg-deb -f "$deb" Package Version) == $'Package: libramet-dev\nVersion: 0.1.0-1' ]] || die "$(dpkg-deb -f "$deb")"
  mkdir -p "$root"
  dpkg-deb -x "$deb" "$root"
  (cd "$root" && dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./md5sums | md5sum --check --quiet)
  diff -r --no-dereference "$prefix" "$root/usr" >"$work/differs" || true
  sed -E "s#Only in ($prefix|$root/usr)/##" "$work/differs" | sort | cmp - <(printf 'share/doc: libramet-dev\nshare/doc: ramet\nshare/ramet: manifest\n') ||
    die "$(head -n 20 "$work/differs")"
  [[ -s $root/usr/share/doc/libramet-dev/copyright && $(stat -c %a "$root/usr/lib/libramet.a") == 644 ]]
}

# ---- LibTorch's projects, as they are -----------------------------------------------------------

# torch NAME PROGRAM...: builds a project with find_package(Torch) and nothing else that is Ramet's; then its programs
torch() {
  configured "$1" "$here/projects/$1" -DCMAKE_PREFIX_PATH="$prefix/share/ramet/libtorch"
  cmake --build "$work/build_$1" >"$work/log_$1" 2>&1 || die "$(cat "$work/log_$1")"
}

check_torch_mnist() {
  local images=/usr/share/datasets/fashion-mnist name
  mkdir "$work/mnist"
  for name in {train,t10k}-{images-idx3,labels-idx1}-ubyte; do zcat "$images/$name.gz" >"$work/mnist/$name"; done
  torch mnist
  "$work/build_mnist/mnist" "$work/mnist"
}
check_torch_regression() {
  torch regression
  "$work/build_regression/regression"
}
check_torch_inference() {
  torch inference
  "$work/build_inference/make_weights" "$work/weights.pt"
  "$work/build_inference/serve" "$work/weights.pt"
  head -c 1000 "$work/weights.pt" >"$work/cut.pt"
  refused cut "error loading the model" "$work/build_inference/serve" "$work/cut.pt"
}
check_torch_autograd_function() {
  torch autograd_function
  (cd "$work/build_autograd_function" && ctest --output-on-failure)
}
check_torch_split() {
  torch split
  "$work/build_split/app/balance"
}

# Only a project that asks for it gets it, and a request for what is not there gets an error.
check_torch_opt_in() {
  local project="$work/asks"
  mkdir "$project"
  printf 'cmake_minimum_required(VERSION 3.16)\nproject(asks CXX)\nfind_package(Torch %s REQUIRED)\n' '${WANTED}' >"$project/CMakeLists.txt"
  refused torch_without "Torch" cmake -S "$project" -B "$work/build_4" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF
  refused torch_newer "version: 2.15.0" cmake -S "$project" -B "$work/build_5" -DCMAKE_PREFIX_PATH="$prefix/share/ramet/libtorch" -DWANTED=3.0
  refused torch_component 'the component "teleport"' cmake -S "$project" -B "$work/build_6" \
    -DCMAKE_PREFIX_PATH="$prefix/share/ramet/libtorch" -DRAMET_TORCH_COMPONENTS=teleport
}

# ---- libramet.so --------------------------------------------------------------------------------

check_exports() {
  local so=$prefix/lib/libramet.so names=$work/exports
  nm -D --defined-only "$so" | awk '{ sub(/@.*/, "", $3); print $2, $3 }' | sort -u >"$names"
  # Ramet's own names, no unique ones (which would keep plug-ins in memory), nothing of the standard library's.
  ! grep -vE ' (_ZN?[A-Z]*K?[RO]?5ramet|_Z[A-Z]+[RK]*N?[RK]*5ramet|_ZT[hv][n0-9_]+N?K?5ramet|_ZT[hv][n0-9_]+NK?5ramet|_ZG?V?ZNK?5ramet|ramet_|RAMET_)' "$names" |
    grep -v ' RAMET_0.1$' || die "names that are not Ramet's"
  ! grep '^u ' "$names" || die "unique symbols"
  grep -q NODELETE <(readelf -dW "$so") || die "the library may be unloaded under its threads"
  # What programs call of the headers' functions, module by module, leaves: the tests' modules use all of them.
  awk '{ print $2 }' "$names" | sort -u >"$work/defined"
  nm -u "$built"/tests/libmodules.a | awk '$1 == "U" { print $2 }' | grep 5ramet | sort -u >"$work/called"
  [[ $(wc -l <"$work/called") -gt 400 ]] || die "what calls everything calls little"
  ! comm -23 "$work/called" "$work/defined" | c++filt | grep -v '^ramet::\(testing\|test\)' || die "declared in a public header, and does not leave the library: RAMET_API is missing"
}

# ---- manners ------------------------------------------------------------------------------------

strict="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"

# Not as system headers, for which compilers do not print warnings. all_headers FILE: a unit of all of them but the one that wants
# Eigen, and of the compatibility headers those that torch.h includes.
all_headers() {
  (
    cd "$prefix/include"
    find ramet -name '*.h' | grep -vE '^ramet/(libtorch|nn/formats/eigen)' | sort | sed 's/.*/#include <&>/'
    echo '#include <ramet/libtorch/torch/torch.h>'
  ) >"$1"
}
check_warnings_gcc() {
  local standard
  for standard in c++17 c++20 c++23; do g++ -std=$standard $strict -fsyntax-only -I "$prefix/include" -include ramet/see.h "$here/manners/unit.cc"; done
  all_headers "$work/all_gcc.cc"
  g++ -std=c++20 $strict -fsyntax-only -I "$prefix/include" "$work/all_gcc.cc"
}
check_warnings_clang() {
  local standard clang
  clang=$(compgen -G '/usr/bin/clang++*' | sort -V | tail -n 1)
  for standard in c++17 c++20 c++2b; do "$clang" -std=$standard $strict -fsyntax-only -I "$prefix/include" -include ramet/see.h "$here/manners/unit.cc"; done
  all_headers "$work/all_clang.cc"
  "$clang" -std=c++17 $strict -fsyntax-only -I "$prefix/include" "$work/all_clang.cc"
}

# One object of C++17 with the archive and with the shared library, of which it catches exceptions; a program of clang's.
check_unit() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  g++ -std=c++17 -c -I "$prefix/include" "$here/manners/unit.cc" -o "$work/unit.o"
  local kind
  for kind in ramet ramet-shared; do
    g++ "$work/unit.o" -o "$work/unit_$kind" $(pkg-config --libs $kind)
    "$work/unit_$kind" >"$work/unit_$kind.out"
    has "[view]" "$work/unit_$kind.out"
  done
  cmp "$work"/unit_ramet{,-shared}.out
  "$(compgen -G '/usr/bin/clang++*' | sort -V | tail -n 1)" -std=c++17 -I "$prefix/include" "$here/manners/unit.cc" -o "$work/unit_clang" \
    $(pkg-config --libs ramet)
  "$work/unit_clang" | cmp - "$work/unit_ramet.out"
}

# A macro that gives standard containers another layout is one error that names it; an older standard is named before what it lacks.
check_defines() {
  local option compiler
  refused standard "Ramet wants C++17 or later" g++ -Wfatal-errors -std=c++14 -fsyntax-only -I "$prefix/include" "$here/program/two_lines.cc"
  for option in "bits -m32" "rtti -fno-rtti" "exceptions -fno-exceptions" "libc++ -D_LIBCPP_VERSION=1"; do
    for compiler in g++ "$(compgen -G '/usr/bin/clang++*' | sort -V | tail -n 1)"; do
      refused "${option% *}" "compile this unit without -" "$compiler" -Wfatal-errors -std=c++17 "${option#* }" -fsyntax-only -I "$prefix/include" \
        "$here/program/two_lines.cc"
    done
  done
  refused debug "compiled without _GLIBCXX_DEBUG" g++ -Wfatal-errors -D_GLIBCXX_DEBUG -fsyntax-only -I "$prefix/include" "$here/program/two_lines.cc"
  refused abi "with _GLIBCXX_USE_CXX11_ABI=1" g++ -Wfatal-errors -D_GLIBCXX_USE_CXX11_ABI=0 -fsyntax-only -I "$prefix/include" "$here/program/two_lines.cc"
}

# foreign FILE...: fails, and names them, where objects name thread-local variables that none of them defines
foreign() {
  readelf -sW "$@" | awk '$4 == "TLS" { sub(/@.*/, "", $8); if ($7 == "UND") asked[$8]; else there[$8] }
    END { for (name in asked) if (!(name in there)) { print name; failed = 1 }; exit failed }'
}

# Nothing runs before main(), and thread-local memory is so little that a library that is loaded late still gets it.
check_static() {
  ! nm "$prefix"/lib/libramet{,_processes,_formats,_see,_c,_c_processes}.a 2>/dev/null | grep _GLOBAL__sub_I || die "static constructors"
  ! readelf -SW "$prefix"/lib/libramet{,_processes,_formats,_see,_c,_c_processes}.a 2>/dev/null | grep -E '\.(init_array|ctors)' || die "static constructors"
  ! readelf -rW "$prefix/lib/libramet.so" | grep -E 'R_X86_64_(DTPMOD|DTPOFF|TLSDESC)' || die "thread-local memory that is found by a call"
  # None of other libraries: Note [Own thread-local memory].
  foreign "$prefix"/lib/libramet*.a || die "thread-local memory of other libraries in an archive"
  foreign "$prefix/lib/libramet.so" || die "thread-local memory of other libraries in libramet.so"
  g++ -O1 -fPIC -ftls-model=initial-exec -c "$here/manners/once.cc" -o "$work/once.o"
  ! foreign "$work/once.o" >/dev/null || die "std::call_once was not found"
  local bytes
  bytes=$((0x$(readelf -lW "$prefix/lib/libramet.so" | awk '$1 == "TLS" { print substr($6, 3) }')))
  echo "thread-local: $bytes bytes"
  [[ $bytes -gt 0 && $bytes -le 512 ]] || die "expected at most 512"
}

check_process() {
  linked "$here/manners/process.cc" "$work/process" ramet "-fopenmp -O1"
  local cores
  cores=$(nproc)
  # One thread where Ramet's variable says so; it overrides OpenMP's variable.
  env RAMET_NUM_THREADS=1 "$work/process" threads 1
  "$work/process" threads "$cores"
  env OMP_NUM_THREADS=3 "$work/process" threads 3
  env OMP_NUM_THREADS="4,2" "$work/process" threads 4
  env OMP_NUM_THREADS=3 RAMET_NUM_THREADS=2 "$work/process" threads 2
  env -u OMP_NUM_THREADS OMP_NUM_THREADS=many "$work/process" threads "$cores" 2>/dev/null
  timeout 120 "$work/process" fork
  "$work/process" modes
  "$work/process" openmp
}

check_plugins() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  # Unique symbols, of the standard library's templates here, would keep the plug-in in memory whatever it holds.
  g++ -std=c++17 -fPIC -fvisibility=hidden -fno-gnu-unique -c -I "$prefix/include" "$here/manners/plugin.cc" -o "$work/plugin.o"
  g++ -std=c++17 "$here/manners/host.cc" -o "$work/host" -ldl -pthread
  local name kind
  for kind in ramet ramet-shared; do
    for name in one two; do g++ -shared "$work/plugin.o" -o "$work/${kind}_$name.so" $(pkg-config --libs $kind); done
  done
  ! nm -DC --defined-only "$work/ramet_one.so" | grep ' [TDB] ramet::' || die "a plug-in shows the archive that it holds"
  timeout 120 "$work/host" static "$work"/ramet_{one,two}.so
  timeout 120 "$work/host" shared "$work"/ramet-shared_{one,two}.so
}

# A host that has loaded libstdc++ late and used its thread-local variables, as with PyTorch and ONNX Runtime. They have no fixed
# places then, and the loader refuses what asks for some (Note [Own thread-local memory]).
check_late() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  local images=/usr/share/datasets/fashion-mnist kind library
  gcc "$here/manners/late.c" -o "$work/late" -ldl
  ! ldd "$work/late" | grep -F 'libstdc++' || die "the host has libstdc++ from the start"
  g++ -shared -fPIC "$here/manners/once.cc" -o "$work/once.so"
  g++ -shared -fPIC -ftls-model=initial-exec "$here/manners/once.cc" -o "$work/once_fixed.so"
  refused late "static TLS block" "$work/late" "$work/once.so" "$work/once_fixed.so"
  "$work/late" "$work/once.so" "$prefix/lib/libramet.so"
  g++ -std=c++17 -fPIC -fvisibility=hidden -c -I "$prefix/include" "$here/manners/reads.cc" -o "$work/reads.o"
  for kind in ramet ramet-shared; do
    library=$work/reads_$kind.so
    g++ -shared "$work/reads.o" -o "$library" $(pkg-config --libs $kind)
    "$work/late" "$work/once.so" "$library" reads "$images"
    python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1]).once(); sys.exit(ctypes.CDLL(sys.argv[2]).reads(sys.argv[3].encode()))' \
      "$work/once.so" "$library" "$images"
  done
}

# A shared library that the program is linked with sees what the program's headers define. With the archive in both, that is one
# clear error. Bound to its own, it has a library of its own; with libramet.so both have one.
check_copies() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  local part=$work/libpart.so
  g++ -std=c++17 -O2 -c -I "$prefix/include" "$here/manners/copies.cc" -o "$work/copies.o"
  g++ -std=c++17 -O2 -fPIC -fvisibility=hidden -DLIBRARY -c -I "$prefix/include" "$here/manners/copies.cc" -o "$work/part.o"
  copies() {  # copies KIND [OPTIONS]: of the library
    g++ -shared "$work/part.o" -o "$part" ${2:-} $(pkg-config --libs "$1") &&
      g++ "$work/copies.o" -o "$work/copies" "$part" -Wl,-rpath,"$work" $(pkg-config --libs "$1") && "$work/copies"
  }
  refused copies "several copies of libramet.a that call each other" copies ramet
  copies ramet -Wl,-Bsymbolic
  copies ramet-shared
}

# In ./tools/test --long, which installs these: OpenBLAS, OpenMP, oneTBB, Boost, MPI and OpenCV's core in one program.
long_beside() {
  local flags
  flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs ramet ompi tbb openblas)
  g++ -std=c++17 -O1 -fopenmp -I/usr/include/opencv4 "$here/manners/beside.cc" -o "$work/beside" $flags -lboost_thread -lopencv_core
  timeout 300 "$work/beside"
}

# -------------------------------------------------------------------------------------------------

started=$SECONDS
make_tree --prefix "$work/made" --shared $(lists ramet processes formats script ledger see c c_processes cuda) >/dev/null
mv "$work/made" "$prefix"
echo "time: $((SECONDS - started)) s for the tree; $(cd "$prefix/lib" && stat -L -c '%n %s bytes' libramet.a libramet.so | paste -sd,)"

checks=("$@")
[[ $# -gt 0 ]] || mapfile -t checks < <(declare -F | sed -n 's/^declare -f check_/check_/p')
for check in "${checks[@]}"; do
  while [[ $(jobs -rp | wc -l) -ge 2 ]]; do wait -n || true; done
  (
    set +e
    begun=$SECONDS
    (
      set -e
      "$check"
    ) >"$work/$check.log" 2>&1
    echo "$? $((SECONDS - begun))" >"$work/$check.code"
  ) &
done
wait

failed=0
for check in "${checks[@]}"; do
  read -r code seconds <"$work/$check.code"
  if [[ $code -eq 0 ]]; then
    echo "OK: ${check#check_} ($seconds s) $(tail -n 1 "$work/$check.log")"
  else
    failed=1
    cat "$work/$check.log"
    echo "FAILED: ${check#check_}"
  fi
done
echo "time: $((SECONDS - started)) s"
exit $failed
