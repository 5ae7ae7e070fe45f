#!/usr/bin/env bash
# What the scripts say. --help is their own usage and nothing else, wrong options are one line and exit code 2, and the last line
# says how it ended. Packages, Bazel and the programs are stand-ins here: nothing is installed or built.
set -euo pipefail

work=$TEST_TMPDIR/work
failed=0
mkdir -p "$work"/{bin,out/tools/training,out/tools/benchmarks}
export PATH=$work/bin:$PATH RAMET_BAZEL=$work/bin/bazel RAMET_CACHE=$work/cache

cat >"$work/bin/dpkg-query" <<'E2'
#!/usr/bin/env bash
shift 2
for package in "$@"; do
  [[ $package == *:* ]] || package+=:$(dpkg --print-architecture)
  echo "$package installed"
done
E2
cat >"$work/bin/bazel" <<'E2'
#!/usr/bin/env bash
echo "bazel $*" >>"$(dirname "$0")/../called"
if [[ $1 == build ]]; then
  echo "Analyzing: something"
  echo "[1,023 / 1,100] Compiling a.cc; 3s local ... (3 actions running)"
  echo "an error"
  exit "${BUILD_CODE:-0}"
fi >&2
[[ $1 != test ]] || sleep "${SLOW:-0}"
[[ ${*: -1} != bazel-bin ]] || echo "$(dirname "$0")/../out"
E2
printf '#!/bin/sh\necho "apt-get $*" >>"$(dirname "$0")/../called"\n' >"$work/bin/apt-get"
cat >"$work/program" <<'E2'
#!/usr/bin/env bash
echo "ran with $*"
exit "${PROGRAM_CODE:-0}"
E2
chmod +x "$work"/bin/* "$work/program"
for name in train{,_gpus,_processes,_processes_gpus}{,_explore}; do cp "$work/program" "$work/out/tools/training/$name"; done
cp "$work/program" "$work/out/tools/benchmarks/bench"

fail() {
  echo "FAILED: $*"
  echo "standard output:" && cat "$work/stdout"
  echo "standard error:" && cat "$work/stderr"
  failed=1
}
# run CODE SCRIPT ARGUMENTS...
run() {
  local expected=$1 code=0
  shift
  call=$*
  rm -f "$work/called"
  "tools/$1" "${@:2}" >"$work/stdout" 2>"$work/stderr" || code=$?
  [[ $code -eq $expected ]] || fail "$call: exit code $code, expected $expected"
}

for script in bench install lab make_docs package quickstart test translate verify compare_torch mutate setup.sh; do
  for option in --help -h; do
    run 0 $script $option
    grep -q "^ *\(usage: \)\?\./tools/$script" "$work/stdout" || fail "$call does not say how to call ./tools/$script"
    [[ ! -s $work/stderr && ! -e $work/called ]] || fail "$call does more than that"
    ! grep -E -- '--peer|--runner|^#|finished|results are in runs|set -euo' "$work/stdout" || fail "$call shows internals"
  done
done
for word in ops footprint processes --threads --only --rounds --json --torch --openblas --eigen --python; do
  run 0 bench --help
  grep -q -e "^ *$word\b\|\[$word\b" "$work/stdout" || fail "$call does not name $word"
done
run 0 quickstart --epochs 5 --help
[[ ! -e $work/called ]] || fail "$call does more than that"

# wrong PART SCRIPT ARGUMENTS...: one line that has the part; nothing is installed, built or run.
wrong() {
  local part=$1
  shift
  run 2 "$@"
  [[ $(wc -l <"$work/stderr") -eq 1 && ! -s $work/stdout ]] || fail "$call: expected one line"
  grep -q -e "^${1%.sh}: .*$part" "$work/stderr" || fail "$call: expected a line with $part"
  [[ ! -e $work/called ]] || fail "$call: called $(cat "$work/called")"
}
wrong "no such option: --bogus" bench --bogus
wrong "no such option: --peer" bench --peer x
wrong "no such benchmark: got speed" bench speed
wrong "got ops and footprint" bench ops footprint
wrong "options of ops" bench models --eigen
wrong "footprint takes no options" bench footprint --threads 2
wrong "script without files takes no options" bench script --threads 2
wrong "none with its inputs: $work/net.pt" bench script "$work/net.pt"
touch "$work/net.pt" "$work/net.pt.inputs"
wrong "script wants --torch PATH" bench script "$work/net.pt"
wrong "files are for script" bench ops "$work/net.pt"
wrong "the first word names a file" translate
wrong "no such file: absent.pt" translate absent.pt
wrong "footprint takes no options" bench --eigen footprint
wrong "processes takes --only" bench processes --threads 2
wrong "no such program: got \"nosuch-python\"" bench processes --python nosuch-python
wrong "an option of processes" bench --python python3
wrong "--rounds: got 1, expected a whole number from 3 to 1000" bench --rounds 1
wrong "--rounds: got 99999999999999999999" bench --rounds=99999999999999999999
wrong "--threads: got 0" bench --threads 0
wrong "--threads: got two" bench --threads two
wrong "--threads: got nothing" bench --threads=
wrong "--threads wants a value" bench --threads
wrong "--json: cannot write" bench --json "$work/none/x.json"
wrong "no LibTorch in /none" bench --torch /none
wrong "no such option: --bogus" test --bogus
wrong "--within: got 80, expected a time: 80m" test --all --within 80
wrong "--within: got nothing" test --within
wrong "no such option: --self" compare_torch --self
wrong "--draws: got 1e3" compare_torch --draws 1e3
wrong "--seed: got -1" compare_torch --seed -1
wrong "no LibTorch in /none" compare_torch --torch /none
wrong "--bogus" mutate --bogus
wrong "--count: got 0, expected a whole number from 1" mutate --count 0
wrong "no such group of packages: nonsense" setup.sh nonsense
wrong "no such option: --bogus" install --bogus
wrong "no such option: processes" install processes
wrong "no such option: --ramet" install --ramet
wrong "--prefix wants a folder" install --prefix
wrong "got nothing, expected list, start or check" lab
wrong "got grade, expected list, start or check" lab grade x
wrong "no such option: --bogus" lab check --bogus
wrong "--seconds: got 0, expected a whole number from 1" lab check "$work" --seconds 0
wrong "start wants the number of a lab and a folder" lab start 3
wrong "there is no lab 13" lab start 13 "$work/none"
wrong "is there and not empty: nothing was written" lab start 3 "$work"
wrong "is no folder that .start. has made" lab check "$work"
wrong "no such option: --bogus" make_docs --bogus
wrong "--out wants a folder" make_docs --out
wrong "no such package: got nothing, expected deb or source" package
wrong "no such package: got rpm, expected deb or source" package rpm
wrong "no such option: --prefix" package deb --prefix x
wrong "--out: cannot write" package deb --out "$work/none/x.deb"
wrong "--uninstall takes no option" install --uninstall --shared --prefix "$work"

printf '{"folder":"%s","command":["%s/bin/bazel-out/tools/training/train_gpus","--devices","cuda"]}\n' "$work" "$work" >"$work/run.ledger"
printf '{"folder":"%s","command":["%s/none"]}\n' "$work" "$work" >"$work/other.ledger"
wrong "a ledger is missing" verify --step 3
wrong "step is missing" verify "$work/run.ledger"
wrong "--step: a value is missing" verify "$work/run.ledger" --step
wrong "--step: got 0, expected a whole number from 1" verify "$work/run.ledger" --step 0
wrong "--processes: got 17" verify "$work/run.ledger" --step 1 --processes=17
wrong "no such option: --bogus" verify "$work/run.ledger" --bogus
wrong "got two ledgers" verify "$work/run.ledger" "$work/run.ledger"
wrong "no such ledger: $work/none" verify "$work/none" --step 1
wrong "$work/net.pt is no ledger" verify "$work/net.pt" --step 1
wrong "is not of ./tools/train: give its program after --; it was $work/none" verify "$work/other.ledger" --step 1
wrong "no such program: $work/none" verify "$work/other.ledger" --step 1 -- "$work/none"
wrong "are for ledgers of ./tools/train" verify "$work/other.ledger" --step 1 --devices cpu:0 -- "$work/program"
wrong "a program is missing" verify "$work/run.ledger" --step 1 --

# ends PATTERN: the last line.
ends() { tail -n 1 "$work/stderr" | grep -Eqx -e "$1" || fail "$call: expected the last line to be $1"; }
run 0 bench --threads=2 --only add --json "$work/figures.json"
ends 'bench: OK: measured in [0-9]+ s'
grep -qx "ran with --threads 2 --only add --json $work/figures.json" "$work/stdout" || fail "$call: other arguments"
run 0 bench models --rounds=3
grep -qx "ran with --rounds 3 models" "$work/stdout" || fail "$call: other arguments"
PROGRAM_CODE=1 run 1 bench ops
ends 'bench: FAILED: ended with exit code 1 after [0-9]+ s'
run 0 quickstart
ends "quickstart: OK: finished in [0-9]+ s; results are in $PWD/runs/quickstart"
grep -qx "ran with --data fashion-mnist --model cnn --devices cpu:0,cpu:1 --epochs 3 --out $PWD/runs/quickstart" "$work/stdout" ||
  fail "$call: other arguments"
run 0 quickstart --out elsewhere --epochs=1
ends "quickstart: OK: finished in [0-9]+ s; results are in elsewhere"
grep -qx "ran with --data fashion-mnist --model cnn --devices cpu:0,cpu:1 --out elsewhere --epochs=1" "$work/stdout" ||
  fail "$call: other arguments"
run 0 quickstart --out=/else/where
ends "quickstart: OK: finished in [0-9]+ s; results are in /else/where"
run 1 install --uninstall --prefix "$work/none"
ends "install: FAILED: no Ramet is installed in $work/none: share/ramet/manifest is missing"
CUDA_PATH=$work/none run 3 install --cuda --prefix "$work/none"
ends "install: no CUDA toolkit: $work/none/bin/nvcc is missing .*"
BUILD_CODE=1 run 1 install --prefix "$work/none"
ends 'install: FAILED: could not build //tools/sdk:ramet'
PROGRAM_CODE=2 run 2 quickstart --batch 0
ends 'quickstart: FAILED: training ended with exit code 2'

# What no longer fits into the time is left out of --all, and named. The checks of the tree pass here.
mkdir "$work/checks"
mkdir -p tests/tools/cmake
for check in "$work/checks/python3" tests/tools/cmake/cmake_test.sh; do
  [[ -e $check ]] || printf '#!/bin/sh\n' >"$check"
  chmod +x "$check"
done
SLOW=2 PATH=$work/checks:$PATH run 0 test --all --within 1s
grep -q "^test: LEFT OUT: asan: it needs about [0-9]* s, and 0 s of 1 were left" "$work/stderr" || fail "$call does not name what it left out"
grep -q "^bazel test .*--build_event_json_file" "$work/called" || fail "$call left the first run out"
! grep -q -e "--config" "$work/called" || fail "$call: called $(cat "$work/called")"

# Without targets --arm64 has those of its list.
if [[ $(uname -m) == x86_64 ]]; then
  PATH=$work/checks:$PATH run 0 test --arm64
  grep -q "^bazel test .* --config=arm64 .*//tests/digests:digests_test " "$work/called" || fail "$call: called $(cat "$work/called")"
  PATH=$work/checks:$PATH run 0 test --arm64 //tests/nn:one_test
  grep -q "^bazel test .* --config=arm64 .*-- //tests/nn:one_test\$" "$work/called" || fail "$call: called $(cat "$work/called")"
