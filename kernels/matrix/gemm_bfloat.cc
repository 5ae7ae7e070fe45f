// Products of bfloat16 matrices. The loops are those of gemm.cc, but B is always packed, and an
// element's sum is one chain over all of k. So K blocks need not be the same with and without the
// instruction for pairs.
#include "kernels/matrix/gemm_bfloat.h"

#include "kernels/matrix/bfloat_pack.h"
#include "kernels/matrix/bfloat_tile.h"
#include "kernels/matrix/cut.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

#if defined(__AVX512F__)
// Processor cycles of 2 * `pairs` products in each element of a whole tile; the least of a few.
template <class Step> [[gnu::noinline]] uint64_t tile_time(int64_t pairs, const float* zeros) {
  alignas(64) float sums[kMR * kNR];
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 6; ++i) {
    const uint64_t start = __builtin_ia32_rdtsc();
    bfloat_tile<Step>({zeros, 0, zeros, sums, kNR, Step::kPairs ? pairs : 2 * pairs, true}, kMR,
                      kNR);
    const uint64_t time = __builtin_ia32_rdtsc() - start;
    if (time < least) least = time;
  }
  return least;
}
// On Zen 4 the instruction takes as long as one multiply-add, and does the work of two. On an Intel
// processor of 2024 it takes as long as three or four. So it is timed, once, for some ten
// microseconds. The bits are the same.
bool pairs_are_faster() {
  constexpr int64_t kPairs = 64;
  alignas(64) static const float zeros[2 * kPairs * kNR] = {};
  return tile_time<PairStep>(kPairs, zeros) < tile_time<FloatStep>(kPairs, zeros);
}

BfloatPairs pairs_when = BfloatPairs::kIfFaster;
// 0 before the first product, then 1 (slower, or no such instruction) or 2
uint8_t pairs_known = 0;
bool use_pairs() {
  const BfloatPairs when = __atomic_load_n(&pairs_when, __ATOMIC_RELAXED);
  if (when != BfloatPairs::kIfFaster)
    return when == BfloatPairs::kAlways && __builtin_cpu_supports("avx512bf16");
  uint8_t known = __atomic_load_n(&pairs_known, __ATOMIC_RELAXED);
  if (known == 0) {
    known = __builtin_cpu_supports("avx512bf16") && pairs_are_faster() ? 2 : 1;
    __atomic_store_n(&pairs_known, known, __ATOMIC_RELAXED);
  }
  return known == 2;
}
#endif

struct Plan {
  int64_t pairs, blocks, per;  // pairs of neighbours in k, K blocks, and pairs of one
  int64_t rows, cols;          // rows and columns of one task
  bool threads;
  bool in_place;  // pairs of A are read where they are
};

// Rows of A are pairs as they are, where k is even. Packing them pays where many columns read them.
template <class Step> RAMET_INLINE bool reads_in_place(const BfloatGemm& g) {
  constexpr int64_t kColumns = 1 << 20;
  return Step::kPairs && !g.ta && g.k % 2 == 0 && g.lda > 0 && g.n <= kColumns &&
         (g.m <= kMR || g.lda % 2048 != 0);
}

template <class Step> RAMET_INLINE Plan make_plan(const BfloatGemm& g) {
  Plan p;
  p.pairs = ceil_div(g.k, 2);
  p.blocks = imax(1, ceil_div(p.pairs, Step::kPairs || g.k <= kBfloatKC ? kGemmKC : kGemmKC / 2));
  p.per = ceil_div(p.pairs, p.blocks);
  const double products =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  p.threads =
      g.parallel && products > 1e5 && products >= 8.0 * static_cast<double>(parallel_grain());
  int64_t rows = ceil_div(g.m, kGemmMC), cols = 1;
  if (rows < 8 && p.threads) {  // aim at 8 tasks
    if (g.n >= 4 * kNR) cols = ceil_div(8, rows);
    else if (g.m > 4 * kMR) rows = imin(g.m / kMR, 8);
  }
  p.rows = ceil_div(g.m, rows);
  p.cols = ceil_div(ceil_div(g.n, cols), kNR) * kNR;
  p.in_place = reads_in_place<Step>(g);
  return p;
}

// Rows i .. of C, columns j .. j + nr, from the sums of a tile.
void finish(const BfloatGemm& g, const float* sums, int64_t stride, int64_t i, int64_t rows,
            int64_t j, int64_t nr) {
  const vf alpha = set1(g.alpha), beta = set1(g.beta);
  for (int64_t c = 0; c < nr; c += VL) {
    const int64_t n = imin(nr - c, VL);
    const vf bias = g.bias ? as_floats(g.bias + j + c, n) : vf{};
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (i + r) * g.ldc + j + c;
      vf v = load(sums + r * stride + c);
      if (g.alpha != 1) v *= alpha;
      if (g.beta != 0) v += beta * (g.float_c ? loadn(g.float_c + at, n) : as_floats(g.c + at, n));
      if (g.bias) v += bias;
      if (g.relu) v = max(vf{}, v);  // this order keeps a NaN
      if (g.float_c) storen(g.float_c + at, v, n);
      else store_halves(g.c + at, v, n);
    }
  }
}

