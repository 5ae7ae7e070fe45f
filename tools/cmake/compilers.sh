#!/usr/bin/env bash
# Does Ramet compile and pass tests with other compilers, and are the bits the same?
#
# usage: compilers.sh [--quick] [--work FOLDER] [--like PROGRAM] [NAME...]
#
# NAME is g++-11, g++-12, clang-14, clang-16 or clang-19; without one those of which the whole core was compiled before: g++ and
# clang 19. What is compiled, with warnings as errors: the core, a training program and tests. --quick has the runtime and the kernels with their tests alone.
# A line for each: the compiler, the tests, digests of training, the program's size, the time. What is not installed is skipped.
#
# FOLDER keeps what was built; without it a build goes before the next begins. RAMET_JOBS is how many compilations run at once.
# PROGRAM is a training program, for example Bazel's; without it the first build's digests are expected. The exit code is 1 where
# a build or a test failed, or where a digest differs.
set -euo pipefail
RAMET_PROGRAM=compilers
source "$(dirname "$0")/../setup.sh"
unset CXXFLAGS CFLAGS LDFLAGS CMAKE_GENERATOR RAMET_ISA

all=(g++-12 g++-11 clang-14 clang-16 clang-19)
work=
keep=false
quick=false
like=
names=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --work)
      [[ -n ${2:-} ]] || ramet_misuse "--work: got nothing, expected a folder"
      work=$2 keep=true
      shift
      ;;
    --quick) quick=true ;;
    --like)
      [[ -x ${2:-} ]] || ramet_misuse "--like: got ${2:-nothing}, expected a program"
      like=$2
      shift
      ;;
    -h | --help)
      ramet_usage
      exit 0
      ;;
    *)
      [[ " ${all[*]} " == *" $1 "* ]] || ramet_misuse "got $1, expected some of ${all[*]}"
      names+=("$1")
      ;;
  esac
  shift
