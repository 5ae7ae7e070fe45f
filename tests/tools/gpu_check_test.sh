#!/usr/bin/env bash
# gpu_check against packages of stand-ins. Tests pass, fail, skip, crash, hang and lose their device. A compute-sanitizer works,
# finds something, or refuses. There is a case without a GPU. Then it runs with the benchmark of this build on emulated GPUs.
# usage: gpu_check_test.sh GPU_BENCH
set -euo pipefail

bench=$(realpath "$1")
work=$TEST_TMPDIR/work
package=$work/package
failed=0
mkdir -p "$package/bench" "$work/bin"
cp tools/gpu_check tools/gpu/run_group "$package/"
cp tools/benchmarks/gpu/{drive,torch_rows}.py "$package/bench/"
printf 'Ramet of a test\nCUDA 13.0, driver 580 or newer, a compiler\n' >"$package/VERSION"

# A GoogleTest program in what it prints. What case C does is its name.
cat >"$package/gpu_tests" <<'E2'
#!/usr/bin/env bash
for word in "$@"; do [[ $word != --gtest_filter=* ]] || filter=${word#*=}; done
without=:$([[ $filter != *-* ]] || echo "${filter#*-}"):
[[ -z ${CHECK_LOG:-} ]] || echo "$RAMET_CUDA_DEVICES $filter" >>"$CHECK_LOG"
code=0
IFS=: read -ra cases <<<"${filter%%-*}"
for case in "${cases[@]}"; do
  [[ $without != *:$case:* && $case != *.Absent* ]] || continue
  echo "[ RUN      ] $case"
  if [[ $code -ne 0 ]]; then
    echo "[  SKIPPED ] $case (0 ms)"
    continue
  fi
  case $case in
    *.Alone) mkdir "$TEST_TMPDIR/at_once" && sleep 0.5 && rmdir "$TEST_TMPDIR/at_once" && echo "[       OK ] $case (0 ms)" ;;
    *.Passes2) echo "no line end[       OK ] $case (0 ms)" ;;
    *.Passes*) echo "[       OK ] $case (0 ms)" ;;
    *.Skips) echo "a reason" && echo "[  SKIPPED ] $case (0 ms)" ;;
    *.Fails*) echo "x.cc:1: Failure of $case" && echo "[  FAILED  ] $case (0 ms)" && code=1 ;;
    *.Crashes) kill -SEGV $$ ;;
    *.Hangs) : >"$TEST_TMPDIR/hangs" && sleep 100 ;;
  esac