fi

# A build says how far it is, and the rest only where it fails.
run 0 quickstart
grep -qx "quickstart: \[1,023 / 1,100\] Compiling a.cc" "$work/stderr" || fail "$call does not say how far its build is"
! grep -q "an error" "$work/stderr" || fail "$call says more of its build"
BUILD_CODE=1 run 1 quickstart
ends 'quickstart: FAILED: could not build //tools/training:train'
grep -q "an error" "$work/stderr" || fail "$call does not say what is wrong"

# The smallest program that does what is asked, with this machine's kernels or those that RAMET_ISA names.
# builds LABEL SCRIPT ARGUMENTS...
builds() {
  local label=$1
  shift
  RAMET_ISA=v3 run 0 "$@"
  grep -q "^bazel build .* //tools/training:$label --//tools/bazel:variants=v3\$" "$work/called" ||
    fail "$call: called $(cat "$work/called"), expected a build of $label"
}
for script in train quickstart; do
  builds train $script --epochs 1
  builds train $script --devices cpu:0,cpu:1 --out cuda
  builds train_gpus $script --devices cuda
  builds train_gpus $script --devices=cpu:0,cuda:1
  builds train_processes $script --ddp --devices cpu:0
  builds train_processes_gpus $script --devices cuda --ddp
  builds train_explore $script --epochs 1 --explore
  builds train_processes_gpus_explore $script --explore=step.html --devices cuda --ddp
