#!/usr/bin/env bash
# tools/launch: variables, prefixes, failures, restarts, signals, and that no process survives it.
set -euo pipefail

work=$TEST_TMPDIR/work
mkdir -p "$work"
launch=$PWD/tools/launch
failed=0

fail() {
  echo "FAILED: $*"
  echo "standard output:" && cat "$work/stdout"
  echo "standard error:" && cat "$work/stderr"
  failed=1
}
# run CODE ARGUMENTS...: the launcher must end with it.
run() {
  local expected=$1 code=0
  shift
  "$launch" "$@" >"$work/stdout" 2>"$work/stderr" || code=$?
  [[ $code == "$expected" ]] || fail "launch $*: exit code $code, expected $expected"
}
says() { grep -qF -- "$2" "$work/$1" || fail "$1 does not say: $2"; }
# wait_for COMMAND...: until it succeeds, half a minute at most.
wait_for() {
  local i
  for ((i = 0; i < 600; ++i)); do
    ! "$@" || return 0
    sleep 0.05
  done
  return 1
}
alive() { [[ -d /proc/$1 && $(awk '{print $3}' "/proc/$1/stat" 2>/dev/null) != Z ]]; }

# Variables and prefixes.
run 0 --nproc 3 -- bash -c 'echo "r$RANK w$WORLD_SIZE l$LOCAL_RANK n$LOCAL_WORLD_SIZE $MASTER_ADDR"; echo "$RAMET_RUN_ID $MASTER_PORT" >"'"$work"'/id$RANK"; printf "no newline"'
for rank in 0 1 2; do
  says stdout "[$rank] r$rank w3 l$rank n3 127.0.0.1"
  says stdout "[$rank] no newline"
done
cmp -s "$work/id0" "$work/id1" || fail "one run, two run ids or ports"
run 0 --no-prefix bash -c 'echo "alone $WORLD_SIZE"'
grep -qx "alone 1" "$work/stdout" || fail "--no-prefix"
run 0 --nproc=2 --nnodes 3 --node-rank 1 --master-addr host --master-port 1234 -- bash -c 'echo "$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"'
says stdout "[2] 2 of 6 at host:1234"
says stdout "[3] 3 of 6 at host:1234"

# Wrong use: one line, exit code 2.
for words in "--nproc 0 -- true" "--nproc two -- true" "--nproc" "--frobnicate 3" "--nproc 2 --" "--nnodes 2 --master-port 7 -- true" \
  "--nnodes 2 --master-addr host -- true" "--master-addr" "--node-rank 1 -- true" \
  "--nnodes 2 --master-addr host --master-port 7 --max-restarts 1 -- true" "--nproc 2 -- /no/such/program"; do
  run 2 $words
  [[ $(wc -l <"$work/stderr") == 1 ]] || fail "launch $words: not one line"
done
run 0 --help
says stdout "usage: tools/launch --nproc N"

# One fails: its exit code, its last lines before those of the others, and the others are ended.
run 7 --nproc 3 -- bash -c 'trap "echo ended >&2; exit 3" TERM; echo $$ >"'"$work"'/pid$RANK"; if [[ $RANK == 1 ]]; then until [[ -s "'"$work"'/pid0" && -s "'"$work"'/pid2" ]]; do sleep 0.05; done; echo "it is broken" >&2; exit 7; fi; while :; do sleep 0.1; done'
says stderr "launch: rank 1 failed: exit code 7. Its last lines:"
says stderr "launch:   it is broken"
for rank in 0 2; do
  says stderr "[$rank] ended"
  awk -v late="[$rank] ended" '$0 == "launch:   it is broken" { shown = 1 } $0 == late { exit !shown }' "$work/stderr" ||
    fail "rank $rank's last lines come before those of the one that failed"
done
[[ $(grep -n '^launch: ' "$work/stderr" | head -n 1) == *"rank 1 failed"* ]] || fail "the failure is not the launcher's first line"
for rank in 0 1 2; do ! alive "$(cat "$work/pid$rank")" || fail "rank $rank is still there"; done
run 137 --nproc 2 -- bash -c '[[ $RANK == 0 ]] || kill -KILL $$; sleep 100'
says stderr "launch: rank 1 failed: signal 9 (SIGKILL)"
# Those that do not listen are killed.
run 4 --nproc 2 --grace 0 -- bash -c 'if [[ $RANK == 0 ]]; then exit 4; fi; trap "" TERM; while :; do sleep 0.1; done'

# A rank that fails because of another may end first: the launcher shows the rank that it names, if that fails too.
for text in "aborted by rank 1: Badness" "rank 1 is gone: the connection to it broke"; do
  run 5 --nproc 3 -- bash -c 'case $RANK in 0) echo "'"$text"'" >&2; exit 3 ;; 1) sleep 0.4; echo "it was me" >&2; exit 5 ;; 2) while :; do sleep 0.1; done ;; esac'
  says stderr "launch: rank 1 failed: exit code 5. Its last lines:"
  says stderr "launch:   it was me"
