#!/usr/bin/env bash
# tools/mutation: what is taken for a mutant, that a seed draws the same ones, and that a survivor is reported. On a small
# planted tree, with a script in the place of Bazel.
set -euo pipefail

work=$TEST_TMPDIR
mutate=tools/mutation/mutate.py
tree=$work/tree
failed=0

fail() {
  echo "FAILED: $*"
  failed=1
}

mkdir -p "$tree"/{kernels,autograd,parallel,tools/mutation}

# Each line ends with the number of tokens that can be changed; no number is none.
cat >"$tree/kernels/every.cc" <<'E2'
#include "a/b.h"
#define TWICE(x) \
  ((x) + (x) < 2)
// a + b < c
/* a - b
   c == d */
template <class T, int kN = 3> void f(const T* a, T&& b, std::vector<std::vector<int>>& c);
static_assert(sizeof(int) == 4 && 1 < 2, "a + b");
constexpr int64_t kTaskElements = 8 * 1024;
constexpr int64_t kOther = 8 * 1024;  // 1
bool operator<(const A& a, const A& b);
auto g(int a, int b) -> int { return a + b; }  // 1
int h() { return *p * q / r % s; }  // 3
const char* words = "a + b == c && !d" "x";
const char* raw = R"x(a < b " && !c)x";
char c = '+';
void i() { RAMET_CHECK(a >= b && !c, "op", "got ", a - 1, ", not ", b * 2); }  // 3
void j() { throw Error(a + 1); }
void k() { throw_away(a - b); }  // 1
void l() { fail("op", a - 1); }
int m = -1, n = x - 1, o = x - -y;  // 6
for (int64_t i = 0; i < n; i += 2) ++x;  // 3
if (bytes < parallel_grain()) return x + 1;  // 2
const int64_t most = std::numeric_limits<int64_t>::max(), least = std::min(a, imax(b, c));  // 2
int64_t imin(int64_t a, int64_t b);
std::string text = "no " + name;
[[deprecated("a - b")]] int old(int a);
if (!a || x[i] != !y) z *= 2;  // 5
x = a<b>(c), y = d & e, w = &v << 3;
double e = 1e-5 + 0x1e-3;  // 1
E2
python3 "$mutate" --root "$tree" --part kernels --count 1000 --list 2>/dev/null | grep '^kernels/' | cut -d: -f2 |
  sort -n | uniq -c | awk '{print $2, $1}' >"$work/got"
awk -F'// ' '/\/\/ [0-9]+$/ {print NR, $NF}' "$tree/kernels/every.cc" >"$work/expected"
diff "$work/expected" "$work/got" || fail "the number of mutants by line of every.cc: < expected, > got"
rm "$tree/kernels/every.cc"

# The draw.
seq 1 50 | sed 's/.*/int f&(int a, int b) { return a + b < & ? a - b : a * b; }/' >"$tree/autograd/many.cc"
draw() { python3 "$mutate" --root "$tree" --part autograd --count 12 --list "$@" 2>/dev/null | grep '^  ' | sort; }
draw >"$work/first"
[[ $(wc -l <"$work/first") -eq 12 ]] || fail "12 mutants were asked for, $(wc -l <"$work/first") drawn"
draw | cmp - "$work/first" || fail "the same seed drew other mutants"
draw --seed 2 | cmp -s - "$work/first" && fail "another seed drew the same mutants"
sed -i '1i// A line more, which moves all the others.' "$tree/autograd/many.cc"
draw | cmp - "$work/first" || fail "a line more, and the seed drew other mutants"
rm "$tree/autograd/many.cc"