done
builds train_gpus verify "$work/run.ledger" --step 3
grep -qx "ran with --devices cuda --threads 0" "$work/stdout" || fail "$call: other arguments"
builds train verify "$work/run.ledger" --step=3 --devices=cpu:0,cpu:1 --threads 2
grep -qx "ran with --devices cpu:0,cpu:1 --threads 2" "$work/stdout" || fail "$call: other arguments"
run 0 verify "$work/run.ledger" --step 3 -- "$work/program" --quick
grep -qx "ran with --quick" "$work/stdout" || fail "$call: other arguments"
builds train_processes_gpus_explore train --explore=step.html --devices cuda --ddp
grep -q "^ran with .*--explore=step.html --devices cuda --ddp\$" "$work/stdout" || fail "$call: other arguments"
# variant NAME FLAGS: of a machine with a processor with the flags.
variant() {
  call="flags: $2"
  printf 'processor\t: 0\nflags\t\t: fpu %s sse\n' "$2" >"$work/cpuinfo"
  (source tools/setup.sh && unset RAMET_ISA && ramet_variant "$work/cpuinfo") >"$work/stdout" 2>"$work/stderr"
  grep -qx "$1" "$work/stdout" || fail "$call: expected the variant $1"
}
variant base "avx fma bmi1 bmi2"
variant v3 "avx2 fma bmi1 bmi2 avx512f"
variant v4 "avx2 fma bmi1 bmi2 avx512f avx512bw avx512cd avx512dq avx512vl"
variant base "avx512f avx512bw avx512cd avx512dq avx512vl"