done
exit $code
E2
cat >"$package/gpu_bench" <<'E2'
#!/usr/bin/env bash
[[ -z ${CHECK_NO_GPU:-} ]] || { echo "gpu_bench: no GPU to measure: no driver" >&2 && exit "$CHECK_NO_GPU"; }
[[ $1 != --serve ]] || read -r _
[[ $1 == --probe ]] && printf 'a kernel has run\ncards: %s\n' "${CHECK_CARDS:-1}" || exit 4
E2
cat >"$work/bin/fine-sanitizer" <<'E2'
#!/usr/bin/env bash
tool=$2
while [[ $1 != */gpu_* ]]; do shift; done
"$@" || exit 1
code=0
[[ $1 == */gpu_bench || ${RAMET_CUDA_CACHING:-1} == $([[ $tool == memcheck ]] && echo 0 || echo 1) ]] || code=86
if [[ $* == *Second* && $tool == racecheck ]]; then echo "========= Error: Race reported in kernel k" && code=86; fi
echo "========= ${tool^^} SUMMARY: $code hazards"
exit $code
E2
printf '#!/bin/sh\necho "========= Error: Device not supported. Please refer to the documentation"\necho "========= ERROR SUMMARY: 1 error"\nexit 1\n' >"$work/bin/refusing-sanitizer"
chmod +x "$package"/gpu_* "$work"/bin/*
{
  printf 'a/first_test\ttests,sanitizer\tFirst.Passes1:First.Passes2\n'
  printf 'a/second_test\ttests,sanitizer\tSecond.Passes1:Second.Skips\n'
  printf 'b/bad_test\ttests\tBad.Passes1:Bad.Fails1:Bad.Passes2:Bad.Crashes:Bad.Fails2:Bad.Hangs:Bad.Passes3\n'
  printf 'parallel/scenarios_test\tscenarios\tScenario.Passes17\n'
  printf 'parallel/distributed/cuda/group_test\tcards\tGroup.Passes1:Group.Skips\n'
} >"$package/tests.list"

fail() {
  echo "FAILED: $*"
  for file in stdout stderr report.md; do [[ ! -f $work/$file ]] || { echo "--- $file" && cat "$work/$file"; }; done
  failed=1
}
# check CODE ARGUMENTS...: runs gpu_check.
check() {
  local expected=$1 code=0
  shift
  rm -f "$work/report.md"
  call=$*
  "$package/gpu_check" --report "$work/report.md" --limit 4 "$@" >"$work/stdout" 2>"$work/stderr" || code=$?
  [[ $code -eq $expected ]] || fail "$call: exit code $code, expected $expected"
}
expect() { grep -qF -- "$1" "$work/report.md" || fail "$call: the report does not say: $1"; }

# Good tests, on the devices that belong to each part.
cp "$package/tests.list" "$work/all"
grep -v '^b/' "$work/all" >"$package/tests.list"
CHECK_LOG=$work/log check 0 --only tests,scenarios
expect '| tests | 3 | 0 | 0 | 0 | 1 | 0 |'
expect '| scenarios | 1 | 0 | 0 | 0 | 0 | 0 |'
expect '- tests: Second.Skips skipped: a reason'
expect '- package: Ramet of a test'
expect 'Nothing failed.'
grep -qx '0,0,0,0 Scenario.Passes17' "$work/log" || fail "the scenarios' devices: $(cat "$work/log")"
grep -qx '0,0 First.Passes1:First.Passes2' "$work/log" || fail "the tests' devices: $(cat "$work/log")"

: >"$package/tests.list"
check 1 --only tests
expect '### tests: no case ran'

# A GPU for each rank: with one there is nothing to run, with two there is.
cp "$work/all" "$package/tests.list"
check 0 --only cards
expect '| cards | | | | | | all |'
expect '- cards: not run: one card'
expect 'Nothing failed. Not run, as said above: 1.'
CHECK_CARDS=2 CHECK_LOG=$work/cards check 0 --only cards
expect '| cards | 1 | 0 | 0 | 0 | 1 | 0 |'
expect '- cards: Group.Skips skipped: a reason'
grep -qx ' Group.Passes1:Group.Skips' "$work/cards" || fail "the cards of process groups: $(cat "$work/cards")"

# No other test runs next to them: each process has NCCL on all GPUs. Where all of them skip themselves for lack of NCCL, nothing
# failed.
printf 'parallel/distributed/cuda/%s_test\tcards\t%s.Alone\n' a A b B >"$package/tests.list"
CHECK_CARDS=2 check 0 --only cards --jobs 2
expect '| cards | 2 | 0 | 0 | 0 | 0 | 0 |'
printf 'parallel/distributed/cuda/group_test\tcards\tGroup.Skips\n' >"$package/tests.list"
CHECK_CARDS=2 check 0 --only cards
expect '| cards | 0 | 0 | 0 | 0 | 1 | 0 |'
expect '- cards: not run: every case has skipped itself'
expect 'Nothing failed. Not run, as said above: 1.'

# Cases that the program does not have: GoogleTest runs none, and is content.
printf 'a/first_test\ttests\tFirst.Passes1\na/gone_test\ttests\tGone.Absent1:Gone.Absent2\na/half_test\ttests\tHalf.Absent:Half.Passes1\n' >"$package/tests.list"
check 1 --only tests
expect '| tests | 2 | 2 | 0 | 0 | 0 | 0 |'
expect '### tests: a/gone_test failed'
expect 'gpu_tests did not run: Gone.Absent1 Gone.Absent2'
expect 'gpu_tests did not run: Half.Absent'
printf 'a/failing_test\ttests\tLast.Passes1:Last.Fails1\n' >"$package/tests.list"
check 1 --only tests
expect '| tests | 1 | 1 | 0 | 0 | 0 | 0 |'

# Time is over in the middle: nothing failed, and yet not all is well.
printf 'a/first_test\ttests\tFirst.Passes1\na/slow_test\ttests\tSlow.Passes1:Slow.Hangs\n' >"$package/tests.list"
check 3 --only tests --seconds 2
grep -qE '^- tests: (Slow.Hangs not run: cut short after|a/slow_test not run: no time)' "$work/report.md" || fail "cut short: what was not run"
grep -q '^Nothing failed. Not run, as said above: [12]. Cut short.$' "$work/report.md" || fail "cut short: the last line"
check 3 --only bench --seconds 2
expect '- bench: not run: no time was left'

# Bad ones: each is reported, and what comes after it runs.
cp "$work/all" "$package/tests.list"
check 1 --only tests
expect '| tests | 6 | 2 | 1 | 1 | 1 | 0 |'
expect '### tests: Bad.Fails1 failed'
expect 'x.cc:1: Failure of Bad.Fails2'
expect '### tests: Bad.Crashes crashed'
expect 'signal 11'
expect '### tests: Bad.Hangs hung'
expect 'no end within 4 s'
expect '4 failed.'

# compute-sanitizer: fine, with a finding, refusing, absent.
grep -v '^b/' "$work/all" >"$package/tests.list"
check 1 --only sanitizer --sanitizer "$work/bin/fine-sanitizer"
expect '| memcheck | 3 | 0 | 0 | 0 | 1 | 0 |'
expect '| racecheck | 3 | 1 | 0 | 0 | 1 | 0 |'
expect '| synccheck | 3 | 0 | 0 | 0 | 1 | 0 |'
expect 'Race reported in kernel k'
check 0 --only sanitizer --sanitizer "$work/bin/refusing-sanitizer"
expect '- memcheck: not run: it refused: ========= Error: Device not supported.'
expect '| synccheck | | | | | | all |'
expect 'Nothing failed. Not run, as said above: 3.'
if [[ -z $(command -v compute-sanitizer; compgen -G '/usr/local/cuda*/bin/compute-sanitizer') ]]; then
  CUDA_PATH=$work check 0 --only sanitizer
  expect '- racecheck: not run: no compute-sanitizer found'
