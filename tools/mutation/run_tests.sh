#!/usr/bin/env bash
# Tests one mutant: run_tests.sh TARGETS FILE FIRST_TEST BUILD, in the copy of the tree that this script is part of. TARGETS
# may begin with options. FILE is what was changed and FIRST_TEST the test that mirrors it; both may be empty. BUILD is
# `default`, `asan` or `check`. The exit code is Bazel's: 0 all pass, 1 does not build, 3 a test fails. `run_tests.sh --end`
# stops the copy's Bazel.
set -euo pipefail
RAMET_PROGRAM=mutate
source "$(dirname "$0")/../setup.sh"

if [[ $1 == --end ]]; then
  ramet_bazel shutdown >/dev/null 2>&1 || true
  # Bazel takes the permission to write from its outputs; a temporary folder must be removable.
  chmod -R u+w "$RAMET_OUTPUT_BASE" 2>/dev/null || true
  exit 0
fi

# A mutant's objects are not needed again: the shared cache is read, and they are not written to it.
options=(--notest_keep_going --noremote_upload_local_results --build_tests_only)
if [[ $4 == default ]]; then
  # The time limit is for mutants that loop for ever. The memory limit is for those that allocate for ever: others use the
  # machine too. (Sanitizers reserve more address space than there is memory.)
  options+=(
    --test_timeout="${RAMET_MUTANT_TIMEOUT:-240}"
    --run_under="prlimit --as=17179869184 --core=0"
    --test_tag_filters=-takes_long
  )
else
  options+=(--config="$4")
fi
# A changed operator is often worth a warning; whether it is an error as well is for the tests to say.
case $2 in
  *.cc) options+=(--per_file_copt="^${2//./[.]}\$@-Wno-error") ;;
  *.cu) options+=(--per_file_copt="/cuda_host/$(basename "${2//./[.]}")[.]cc\$@-Wno-error") ;;
esac

# The mirroring test first and alone: mostly it is enough.
code=0
if [[ -n $3 ]]; then ramet_bazel test "${options[@]}" -- "$3" || code=$?; fi
if [[ $code -eq 0 ]]; then ramet_bazel test "${options[@]}" $1 || code=$?; fi
exit "$code"
