#!/usr/bin/env bash
# Two hosts of two processes each train one model, and the link between them is cut. Every process must report it within its
# deadline, name ranks of the other host and end. Started again, they go on from the checkpoint to the bits of an undisturbed run.
#
# The hosts are of two kinds. With relay.py they are two addresses of loopback, and the link is the relay, which drops, stalls or
# half-opens its connections. With network namespaces, where they are permitted, they are two namespaces with addresses of their
# own. Packets vanish, and host A's name leads to loopback on host A itself, as on many systems.
# usage: train_ddp_hosts_test.sh TRAIN_PROGRAM [relay | namespaces]
set -euo pipefail

if [[ $# == 1 ]]; then
  bash "$0" "$1" relay
  why="no unshare"
  for enter in "unshare --user --map-root-user --net --mount" "unshare --net --mount"; do
    if why=$($enter bash -c 'mount -t tmpfs none /run && mkdir /run/netns && ip netns add x && ip link add y type veth peer name z netns x' 2>&1); then
      exec $enter bash "$0" "$1" namespaces
    fi
  done
  echo "SKIPPED: network namespaces are not permitted here: $why"
  exit 0
fi

train=$PWD/$1
way=$2
launch=$PWD/tools/launch
relay=$PWD/tests/tools/relay.py
work=$TEST_TMPDIR/$way
deadline=5
mkdir -p "$work"
python3 tests/tools/small_images.py "$work/data"
common=(--ddp --timeout $deadline --data "$work/data" --model mlp --epochs 10 --batch 62 --reduce tree:4 --seed 3 --digest --threads 1)

fail() {
  echo "FAILED: $way: $*"
  tail -n 50 "$work"/std* "$work"/said.* 2>/dev/null || true
  exit 1
}
# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
  local i
  for ((i = 0; i < $1 * 50; ++i)); do
    ! "${@:2}" || return 0
    sleep 0.02
  done
  return 1
}
# Where the launcher ends the other rank of its host, that one has to report first: ours is not in a hurry (--grace).
cat >"$work/rank" <<'E2'
#!/usr/bin/env bash
# A rank that says how and when it ended.
trap '' TERM
code=0
"${@:2}" 2>"$1/said.$RANK" || code=$?
echo "$code $(date +%s%3N)" >"$1/ended.$RANK"
cat "$1/said.$RANK" >&2
exit $code
E2
chmod +x "$work/rank"

# start HOST OUT OPTIONS...: host a's or b's launcher, in the background.
declare -A master port number=([a]=0 [b]=1)
start() {
  on "$1" timeout 240 "$launch" --nproc 2 --nnodes 2 --node-rank "${number[$1]}" --master-addr "${master[$1]}" --master-port "${port[$1]}" \
    --grace 60 -- "$work/rank" "$work" "$train" "${common[@]}" --out "$work/$2" "${@:3}" >"$work/stdout.$1" 2>"$work/stderr.$1" &
}
# both OUT OPTIONS...: a run of both hosts that ends well; sets digest.
both() {
  start a "$@"
  local first=$! code=0
  start b "$@"
  wait $! || code=$?
  wait $first || code=$?
  [[ $code == 0 ]] || fail "$1: exit code $code"
  digest=$(sed -n 's/^\[0\] digest //p' "$work/stdout.a")
}

# cut_and_resume NAME COMMAND...: the command cuts the link when the first epoch is in the checkpoint; `heal` mends it. Sets
# in_time to whether every process had ended by the deadline.
cut_and_resume() {
  local name=$1 a b rank other at code ended pid said took
  # What an earlier run printed must not be taken for this one's: it begins to write in the background.
  rm -f "$work"/ended.* "$work"/said.* "$work"/std*
  start a "$name"
  a=$!
  start b "$name"
  b=$!
  wait_for 120 grep -qs '^\[0\] epoch 1/' "$work/stdout.a" || fail "$name: no first epoch"
  "${@:2}"
  at=$(date +%s%3N)
  for pid in $a $b; do
    code=0
    wait $pid || code=$?
    [[ $code == 1 ]] || fail "$name: a launcher ended with $code, expected a rank's 1"
  done
  took=""
  in_time=true
  for rank in 0 1 2 3; do
    read -r code ended <"$work/ended.$rank" || fail "$name: rank $rank says nothing"
    [[ $code == 1 ]] || fail "$name: rank $rank ended with $code"
    took+=" $((ended - at))"
    [[ $((ended - at)) -le $((1000 * (deadline + 8))) ]] || fail "$name: rank $rank ended after $((ended - at)) ms"
    [[ $((ended - at)) -le $((1000 * deadline)) ]] || in_time=false
    other='[23]' && [[ $rank -lt 2 ]] || other='[01]'
    grep -qE "^train: failed: \[process_group\] group 'train', rank [0-3], .*\): ranks? ([0-9], )*$other" "$work/said.$rank" ||
      fail "$name: rank $rank does not name a rank of the other host"
  done
  said=$(sed -E 's/.*, (rank [0-9]).*\): (ranks?) /noticed by \1: \2 /' "$work"/said.* | sort | uniq -c)
  heal
  both "$name" --resume
  grep -qE ', resumed after step [1-9]' "$work/stdout.a" || fail "$name: it did not go on from the checkpoint"
  [[ $digest == "$expected" ]] || fail "$name: digest $digest, expected $expected"
  cmp -s "$work/whole/model.safetensors" "$work/$name/model.safetensors" || fail "$name: another model file"
  echo "OK: $way, $name: ended after$took ms:"
  echo "$said"
}
# The deadline holds whatever else the machine does, but then processes may end seconds after their errors: up to three tries.
cut_in_time() {
  local try
  for try in 1 2 3; do
    cut_and_resume "$1-$try" "${@:2}"
    ! $in_time || return 0
  done
  fail "$1: three times ranks ended after the deadline of $deadline s"
}

expected=""
if [[ $way == relay ]]; then
  export RAMET_RUN_ID=$$
  port[a]=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
  declare -A address=([a]=127.0.0.1 [b]=127.0.0.3)
  master=([a]=127.0.0.1 [b]=127.0.0.2)
  on() { env RAMET_SOCKET_ADDR="${address[$1]}" "${@:2}"; }
  heal() {
    if [[ -n ${link_PID:-} ]]; then kill "$link_PID" && wait "$link_PID" 2>/dev/null || true; fi
    coproc link { exec python3 "$relay" "${port[a]}"; }
    read -r "port[b]" <&"${link[0]}" || fail "no relay"
  }
  cut() {
    local answer
    echo "$1" >&"${link[1]}"
    read -r -t 60 answer <&"${link[0]}" && [[ $answer == done ]] || fail "the relay does not $1"
  }
  # What is to come out: from one host, without a link.
  "$launch" --nproc 4 -- "$train" "${common[@]}" --out "$work/whole" >"$work/stdout" 2>"$work/stderr" || fail "one host: exit code $?"
  expected=$(sed -n 's/^\[0\] digest //p' "$work/stdout")
  for how in drop stall half; do
    heal
    cut_in_time $how cut $how
  done
  kill "$link_PID"
else
  mount -t tmpfs none /run
  mkdir /run/netns
  ip netns add a
  ip netns add b
  ip link add eth-a netns a type veth peer name eth-b netns b
  inside() { nsenter --net="/run/netns/$1" "${@:2}"; }
  for host in a b; do
    inside $host ip address add 10.77.0.$((number[$host] + 1))/24 dev eth-$host
    inside $host ip link set lo up
    inside $host ip link set eth-$host up
  done
  printf '127.0.0.1 localhost\n127.0.1.1 host-a\n' >"$work/hosts.a"
  printf '127.0.0.1 localhost\n10.77.0.1 host-a\n' >"$work/hosts.b"
  master=([a]=host-a [b]=host-a)
  port=([a]=29500 [b]=29500)
  on() { inside "$1" unshare --mount bash -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$work/hosts.$1" "${@:2}"; }
  heal() { inside b ip link set eth-b up; }
  both whole
  expected=$digest
  cut_in_time cut inside b ip link set eth-b down
fi
[[ $expected =~ ^[0-9a-f]{16}$ ]] || fail "no digest: $expected"
