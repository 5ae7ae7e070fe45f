#!/usr/bin/env bash
# tools/bazel/test_results.py counts what the event files say: every kind of result, and every way to end badly.
set -euo pipefail

work=$TEST_TMPDIR
results=tools/bazel/test_results.py
failed=0

# expect NAME CODE LAST_LINE ARGUMENTS...
expect() {
  local name=$1 code=$2 last=$3 got=0
  shift 3
  python3 "$results" "$@" >"$work/out" 2>&1 || got=$?
  if [[ $got -ne $code || $(tail -n 1 "$work/out") != "$last" ]]; then
    echo "FAILED: $name: exit code $got, expected $code; last line '$(tail -n 1 "$work/out")', expected '$last'"
    cat "$work/out"
    failed=1
  fi
}

# result LABEL STATUS XML...: one test result event.
result() {
  local label=$1 status=$2 outputs="" xml
  shift 2
  for xml in "$@"; do outputs+="{\"name\":\"test.xml\",\"uri\":\"file://$xml\"},"; done
  echo "{\"id\":{\"testResult\":{\"label\":\"$label\"}},\"testResult\":{\"status\":\"$status\",\"testActionOutput\":[${outputs%,}]}}"
}

cat >"$work/good.xml" <<'E2'
<testsuites tests="5"><testsuite name="K" tests="3">
<testcase name="Sum" status="run" result="completed" classname="K"/>
<testcase name="Off" status="run" result="skipped" classname="K"><skipped message="why"/></testcase>
<testcase name="DISABLED_Off" status="notrun" result="suppressed" classname="K"/>
</testsuite><testsuite name="I/P" tests="2">
<testcase name="Q/0" status="run" result="completed" classname="I/P"/>
<testcase name="Q/1" status="run" result="completed" classname="I/P"/>
</testsuite></testsuites>
E2
cat >"$work/bad.xml" <<'E2'
<testsuites tests="2"><testsuite name="B" tests="2">
<testcase name="Good" status="run" result="completed" classname="B"/>
<testcase name="Bad" status="run" result="completed" classname="B"><failure message="x"/></testcase>
</testsuite></testsuites>
E2
echo '<testsuites></testsuites>' >"$work/empty.xml"
echo 'cut off in the mid' >"$work/cut.xml"

result //tests/k:k_test PASSED "$work/good.xml" >"$work/pass"
expect "cases, skipped ones apart" 0 "3 passed, 0 failed" "a=0=$work/pass"
expect "two runs add up" 0 "6 passed, 0 failed" "a=0=$work/pass" "b=0=$work/pass"
expect "single checks count" 1 "4 passed, 1 failed" --passed x --failed y "a=0=$work/pass"

# Another run writes over the files of the first.
cp "$work/good.xml" "$work/over.xml"
result //tests/k:k_test PASSED "$work/over.xml" >"$work/first"
python3 "$results" --keep "$work/first"
cp "$work/bad.xml" "$work/over.xml"
result //tests/k:k_test FAILED "$work/over.xml" >"$work/second"
expect "results that were kept" 1 "4 passed, 1 failed" "a=0=$work/first" "b=3=$work/second"

result //tests/k:b_test FAILED "$work/bad.xml" >"$work/fail"
expect "a failed case" 1 "1 passed, 1 failed" "a=3=$work/fail"
result //tests/k:b_test FAILED "$work/good.xml" >"$work/leak"
expect "all cases pass, the program fails at exit" 1 "3 passed, 1 failed" "a=3=$work/leak"
result //tests/k:b_test TIMEOUT "$work/cut.xml" >"$work/timeout"
expect "a time-out" 1 "0 passed, 1 failed" "a=3=$work/timeout"
result //tests/k:b_test PASSED "$work/empty.xml" >"$work/none"
expect "a program without cases" 1 "0 passed, 1 failed" "a=0=$work/none"

{
  cat "$work/pass"
  echo '{"id":{"targetCompleted":{"label":"//tests/k:broken_test"}},"completed":{}}'
  echo '{"id":{"targetCompleted":{"label":"//tests/k:k_test"}},"completed":{"success":true}}'
  echo '{"id":{"targetCompleted":{"label":"//tests/k:elsewhere"}},"aborted":{"reason":"SKIPPED"}}'
} >"$work/unbuilt"
expect "a target that does not build" 1 "3 passed, 1 failed" "a=1=$work/unbuilt"
expect "a failed build that names no target" 1 "3 passed, 1 failed" "a=1=$work/pass"
expect "Bazel itself fails" 1 "0 passed, 1 failed" "a=37=$work/missing"
: >"$work/nothing"
expect "nothing ran" 1 "1 passed, 0 failed" --passed x

[[ $failed -eq 0 ]] && echo "OK: every case counted as expected"
exit $failed