done
run 3 --nproc 2 -- bash -c 'if [[ $RANK == 0 ]]; then echo "aborted by rank 1: Badness" >&2; exit 3; fi; trap "exit 0" TERM; while :; do sleep 0.1; done'
says stderr "launch: rank 0 failed: exit code 3. Its last lines:"

# What a rank has started is ended, too: by a script that ends at SIGTERM itself, and by one that has ended before.
cat >"$work/deaf" <<'END'
trap "" TERM HUP
echo $$ >"$1$RANK"
while :; do sleep 0.1; done
END
for script in "bash $work/deaf $work/deep; true" "bash $work/deaf $work/deep & until [[ -s $work/deep0 ]]; do sleep 0.05; done; exit 6"; do
  rm -f "$work/deep0"
  run 6 --nproc 2 --grace 1 -- bash -c 'if [[ $RANK == 1 ]]; then until [[ -s '"$work"'/deep0 ]]; do sleep 0.05; done; exit 6; fi; '"$script"
  wait_for eval '! alive "$(cat "$work/deep0")"' || fail "what rank 0 started is still there: $script"
done

# Restarts.
run 0 --nproc 2 --max-restarts 3 -- bash -c 'echo "start $RAMET_RESTARTS"; [[ $RAMET_RESTARTS == 2 || $RANK == 0 ]] || exit 5'
says stdout "[1] start 2"
says stderr "launch: starting again (2 of 3)"
run 5 --nproc 2 --max-restarts 1 -- bash -c '[[ $RANK == 0 ]] || exit 5'

# Signals are passed on; what they end is no failure.
"$launch" --nproc 2 -- bash -c 'trap "echo got-usr1" USR1; trap "echo got-term; exit 0" TERM; echo ready >"'"$work"'/ready$RANK"; while :; do sleep 0.05; done' >"$work/stdout" 2>"$work/stderr" &
launcher=$!
wait_for test -s "$work/ready0" -a -s "$work/ready1" || fail "no start"
[[ $(pgrep -c -P $launcher) == 2 ]] || fail "children of the launcher that are no ranks"
kill -USR1 $launcher
wait_for grep -qF "[1] got-usr1" "$work/stdout" || fail "USR1 was not passed on"
kill -TERM $launcher
code=0
wait $launcher || code=$?
[[ $code == 143 ]] || fail "ended by SIGTERM: exit code $code"
says stdout "[0] got-term"
says stdout "[1] got-term"

"$launch" --nproc 2 -- bash -c 'echo ready >"'"$work"'/plain$RANK"; exec sleep 100' >"$work/stdout" 2>"$work/stderr" &
launcher=$!
wait_for test -s "$work/plain0" -a -s "$work/plain1" || fail "no start"
kill -TERM $launcher
code=0
wait $launcher || code=$?
[[ $code == 143 ]] || fail "ended by SIGTERM: exit code $code"
! grep -q failed "$work/stderr" || fail "what a signal ends has failed"

# The reader of one of its streams is gone, and a rank that ignores signals goes on writing to it: the launcher still ends.
unread() {
  timeout 60 "$launch" --nproc 1 --grace 1 -- bash -c 'trap "" TERM; while :; do echo line >&'"$1"'; sleep 0.01; done' &&
    echo 0 >"$work/code" || echo $? >"$work/code"
}
unread 1 2>"$work/stderr" | head -n 1 >"$work/stdout"
[[ $(<"$work/code") == 143 ]] || fail "nobody reads its output: exit code $(<"$work/code")"
unread 2 2>&1 >"$work/stdout" | head -n 1 >"$work/stderr"
[[ $(<"$work/code") == 143 ]] || fail "nobody reads its errors: exit code $(<"$work/code")"

# A signal that was ignored from the start (nohup) ends no process.
(trap "" HUP && exec "$launch" --nproc 2 -- bash -c 'echo ready >"'"$work"'/calm$RANK"; until [[ -e "'"$work"'/go" ]]; do sleep 0.05; done; echo "went on"') >"$work/stdout" 2>"$work/stderr" &
launcher=$!
wait_for test -s "$work/calm0" -a -s "$work/calm1" || fail "no start"
kill -HUP $launcher
sleep 0.3
touch "$work/go"
code=0
wait $launcher || code=$?
[[ $code == 0 ]] || fail "ended by an ignored SIGHUP: exit code $code"
says stdout "[1] went on"

# The launcher is killed: so are its children, and rank 1's.
"$launch" --nproc 2 -- bash -c '[[ $RANK == 1 ]] || exec bash '"$work/deaf $work/child; bash $work/deaf $work/child; true" >"$work/stdout" 2>"$work/stderr" &
launcher=$!
wait_for test -s "$work/child0" -a -s "$work/child1" || fail "no start"
kill -KILL $launcher
wait $launcher 2>/dev/null || true
for rank in 0 1; do
  child=$(cat "$work/child$rank")
  wait_for eval '! alive '"$child" || fail "rank $rank survived its launcher"
done

[[ $failed == 0 ]] && echo OK
exit $failed