# The disk cache. The entries that were read longest ago go while all take more than RAMET_CACHE_GIB, or than the disk has left;
# every ten minutes at most. All go where the disk is full. Sparse files stand in for large entries.
old="$work/cache/read long ago"
new=$work/cache/read_today
truncate -s 1G "$old" "$new"
touch -a -d '3 days ago' "$old"
printf '#!/bin/sh\necho Avail\necho "${FREE:-50}G"\n' >"$work/bin/df"
chmod +x "$work/bin/df"
# cache GIB: what a call of Bazel does to the cache that may take so much.
cache() {
  call="a cache of $1 GiB"
  (source tools/setup.sh && RAMET_CACHE_GIB=$1 ramet_cache) >"$work/stdout" 2>"$work/stderr"
}
rm "$work/cache/pruned"
cache 2
[[ -e $old && -e $new ]] || fail "$call lost entries though they fit"
cache 1
[[ -e $old ]] || fail "$call was pruned twice in ten minutes"
rm "$work/cache/pruned"
cache 1
[[ ! -e $old && -e $new ]] || fail "$call kept what was read longest ago, or lost what was read last"
truncate -s 2G "$old"
touch -a -d '3 days ago' "$old"
touch -d '11 minutes ago' "$work/cache/pruned"
FREE=2 cache 12
[[ ! -e $old && -e $new ]] || fail "$call takes more than the 2 GiB that are free beside it, or less"
cache many
grep -q "RAMET_CACHE_GIB: got many, expected a whole number; taking 24" "$work/stderr" || fail "$call is not refused"
[[ -e $new ]] || fail "$call lost entries"
FREE=1 cache 12
[[ ! -e $new ]] || fail "$call stayed though the disk is full"
grep -q "less than 2 GiB are free.*($work/cache)" "$work/stderr" || fail "$call does not say that it was emptied"
FREE=1 cache 12
[[ ! -s $work/stderr ]] || fail "$call is empty and was emptied again"

[[ $failed -eq 0 ]] && echo "OK: usage, wrong options and last lines are as expected"
exit $failed
