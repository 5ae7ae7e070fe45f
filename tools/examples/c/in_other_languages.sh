#!/usr/bin/env bash
# The C interface from other languages: compiles the examples of one and runs them, over the shared library.
# usage: in_other_languages.sh fortran|headers|mpi|python LIBRARY      (the working folder is the repository's root)
set -euo pipefail

language=$1
library=$(realpath "$2")
root=$PWD
examples=tools/examples/c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
link=("$library" "-Wl,-rpath,$(dirname "$library")" -lm)

fail() {
  echo "FAILED: $*"
  exit 1
}
need() {
  command -v "$1" >/dev/null && return
  echo "skipped: no $1 here (Debian's package $2 has it)"
  exit 0
}

fortran_modules() {
  (cd "$work" && "$1" -std=f2008 -Wall -Wextra -Wpedantic -Werror -c "$root"/{nn/c/ramet,parallel/c/ramet_processes,nn/c_script/ramet_script}.f90)
}

case $language in
  fortran)
    need gfortran gfortran
    fortran_modules gfortran
    for program in arrays closure mixed_precision scripted; do
      gfortran -O1 -std=f2008 -Wall -Werror -I"$work" $examples/$program.f90 "$work"/ramet{,_script}.o "${link[@]}" -o "$work/$program"
      (cd "$work" && "./$program" "$root/tests/nn/script/goldens/mlp_scripted.pt") || fail "$program.f90"
    done
    ;;
  headers)
    # Each alone, in each C and in C++; what they declare is there, and what is there they declare.
    for header in nn/c/c.h parallel/c/c_processes.h nn/c_script/c_script.h; do
      echo "#include \"$header\"" >"$work/alone.c"
      for standard in c99 c11 c17; do
        gcc -std=$standard -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror -I. -fsyntax-only "$work/alone.c" ||
          fail "$header as $standard"
      done
      g++ -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only "$work/alone.c" || fail "$header as C++17"
    done
    printf '#include "%s"\n' parallel/c/c_processes.h nn/c_script/c_script.h >"$work/all.c"
    gcc -E -P -I. "$work/all.c" | grep -o '\bramet_[a-z0-9_]*(' | tr -d '(' | sort -u >"$work/declared"
    nm -D --defined-only "$library" | awk '$3 ~ /^ramet_/ { print $3 }' | sort -u >"$work/there"
    diff "$work/declared" "$work/there" || fail "< declared in the headers alone, > in the library alone"
    echo "OK: $(wc -l <"$work/there") functions"
    ;;
  mpi)
    need mpicc libopenmpi-dev
    need mpirun openmpi-bin
    mpicc -std=c99 -Wall -Wextra -Werror -I. $examples/mpi_training.c "${link[@]}" -o "$work/mpi_training"
    # Open MPI's: in a container, on a machine with fewer cores than ranks and without ssh.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader TMPDIR=$work
    programs=(mpi_training)
    if command -v mpifort >/dev/null; then
      fortran_modules mpifort
      mpifort -I"$work" $examples/mpi_ranks.f90 "$work"/ramet{,_processes}.o "${link[@]}" -o "$work/mpi_ranks"
      programs+=(mpi_ranks)
    fi
    for ranks in 1 3; do
      for program in "${programs[@]}"; do
        timeout 150 mpirun -np $ranks "$work/$program" || fail "$program with $ranks ranks"
      done
    done
    ;;
  python)
    RAMET_LIBRARY=$library python3 $examples/ramet_ctypes.py || fail ramet_ctypes.py
    ;;
  *) fail "no such language: $language" ;;
esac
