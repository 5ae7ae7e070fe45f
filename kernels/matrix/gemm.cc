// Products of float matrices. For each K block, every element of C is one chain of fused
// multiply-adds in increasing k; then the blocks are added in order. So neither its tile, nor the
// thread, nor packing changes its bits. The K blocks depend on k alone and are equal in all
// variants.
#include "kernels/matrix/gemm.h"

#include "kernels/matrix/micro.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {

void pack_transposed(const float* s, int64_t ld, int64_t rows, int64_t k, float* dst,
                     int64_t stride) {
  for (int64_t r0 = 0; r0 < rows; r0 += VL) {
    const int64_t nr = imin(rows - r0, VL);
    for (int64_t k0 = 0; k0 < k; k0 += VL) {
      const int64_t nk = imin(k - k0, VL);
      vf r[VL];
#pragma GCC unroll 16
      for (int i = 0; i < VL; ++i) {
        const float* p = s + (r0 + i) * ld + k0;
        r[i] = i < nr ? (nk == VL ? load(p) : loadn(p, nk)) : vf{};
      }
      transpose(r);
      float* d = dst + k0 * stride + r0;
      // a whole vector would overwrite a part of the next row, which is already written
      if (r0 > 0 && nr < VL && stride < r0 + VL) {
        for (int64_t i = 0; i < nk; ++i) storen(d + i * stride, r[i], nr);
        continue;
      }
#pragma GCC unroll 16
      for (int i = 0; i < VL; ++i)
        if (i < nk) store(d + i * stride, r[i]);
    }
  }
}

namespace {

// dst[k][stride]
void pack_rows(const float* s, int64_t ld, int64_t n, int64_t k, float* dst, int64_t stride) {
  for (int64_t i = 0; i < k; ++i, s += ld, dst += stride)
    for (int64_t j = 0; j < n; j += VL)
      store(dst + j, n - j >= VL ? load(s + j) : loadn(s + j, n - j));
}

struct Plan {  // all of it follows from the shape
  bool pa, pb;
  int64_t kb, kc;      // K blocks and their size
  int64_t rows, cols;  // rows and columns of one task
};

RAMET_INLINE bool worth_threads(const Gemm& g) {
  const double products =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  return g.parallel && products > 1e5 && products >= 8.0 * static_cast<double>(parallel_grain());
}

RAMET_INLINE Plan make_plan(const Gemm& g) {
  Plan p;
  p.kb = gemm_k_blocks(g.k);
  p.kc = gemm_k_block(g.k);
  p.pb = gemm_packs_b(g.m, g.n, g.k, g.ldb, g.tb);
  p.pa = gemm_packs_a(g.m, g.n, g.k, g.lda, g.ta);
  int64_t rb = ceil_div(g.m, kGemmMC), cb = 1;
  if (rb < 8 && worth_threads(g)) {  // aim at 8 tasks
    if (g.n >= 4 * kNR) cb = ceil_div(8, rb);
    else if (g.m > 4 * kMR) rb = imin(g.m / kMR, 8);
  }
  p.rows = ceil_div(g.m, rb);
  p.cols = ceil_div(ceil_div(g.n, cb), kNR) * kNR;
  return p;
}

struct Block {  // columns jc .. jc+nc of C, k from pc to pc+kc
  const Gemm& g;
  const Plan& p;
  float* packed;  // B as slivers of [kc][kNR]
  int64_t jc, nc, pc, kc;
  bool first, last;

  void pack_b(int64_t s) const {
    const int64_t j = s * kNR, n = imin(nc - j, kNR);
    float* d = packed + j * kc;
    if (g.tb) pack_transposed(g.b + (jc + j) * g.ldb + pc, g.ldb, n, kc, d, kNR);
    else pack_rows(g.b + pc * g.ldb + jc + j, g.ldb, n, kc, d, kNR);
  }