fi

# Ended in the middle: the report has what was over by then. (Not sooner: while Bash 5.2 reads what $() holds, it cannot read a
# trap's command, and loses the signal.)
# ended CODE ARGUMENTS...: runs gpu_check, and ends it when a case hangs.
ended() {
  local expected=$1 running code=0
  shift
  call="ended in the middle: $*"
  rm -f "$work/report.md" "$TEST_TMPDIR/hangs"
  env --default-signal=TERM PATH="${ended_path:-$PATH}" "$package/gpu_check" --report "$work/report.md" "$@" >"$work/stdout" 2>"$work/stderr" &
  running=$!
  for ((i = 0; i < 300; ++i)); do [[ ! -e $TEST_TMPDIR/hangs ]] || break; sleep 0.1; done
  [[ ! -e $work/report.md ]] || cp "$work/report.md" "$work/report_before"
  kill -TERM "$running"
  for ((i = 0; i < 50; ++i)); do kill -0 "$running" 2>/dev/null || break; sleep 0.1; done
  ! kill -0 "$running" 2>/dev/null || fail "it runs on after it was ended"
  wait "$running" || code=$?
  [[ $code -eq $expected ]] || fail "$call: exit code $code, expected $expected"
  expect 'ended before its time'
}
sed -i 's/Scenario.Passes17/Scenario.Passes17:Scenario.Hangs/' "$package/tests.list"
ended 3 --only tests,scenarios
grep -qF 'the parts after tests have still to run' "$work/report_before" || fail "no report before the end"
expect '| tests | 3 | 0 | 0 | 0 | 1 | 0 |'
expect '| scenarios | 1 | 0 | 0 | 0 | 0 | 1 |'
expect '- scenarios: Scenario.Hangs not run: ended before its time'
sed -i 's/Scenario.Passes17:Scenario.Hangs/Scenario.Passes17/' "$package/tests.list"
# What had failed by then is a failure.
cp "$package/tests.list" "$work/good"
printf 'a/bad_test\ttests\tEnded.Fails1:Ended.Passes1:Ended.Hangs\na/next_test\ttests\tNext.Passes1\n' >"$package/tests.list"
ended 1 --only tests --jobs 1
expect '| tests | 1 | 1 | 0 | 0 | 0 | 1 |'
expect '### tests: Ended.Fails1 failed'
expect '1 failed. Not run, as said above: 1. Cut short.'
cp "$work/good" "$package/tests.list"