# Kernels for GPUs are a part of their own, with tests and a second build of their own.
for file in sum.cc sum.cu sum_gpu.h; do echo 'int sum(int a, int b) { return a + b; }' >"$tree/kernels/$file"; done
files() { python3 "$mutate" --root "$tree" --part "$1" --count 9 --list 2>/dev/null | grep -o '^[^ :]*' | sort | tr '\n' ' '; }
[[ $(files kernels) == "kernels/sum.cc " ]] || fail "mutants of kernels are of: $(files kernels)"
[[ $(files gpu) == "kernels/sum.cu kernels/sum_gpu.h " ]] || fail "mutants of kernels on GPUs are of: $(files gpu)"
printf '#!/usr/bin/env bash\necho "//tests/gpu:$4_test FAILED in 1s"\ngrep -q "a - b" kernels/sum.cu || exit 0\n' >"$work/runner"
printf '[[ $1 == *filters=cuda* ]] || exit 1\n[[ $4 == check ]] && exit 3\nexit 0\n' >>"$work/runner"
chmod +x "$work/runner"
python3 "$mutate" --root "$tree" --runner "$work/runner" --only kernels/sum.cu:1:34:- >"$work/out" 2>&1 ||
  fail "a mutant of a kernel for GPUs: $(cat "$work/out")"
grep -q 'by //tests/gpu:check_test (the checker of emulated GPUs)' "$work/out" || fail "not by the checker: $(cat "$work/out")"
rm "$tree"/kernels/sum*

# The run: the script wants sum.cc as it is. It never checks the second function, and sees the last one only in the sanitized build.
cat >"$tree/parallel/sum.cc" <<'E2'
int sum(int a, int b) { return a + b; }
int unseen(int a, int b) { return a * b; }
int typed(A a, A b) { return a / b; }
int unsafe(int a, int b) { return a < b; }
E2
cat >"$work/runner" <<'E2'
#!/usr/bin/env bash
grep -q 'a / b' parallel/sum.cc || exit 1
[[ $4 == asan ]] && ! grep -q 'a < b' parallel/sum.cc && echo "//tests/parallel:unsafe_test FAILED in 9s" && exit 3
grep -q 'a + b' parallel/sum.cc && exit 0
echo "//tests/parallel:sum_test    FAILED in 0.1s"
echo "//tests/parallel:other_test  FAILED TO BUILD"
exit 3
E2
chmod +x "$work/runner"
sum=$(sha256sum "$tree/parallel/sum.cc")
# run NAME CODE PATTERN...: the exit code, and what must stand in the output.
run() {
  local name=$1 code=$2 got=0 pattern
  shift 2
  python3 "$mutate" --root "$tree" --runner "$work/runner" --part parallel --count 3 >"$work/out" 2>&1 || got=$?
  [[ $got -eq $code ]] || fail "$name: exit code $got, expected $code"
  for pattern in "$@"; do grep -Eq "$pattern" "$work/out" || fail "$name: no line matches $pattern"; done
  [[ $failed -eq 0 ]] || cat "$work/out"
}
run "a survivor" 1 '^killed .* parallel/sum.cc:1:34:- .*by //tests/parallel:sum_test' \
  '^killed .* by //tests/parallel:unsafe_test \(ASan, UBSan\)' '^does not compile .* parallel/sum.cc:3:' \
  '^SURVIVED: parallel/sum.cc:2:37:' '^  int unseen.*\{\* => [/+]\}' '^mutate: FAILED: 3 mutants: 2 killed, 1 survived, of which 0'
[[ $(sha256sum "$tree/parallel/sum.cc") == "$sum" ]] || fail "the tree itself was changed"

# The survivor's block, with a reason.
{
  echo "# a comment"
  sed -n '/^SURVIVED:/,$p' "$work/out" | sed -n '2,3p'
  echo "  nobody calls it"
} >"$tree/tools/mutation/explained.txt"
run "an explained survivor" 0 '^explained +' 'nobody calls it' '^mutate: OK: 3 mutants: 2 killed, 1 survived, of which 1 explained'
sed -i 's/unseen/renamed/' "$tree/parallel/sum.cc"
run "an explanation of a line that is gone" 1 'explains what the tree no longer has'
rm "$tree/tools/mutation/explained.txt"
sed -i 's/a + b/b + a/' "$tree/parallel/sum.cc"
run "tests that fail without a change" 1 'FAILED: //tests/parallel/... does not pass as it is'

[[ $failed -eq 0 ]] && echo "OK: mutants are found, drawn and reported as expected"
exit $failed