  // rows i0.., columns jc+j0..
  void tile(int64_t i0, int64_t m, int64_t j0, int64_t n, int slot) const {
    // Rows that share the sets of the first-level cache are read at most seven at a time.
    const Cut slivers(m, !p.pa && !g.ta && g.lda % 1024 == 0 && kMR > 7 ? 7 : kMR);
    const float* ap = g.ta ? g.a + pc * g.lda + i0 : g.a + i0 * g.lda + pc;
    bool ta = g.ta;
    if (p.pa) {
      float* d = g.pack_a + slot * kGemmPackA;
      for (int64_t s = 0, i = 0; s < slivers.parts; i += slivers.size(s++)) {
        const int64_t r = slivers.size(s);
        if (g.ta) pack_rows(ap + i, g.lda, r, kc, d + i * kc, r);
        else pack_transposed(ap + i * g.lda, g.lda, r, kc, d + i * kc, r);
      }
      ap = d, ta = true;
    }
    Tile t;
    t.k = kc, t.segs = 1, t.aseg = t.bseg = 0, t.aoff = nullptr;
    t.cs = g.ldc, t.alpha = g.alpha, t.beta = first ? g.beta : 1.0f;
    t.relu = last && g.relu;
    for (int64_t j = j0; j < j0 + n; j += kNR) {
      const auto* fn = micro_for(t, ta, imin(nc - j, kNR), p.pb);
      t.b = p.pb ? packed + j * kc : g.b + pc * g.ldb + jc + j;
      t.bs = p.pb ? kNR : g.ldb;
      t.bias = last && g.bias ? g.bias + jc + j : nullptr;
      for (int64_t s = 0, i = 0; s < slivers.parts; i += slivers.size(s++)) {
        const int64_t r = slivers.size(s);
        t.a = p.pa ? ap + i * kc : ta ? ap + i : ap + i * g.lda;
        t.as = p.pa ? r : g.lda;
        t.c = g.c + (i0 + i) * g.ldc + jc + j;
        fn[r - 1](t);
      }
    }
  }
};

// Few rows (vector times matrix). B is read once, row after row, with C's partial sums in the
// first-level cache. The order of the additions is the same as with tiles. So a row's bits do not
// depend on the number of rows.
constexpr int64_t kFewColumns = 256;

template <int R> void few_rows(const Gemm& g, const Plan& p, int64_t j0, int64_t n) {
  constexpr int kUnroll = R == 1 ? 8 : 4;
  alignas(64) float part[R][kFewColumns + 16];
  const int64_t ai = g.ta ? 1 : g.lda, ak = g.ta ? g.lda : 1;
  for (int64_t b = 0; b < p.kb; ++b) {
    const int64_t pc = b * p.kc, end = imin(g.k, pc + p.kc);
    std::memset(part, 0, sizeof part);
    const auto rows = [&]<int U>(int64_t k) __attribute__((always_inline)) {
      vf x[R][U];
      for (int i = 0; i < R; ++i)
        for (int u = 0; u < U; ++u) x[i][u] = set1(g.a[i * ai + (k + u) * ak]);
      for (int64_t j = 0; j < n; j += VL) {
        const float* bp = g.b + k * g.ldb + j0 + j;
        vf acc[R];
        for (int i = 0; i < R; ++i) acc[i] = load(&part[i][j]);
#pragma GCC unroll 8
        for (int u = 0; u < U; ++u) {
          const vf bv = n - j >= VL ? load(bp + u * g.ldb) : loadn(bp + u * g.ldb, n - j);
          for (int i = 0; i < R; ++i) acc[i] = fma(x[i][u], bv, acc[i]);
        }
        for (int i = 0; i < R; ++i) store(&part[i][j], acc[i]);
      }
    };
    int64_t k = pc;
    for (; k + kUnroll <= end; k += kUnroll) rows.template operator()<kUnroll>(k);
    for (; k < end; ++k) rows.template operator()<1>(k);
    const float beta = b == 0 ? g.beta : 1.0f;
    const bool last = b == p.kb - 1;
    for (int i = 0; i < R; ++i)
      for (int64_t j = 0; j < n; j += VL) {
        float* c = g.c + i * g.ldc + j0 + j;
        vf v = load(&part[i][j]);
        if (g.alpha != 1) v *= set1(g.alpha);
        if (beta != 0) v = fma(set1(beta), loadn(c, n - j), v);
        if (last && g.bias) v += loadn(g.bias + j0 + j, n - j);
        if (last && g.relu) v = max(vf{}, v);
        storen(c, v, n - j);
      }
  }
}

void few_rows_gemm(const Gemm& g, const Plan& p) {
  constexpr void (*fn[])(const Gemm&, const Plan&, int64_t, int64_t) = {few_rows<1>, few_rows<2>,
                                                                        few_rows<3>, few_rows<4>};
  const auto task = [&](int64_t t, int) {
    fn[g.m - 1](g, p, t * kFewColumns, imin(g.n - t * kFewColumns, kFewColumns));
  };
  const int64_t tasks = ceil_div(g.n, kFewColumns);
  if (g.parallel && g.n * g.k * 4 >= 2 * parallel_grain()) return parallel_tasks(tasks, task);
  for (int64_t t = 0; t < tasks; ++t) task(t, 0);
}

template <class F> RAMET_INLINE void run_tasks(bool threads, int64_t tasks, const F& f) {
  if (threads) return parallel_tasks(tasks, f);
  for (int64_t t = 0; t < tasks; ++t) f(t, 0);
}

void blocked(const Gemm& g, const Plan& p, float* packed) {
  const bool threads = worth_threads(g);
  for (int64_t jc = 0; jc < g.n; jc += kGemmNC) {
    const int64_t nc = imin(g.n - jc, kGemmNC), slivers = ceil_div(nc, kNR);
    for (int64_t b = 0; b < p.kb; ++b) {
      const int64_t pc = b * p.kc;
      const Block block{g, p, packed, jc, nc, pc, imin(g.k - pc, p.kc), b == 0, b == p.kb - 1};
      const int64_t rb = ceil_div(g.m, p.rows), cb = ceil_div(nc, p.cols);
      if (p.pb) {
        constexpr int64_t kGrain = 4;
        run_tasks(threads && rb * cb > 1, ceil_div(slivers, kGrain), [&](int64_t c, int) {
          for (int64_t s = c * kGrain; s < imin(slivers, (c + 1) * kGrain); ++s) block.pack_b(s);
        });
      }
      run_tasks(threads, rb * cb, [&](int64_t t, int slot) {
        const int64_t i0 = t / cb * p.rows, j0 = t % cb * p.cols;
        block.tile(i0, imin(g.m - i0, p.rows), j0, imin(nc - j0, p.cols), slot);
      });
    }
  }
}

[[gnu::noinline]] void blocked_on_stack(const Gemm& g, const Plan& p) {
  alignas(64) float packed[kGemmStackFloats];
  blocked(g, p, packed);
}

}  // namespace

void gemm(const Gemm& g) {
  if (g.m <= 0 || g.n <= 0) return;
  const Plan p = make_plan(g);
  if (g.m <= 4 && !g.tb && g.n * g.k > 16 * 1024) return few_rows_gemm(g, p);
  if (!p.pa && !p.pb && p.kb == 1 && g.m <= p.rows && g.n <= p.cols) {
    const Block whole{g, p, nullptr, 0, g.n, 0, g.k, true, true};
    return whole.tile(0, g.m, 0, g.n, 0);
  }
  if (p.pb && gemm_pack_b_floats(g.n, g.k) <= kGemmStackFloats) return blocked_on_stack(g, p);
  blocked(g, p, g.pack_b);
}

}  // namespace ramet::kernels::RAMET_VARIANT