template <class Step> struct Block {  // columns jc .. jc+nc of C, one K block
  static constexpr int64_t kPerPair = Step::kPairs ? 1 : 2;
  const BfloatGemm& g;
  const Plan& p;
  BfloatOperand a, b;
  int64_t jc, nc, pair, np;
  bool first, last;

  void pack_b(int64_t sliver) const {
    const int64_t j = sliver * kNR;
    bfloat_pack<Step::kPairs>(b, jc + j, imin(nc - j, kNR), pair, np, g.pack_b + j * np * kPerPair,
                              kNR);
  }

  // rows i0 .., columns jc + j0 ..
  void tile(int64_t i0, int64_t m, int64_t j0, int64_t n, int slot) const {
    const Cut slivers(m);
    const int64_t steps = np * kPerPair, width = g.has_c() ? bfloat_sums_row(g.n) : g.ldc;
    float* packed = g.pack_a + slot * bfloat_pack_a(g.m, g.k);
    for (int64_t s = 0, i = 0; s < slivers.parts && !p.in_place; i += slivers.size(s++))
      bfloat_pack<Step::kPairs>(a, i0 + i, slivers.size(s), pair, np, packed + i * steps,
                                slivers.size(s));
    alignas(64) float own[kMR * kNR];
    const bool whole = p.blocks == 1 && g.has_c();
    BfloatTile t;
    t.as = p.in_place ? 2 * g.lda : 0;
    t.steps = steps, t.first = first && !g.continues;
    t.cs = whole ? kNR : width;
    for (int64_t j = j0; j < j0 + n; j += kNR)
      for (int64_t s = 0, i = 0; s < slivers.parts; i += slivers.size(s++)) {
        const int64_t rows = slivers.size(s), nr = imin(nc - j, kNR);
        if (p.in_place) t.a = g.a + (i0 + i) * g.lda + 2 * pair;
        else t.a = packed + i * steps;
        t.b = g.pack_b + j * steps;
        t.c = whole ? own : g.sums + (i0 + i) * width + jc + j;
        bfloat_tile<Step>(t, rows, nr);
        if (last && g.has_c()) finish(g, t.c, t.cs, i0 + i, rows, jc + j, nr);
      }
  }
};

template <class F> RAMET_INLINE void run_tasks(bool threads, int64_t tasks, const F& f) {
  if (threads) return parallel_tasks(tasks, f);
  for (int64_t t = 0; t < tasks; ++t) f(t, 0);
}

template <class Step> void multiply(const BfloatGemm& g) {
  const Plan p = make_plan<Step>(g);
  const BfloatOperand a{g.a, g.lda, g.ta, g.m, g.k}, b{g.b, g.ldb, !g.tb, g.n, g.k};
  for (int64_t jc = 0; jc < g.n; jc += kGemmNC) {
    const int64_t nc = imin(g.n - jc, kGemmNC), slivers = ceil_div(nc, kNR);
    const int64_t row_tasks = ceil_div(g.m, p.rows), column_tasks = ceil_div(nc, p.cols);
    for (int64_t block = 0; block < p.blocks; ++block) {
      const int64_t pair = block * p.per;
      const Block<Step> one{
          g, p, a, b, jc, nc, pair, imin(p.pairs - pair, p.per), block == 0, block == p.blocks - 1};
      constexpr int64_t kGrain = 4;
      run_tasks(p.threads && row_tasks * column_tasks > 1, ceil_div(slivers, kGrain),
                [&](int64_t t, int) {
                  for (int64_t s = t * kGrain; s < imin(slivers, (t + 1) * kGrain); ++s)
                    one.pack_b(s);
                });
      run_tasks(p.threads, row_tasks * column_tasks, [&](int64_t t, int slot) {
        const int64_t i0 = t / column_tasks * p.rows, j0 = t % column_tasks * p.cols;
        one.tile(i0, imin(g.m - i0, p.rows), j0, imin(nc - j0, p.cols), slot);
      });
    }
  }
}

}  // namespace

bool set_bfloat_pairs([[maybe_unused]] BfloatPairs when) {
#if defined(__AVX512F__)
  __atomic_store_n(&pairs_when, when, __ATOMIC_RELAXED);
  return use_pairs();
#else
  return false;
#endif
}
bool bfloat_uses_pairs() {
#if defined(__AVX512F__)
  return use_pairs();
#else
  return false;
#endif
}

void gemm_bfloat(const BfloatGemm& g) {
  if (g.m <= 0 || g.n <= 0) return;
#if defined(__AVX512F__)
  if (use_pairs()) return multiply<PairStep>(g);
#endif
  multiply<FloatStep>(g);
}

}  // namespace ramet::kernels::RAMET_VARIANT