# A benchmark that dies.
check 1 --only bench
expect '### bench: exit code'
expect 'gpu_bench ended with exit code 4'

# No GPU; wrong calls.
CHECK_NO_GPU=1 check 2
[[ $(cat "$work/stderr") == 'gpu_check: no GPU: gpu_bench: no GPU to measure: no driver (this package wants driver 580 or newer)' && ! -e $work/report.md ]] || fail "no GPU"
CHECK_NO_GPU=124 check 2  # as timeout ends it
[[ $(cat "$work/stderr") == 'gpu_check: no GPU: no kernel has run within 180 s (this package wants driver 580 or newer)' && ! -e $work/report.md ]] || fail "a GPU that hangs"
for wrong in '--only nothing' '--only ,' '--seconds x' '--package /nowhere' '--jobs' '--what'; do
  check 2 $wrong
  [[ $(wc -l <"$work/stderr") -eq 1 ]] || fail "$wrong: expected one line"
done

check 0 --help
grep -q '^ *\./gpu_check ' "$work/stdout" || fail "--help"
grep -q 'CUDA 13, 580 or later' "$work/stdout" || fail "--help: which driver"

# The benchmark of this build, on emulated GPUs: all rows, tiny.
cp "$bench" "$package/gpu_bench"
export RAMET_EMULATED_MEMORY=256M
check 0 --only bench --tiny --rounds 1
for row in limit.copy op.host.add layer_norm.backward cross_entropy.consuming adamw.fused reduce_add.4 broadcast_coalesced.4 \
  linear.backward attention.forward mnist.step mnist.step.captured tinygpt.step adamw.masters gpt2.step.captured \
  gpt2.step.recomputed gpt2.step.memory; do
  grep -q "^| $row" "$work/report.md" || fail "no row $row"
done
expect '- G12 cold start'
expect 'Emulated GPU 0: conv2d float32 2 4 6 6 8 3 3 '
! grep -q FAILED "$work/report.md" || fail "a row failed"
# With a peer that is right in one row and wrong in another: the rows take turns and are compared.
mkdir -p "$work/python/torch"
echo '__version__ = "0"' >"$work/python/torch/__init__.py"
mv "$package/bench/torch_rows.py" "$work/"
cat >"$package/bench/torch_rows.py" <<'E2'
"""A peer that needs no PyTorch."""


class GPU:
    type = "cpu"


def set_up():
    pass


def described():
    return "a stand-in"


def value(i, seed):
    mask = (1 << 64) - 1
    h = ((i + 1) * 0x9E3779B97F4A7C15 + seed * 0xBF58476D1CE4E5B9) & mask
    h ^= h >> 31
    h = h * 0x94D049BB133111EB & mask
    return (h >> 40) * 2.0**-23 - 1