done
[[ ${#names[@]} -gt 0 ]] || names=(g++-12 g++-11 clang-19)
if $keep; then
  mkdir -p "$work"
  work=$(cd "$work" && pwd -P)
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
jobs=${RAMET_JOBS:-$(nproc)}
generator=(-G "Unix Makefiles") go_on=(-k)
if command -v ninja >/dev/null; then generator=(-G Ninja) go_on=(-k 0); fi

# What a training run covers: convolutions and dropout, attention, recurrences, batch norm.
models=("cnn --dropout 0.2 --data $work/images" "gpt --data $RAMET_ROOT/CONTRIBUTING.md" "lstm --data $RAMET_ROOT/CONTRIBUTING.md"
  "seq2seq --data dates" "resnet --data shapes")
common=(--epochs 1 --limit 64 --batch 16 --seed 3 --devices cpu:0,cpu:1 --reduce tree:4 --digest)

# Those of tests/runtime and tests/digests, and some of kernels, of operations with their gradients, of layers and of optimizers.
tests=(ramet_tests_runtime_all ramet_tests_digests_all ramet_tests_kernels_vec_test ramet_tests_kernels_conv2d_test ramet_tests_kernels_softmax_test
  ramet_tests_kernels_reduce_program_1 ramet_tests_kernels_pointwise_program_1 ramet_tests_kernels_optimizer_step_test
  ramet_tests_autograd_ops_program_1 ramet_tests_nn_layers_program_1 ramet_tests_nn_optim_program_1)

quick_targets=(ramet_runtime ramet_kernels ramet_tests_runtime_all ramet_tests_kernels_vec_test ramet_tests_kernels_conv2d_test
  ramet_tests_kernels_softmax_test ramet_tests_kernels_reduce_program_1 ramet_tests_kernels_pointwise_program_1
  ramet_tests_kernels_optimizer_step_test ramet_tests_kernels_matrix_program_1)

# chosen NAME: sets cxx and options of CMake, or the reason why not.
chosen() {
  local name=$1 c
  reason=
  case $name in
    g++-*) c=gcc-${name#g++-} cxx=$name ;;
    clang-*) c=$name cxx=clang++-${name#clang-} ;;
  esac
  if ! command -v "$cxx" >/dev/null || ! command -v "$c" >/dev/null; then
    reason="there is no $cxx"
    return
  fi
  options=(-DCMAKE_C_COMPILER="$c" -DCMAKE_CXX_COMPILER="$cxx")
}

# Tests, where their programs were built; sets passed and run.
run_tests() {
  local folder=$1 index=0 label list=0,0,0
  run=0
  while read -r label; do
    index=$((index + 1))
    [[ -x $folder/ramet/bin/${label/://} ]] || continue
    list+=,$index
    run=$((run + 1))
  done < <(ctest --test-dir "$folder" -N | sed -n 's/^ *Test *#[0-9]*: //p')
  ctest --test-dir "$folder" -I "$list" -j "$jobs" --output-on-failure >"$folder/ctest.log" 2>&1 || cp "$folder/ctest.log" "$work/$name.log"
  passed=$(sed -n 's/^.* \([0-9]*\) tests failed out of \([0-9]*\)$/\2 \1/p' "$folder/ctest.log" | awk '{ print $1 - $2 }')
}

# digests PROGRAM
digests() {
  local train=$1 model text
  for model in "${models[@]}"; do
    text=$("$train" --model $model "${common[@]}" --out "$work/out" 2>&1) || {
      echo "failed:$(tail -n 1 <<<"$text")"
      return
    }
    sed -n 's/^digest //p' <<<"$text"
  done
}

rm -rf "$work/images"
python3 -B "$RAMET_ROOT/tests/tools/small_images.py" "$work/images"
expected=
[[ -z $like ]] || expected=$(digests "$like" | tr '\n' ' ')
failed=0
for name in "${names[@]}"; do
  chosen "$name"
  if [[ -n $reason ]]; then
    echo "$name: skipped: $reason"
    continue
  fi
  folder=$work/$name started=$SECONDS size=
  targets=(ramet_libraries ramet_tools_training_train "${tests[@]}") programs=//tools/training:train
  ! $quick || targets=("${quick_targets[@]}") programs=
  if ! cmake -S "$RAMET_ROOT/tools/cmake" -B "$folder" "${generator[@]}" -DRAMET_VARIANTS="$(ramet_variant)" -DRAMET_TESTS=ON \
    -DRAMET_PROGRAMS="$programs" -DRAMET_WARNINGS_ARE_ERRORS=ON "${options[@]}" >"$work/$name.log" 2>&1 ||
    ! cmake --build "$folder" -j "$jobs" --target "${targets[@]}" -- "${go_on[@]}" >>"$work/$name.log" 2>&1; then
    echo "$name: FAILED to build ($work/$name.log)"
    grep -E "(error|Error|undefined)[: ]" "$work/$name.log" | head -n 20 >&2 || tail -n 20 "$work/$name.log" >&2
    failed=1
    continue
  fi
  built=$((SECONDS - started))
  run_tests "$folder"
  [[ $passed == "$run" ]] || {
    failed=1
    tail -n 40 "$folder/ctest.log" >&2
  }
  version=$("$cxx" --version | head -n 1)
  if [[ -z $programs ]]; then
    found=none
  else
    found=$(digests "$folder/ramet/bin/tools/training/train" | tr '\n' ' ')
    : "${expected:=$found}"
    if [[ $found != "$expected" ]]; then
      failed=1
      found+="OTHER than $expected"
    fi
    size=$(strip -o "$work/stripped" "$folder/ramet/bin/tools/training/train" && stat -c %s "$work/stripped")
  fi
  echo "$name: $version: $passed of $run tests passed; digests: $found; ${size:+stripped training program: $size bytes; }built in $built s"
  $keep || rm -rf "$folder"
done
exit $failed