def twin(name):
    if name == "limit.copy":
        return lambda s: (None, lambda: [value(i * (s["bytes"] // 1024), 1) for i in range(256)])
    if name == "op.host.add":
        return lambda s: (None, lambda: [value(i, 1) + value(i, 2) + 1e-3 for i in range(16)])


def repetitions(row, run, tiny):
    return 3


def seconds_of(row, run, times):
    assert times == 3
    return 2.0
E2
PYTHONPATH=$work/python check 1 --only bench --tiny --rounds 3 --bench op.host.add
expect '- a stand-in'
expect '- FAILED: op.host.add: differs from PyTorch by'
grep -qE '^\| limit.copy .*\| 2 s \| 0.0 % \| [0-9.]+ \|' "$work/report.md" || fail "no ratio of limit.copy"
# What is no number is not equal to anything, wherever it stands.
for wrong in 'nan' 'value(i, 1) + value(i, 2) if i else nan' 'value(i, 1) + value(i, 2) if i < 15 else nan'; do
  sed "s/value(i, 1) + value(i, 2) + 1e-3/$wrong/; s/^import.*//; 3i nan = float(\"nan\")" "$package/bench/torch_rows.py" >"$work/nan_rows.py"
  cp "$work/nan_rows.py" "$package/bench/torch_rows.py.new"
  cp "$package/bench/torch_rows.py" "$work/kept_rows.py"
  mv "$package/bench/torch_rows.py.new" "$package/bench/torch_rows.py"
  PYTHONPATH=$work/python check 1 --only bench --tiny --rounds 1 --bench op.host.add
  expect "- FAILED: op.host.add: PyTorch's result is no number at"
  mv "$work/kept_rows.py" "$package/bench/torch_rows.py"
done
# Rows that the time does not reach.
PYTHONPATH=$work/python "$package/bench/drive.py" "$package/gpu_bench" --tiny --rounds 1 --only op.host --seconds 0 >"$work/stdout" && fail "drive.py: cut short, exit code 0" || code=$?
[[ $code -eq 3 ]] && grep -q '^- not measured: op.host.add: no time was left$' "$work/stdout" || fail "drive.py, cut short: exit code $code"
mv "$work/torch_rows.py" "$package/bench/"
# A row that kills the program: the next ones are measured by a new one.
cat >"$work/dies" <<E2
#!/usr/bin/env bash
[[ \$1 == --serve ]] || exec "$bench" "\$@"
while read -r line; do
  echo "\$line"
  [[ \$line != "make 5" ]] || break
done | "$bench" "\$@"
E2
chmod +x "$work/dies"
mv "$package/gpu_bench" "$work/gpu_bench"
cp "$work/dies" "$package/gpu_bench"
check 1 --only bench --tiny --rounds 1 --bench layer_norm
expect '- FAILED: residual_layer_norm.forward: gpu_bench ended with exit code 0'
grep -q '^| residual_layer_norm.backward' "$work/report.md" || fail "no row after one that died"
mv "$work/gpu_bench" "$package/gpu_bench"
# Without python3 the program prints its own table.
mkdir -p "$work/nopython"
for tool in awk bash basename cat cp cut date dirname env find grep head ldd mktemp mv nproc paste ps realpath rm sed sleep sort tail timeout tr \
  uname wc xargs; do
  ln -sf "$(command -v $tool)" "$work/nopython/$tool"
done
PATH=$work/nopython check 0 --only bench --tiny --rounds 1 --bench layer_norm
expect 'No python3 here'
expect '| layer_norm.forward | G4 |'
code=0
"$package/gpu_bench" --tiny --only layer_norm --rounds 1 --seconds 0 >"$work/stdout" || code=$?
[[ $code -eq 3 ]] && grep -q '^- not measured: layer_norm.forward: no time was left$' "$work/stdout" || fail "gpu_bench, cut short: exit code $code"
"$package/gpu_bench" --what 2>"$work/stderr" && fail "gpu_bench --what: expected an error"
[[ $(cat "$work/stderr") == 'gpu_bench: not understood: --what' ]] || fail "gpu_bench --what"
code=0
RAMET_CUDA_DEVICES='' "$package/gpu_bench" 2>"$work/stderr" || code=$?
[[ $code -eq 1 && $(cat "$work/stderr") == *"no GPU to measure: RAMET_CUDA_DEVICES names none"* ]] || fail "gpu_bench without a GPU"

# Ended in the middle of the benchmark: a row that had failed by then is a failure.
mv "$package/gpu_bench" "$work/gpu_bench"
cat >"$package/gpu_bench" <<'E2'
#!/usr/bin/env bash
[[ $1 != --probe ]] || { printf 'a kernel has run\ncards: 1\n' && exit; }
echo '| x.row | G1 | FAILED |'
: >"$TEST_TMPDIR/hangs"
sleep 100
E2
chmod +x "$package/gpu_bench"
ended_path=$work/nopython ended 1 --only bench
expect '| x.row | G1 | FAILED |'
expect '1 failed. Cut short.'
mv "$work/gpu_bench" "$package/gpu_bench"

[[ $failed -eq 0 ]] || exit 1
echo "OK: gpu_check reports what happens"
