#include "kernels/matrix/matmul.h"

#include "kernels/copy/chunk.h"
#include "kernels/matrix/gemm.h"
#include "kernels/matrix/gemm_bfloat.h"
#include "kernels/matrix/gemm_wide.h"
#include "kernels/simd/lanes64.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

RAMET_INLINE bool worth_threads(const MatmulArgs& g) {
  return static_cast<double>(g.batch) * static_cast<double>(g.m) * static_cast<double>(g.n) *
             static_cast<double>(g.k) >=
         8.0 * static_cast<double>(parallel_grain());
}

RAMET_INLINE Gemm product_of(const MatmulArgs& g, const MatmulLayout& l) {
  return {g.m,
          g.n,
          g.k,
          static_cast<const float*>(g.a),
          l.lda,
          l.ta,
          static_cast<const float*>(g.b),
          l.ldb,
          l.tb,
          static_cast<float*>(g.c),
          g.c_row,
          static_cast<float>(g.alpha),
          static_cast<float>(g.beta),
          static_cast<const float*>(g.bias),
          g.relu};
}

void float_product(const MatmulArgs& g) {
  const MatmulLayout l = matmul_layout(g);
  Gemm one = product_of(g, l);
  auto* space = static_cast<float*>(g.workspace);
  const int64_t pack_b =
      gemm_packs_b(g.m, g.n, g.k, l.ldb, l.tb) ? gemm_pack_b_floats(g.n, g.k) : 0;
  const int64_t b_floats = pack_b <= kGemmStackFloats ? 0 : matmul_round(pack_b);
  const int64_t a_floats = gemm_packs_a(g.m, g.n, g.k, l.lda, l.ta) ? kGemmPackA : 0;
  if (g.n == 1 && g.m > 1 && l.ta && g.c_row == 1 && !g.bias && !a_floats && !b_floats) {
    // A matrix stored by columns, times a vector: the transposed product reads it once, in order.
    one.m = 1, one.n = g.m;
    one.a = static_cast<const float*>(g.b), one.lda = l.ldb, one.ta = l.ldb != 1;
    one.b = static_cast<const float*>(g.a), one.ldb = l.lda, one.tb = false;
    one.ldc = g.m;
    if (gemm_packs_b(one.m, one.n, one.k, one.ldb, false)) one = product_of(g, l);
  }
  const bool swapped = one.m != g.m;
  const auto at_batch = [&](Gemm& p, int64_t s) {
    p.a = one.a + s * (swapped ? g.b_batch : g.a_batch);
    p.b = one.b + s * (swapped ? g.a_batch : g.b_batch);
    p.c = one.c + s * g.c_batch;
  };
  if (!l.over_batch) {
    one.pack_b = space, one.pack_a = space + b_floats;
    for (int64_t s = 0; s < g.batch; ++s) {
      Gemm p = one;
      at_batch(p, s);
      gemm(p);
    }
    return;
  }
  const auto range = [&](int64_t begin, int64_t end, int slot) {
    Gemm p = one;
    p.parallel = false;
    p.pack_b = space + slot * (b_floats + a_floats), p.pack_a = p.pack_b + b_floats;
    for (int64_t s = begin; s < end; ++s) at_batch(p, s), gemm(p);
  };
  if (!worth_threads(g)) return range(0, g.batch, 0);
  const int64_t tasks = imin(g.batch, 16);
  parallel_tasks(tasks, [&](int64_t t, int slot) {
    range(g.batch * t / tasks, g.batch * (t + 1) / tasks, slot);
  });
}

// rows x cols matrices to dense float copies. `row` may be any stride; the columns' stride is 1 (or
// cols <= 1).
void widen(const void* src, ScalarType dtype, int64_t batch, int64_t batch_stride, int64_t rows,
           int64_t row, int64_t cols, float* dst) {
  const int64_t lines = batch * rows,
                per = imax(ceil_div(lines, 64), imax(8192 / imax(cols, 1), 1));
  parallel_tasks(ceil_div(lines, per), [&](int64_t t, int) {
    for (int64_t i = t * per; i < imin(lines, (t + 1) * per); ++i)
      load_chunk(at(src, dtype, i / rows * batch_stride + i % rows * row), dtype, 1, cols,
                 dst + i * cols);
  });
}

void half_product(const MatmulArgs& g) {
  const MatmulLayout l = matmul_layout(g);
  const MatmulCopies sizes = matmul_copies(g);
  MatmulArgs f = matmul_on_copies(g);
  auto* a = static_cast<float*>(g.workspace);
  float *b = a + sizes.a, *c = b + sizes.b, *bias = c + sizes.c;
  const int64_t a_batch = g.a_batch == 0 ? 1 : g.batch, b_batch = g.b_batch == 0 ? 1 : g.batch;
  if (l.ta) widen(g.a, g.dtype, a_batch, g.a_batch, g.k, g.a_col, g.m, a);
  else widen(g.a, g.dtype, a_batch, g.a_batch, g.m, g.a_row, g.k, a);
  if (l.tb) widen(g.b, g.dtype, b_batch, g.b_batch, g.n, g.b_col, g.k, b);
  else widen(g.b, g.dtype, b_batch, g.b_batch, g.k, g.b_row, g.n, b);
  if (g.float_c) {
    f.a = a, f.b = b, f.workspace = c;
    return float_product(f);
  }
  if (g.beta != 0) widen(g.c, g.dtype, g.batch, g.c_batch, g.m, g.c_row, g.n, c);
  if (g.bias) load_chunk(g.bias, g.dtype, 1, g.n, bias);
  f.a = a, f.b = b, f.c = c, f.bias = g.bias ? bias : nullptr, f.workspace = bias + sizes.bias;
  float_product(f);
  const int64_t lines = g.batch * g.m,
                per = imax(ceil_div(lines, 64), imax(8192 / imax(g.n, 1), 1));
  parallel_tasks(ceil_div(lines, per), [&](int64_t t, int) {
    for (int64_t i = t * per; i < imin(lines, (t + 1) * per); ++i)
      store_chunk(at(g.c, g.dtype, i / g.m * g.c_batch + i % g.m * g.c_row), g.dtype, 1, g.n,
                  c + i * g.n);
  });
}

void bfloat_product(const MatmulArgs& args) {
  const MatmulArgs g = matmul_as_row(args);
  const MatmulLayout l = matmul_layout(g);
  const auto *a = static_cast<const uint16_t*>(g.a), *b = static_cast<const uint16_t*>(g.b);
  auto* c = g.float_c ? nullptr : static_cast<uint16_t*>(g.c);
  auto* float_c = g.float_c ? static_cast<float*>(g.c) : nullptr;
  const int64_t pack_b = bfloat_pack_b(g.n, g.k), pack_a = bfloat_pack_a(g.m, g.k),
                sums = bfloat_sums(g.m, g.n, g.k), once = matmul_round(sums + pack_b);
  // The workspace of one product: its sums, packed B, and packed A for each thread.
  const auto one = [&](int64_t s, float* space, bool parallel) {
    gemm_bfloat({g.m,
                 g.n,
                 g.k,
                 a + s * g.a_batch,
                 l.lda,
                 l.ta,
                 b + s * g.b_batch,
                 l.ldb,
                 l.tb,
                 c ? c + s * g.c_batch : nullptr,
                 g.c_row,
                 static_cast<float>(g.alpha),
                 static_cast<float>(g.beta),
                 static_cast<const uint16_t*>(g.bias),
                 g.relu,
                 space + sums,
                 space + once,
                 space,
                 parallel,
                 /*continues=*/false,
                 float_c ? float_c + s * g.c_batch : nullptr});
  };
  auto* space = static_cast<float*>(g.workspace);
  if (!l.over_batch || !worth_threads(g)) {
    for (int64_t s = 0; s < g.batch; ++s) one(s, space, !l.over_batch);
    return;
  }
  const int64_t tasks = imin(g.batch, 16);
  parallel_tasks(tasks, [&](int64_t t, int slot) {
    for (int64_t s = g.batch * t / tasks; s < g.batch * (t + 1) / tasks; ++s)
      one(s, space + slot * (once + pack_a), false);
  });
}

template <class T> void wide_product(const MatmulArgs& g, T alpha, T beta) {
  auto* space = static_cast<T*>(g.workspace);
  const int64_t b_values = wide_pack_b(g.n, g.k), values = b_values + kWidePackA;
  const bool over_batch = matmul_layout(g).over_batch;
  const auto one = [&](int64_t s, T* pack, bool parallel) {
    wide_gemm(WideGemm<T>{g.m, g.n, g.k, at(g.a, g.dtype, s * g.a_batch), g.a_row, g.a_col,
                          at(g.b, g.dtype, s * g.b_batch), g.b_row, g.b_col,
                          at(g.c, g.dtype, s * g.c_batch), g.c_row, g.bias, alpha, beta, g.dtype,
                          pack, pack + b_values, parallel});
  };
  if (over_batch && worth_threads(g)) {
    const int64_t tasks = imin(g.batch, 16);
    parallel_tasks(tasks, [&](int64_t t, int slot) {
      for (int64_t s = g.batch * t / tasks; s < g.batch * (t + 1) / tasks; ++s)
        one(s, space + slot * values, false);
    });
    return;
  }
  for (int64_t s = 0; s < g.batch; ++s) one(s, space, !over_batch);
}

}  // namespace

void matmul(const MatmulArgs& g) {
  if (g.batch <= 0 || g.m <= 0 || g.n <= 0) return;
  by_compute_type(g.dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (ComputeTag<T>::value == ScalarType::Float)
      g.dtype == ScalarType::Float      ? float_product(g)
      : g.dtype == ScalarType::BFloat16 ? bfloat_product(g)
                                        : half_product(g);
    else if constexpr (ComputeTag<T>::value == ScalarType::Double)
      wide_product<T>(g, g.alpha, g.beta);
    else wide_product<T>(g, g.ialpha, g.ibeta);
  });
}

namespace {

constexpr int64_t kDotPartials = 64, kDotPiece = 2048;

// 64 lanes, then a tree: the same bits for every vector width.
float dot_chunk(const float* a, const float* b, int64_t n) {
  vf acc[kLaneVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kLaneVectors; ++v) acc[v] = vf{};
  int64_t i = 0;
  for (; i + 64 <= n; i += 64)
#pragma GCC unroll 16
    for (int v = 0; v < kLaneVectors; ++v)
      acc[v] = fma(load(a + i + v * VL), load(b + i + v * VL), acc[v]);
  if (i < n)
#pragma GCC unroll 16
    for (int v = 0; v < kLaneVectors; ++v) {
      const int64_t left = n - i - v * VL;
      if (left > 0) acc[v] = fma(loadn(a + i + v * VL, left), loadn(b + i + v * VL, left), acc[v]);
    }
  return fold(acc);
}

// 8 lanes. Integers as unsigned numbers: they wrap.
template <class U> U dot_chunk(const U* a, const U* b, int64_t n) {
  U lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; ++j) lanes[j] += a[i + j] * b[i + j];
  for (int j = 0; i < n; ++i, ++j) lanes[j] += a[i] * b[i];
  for (int width = 4; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  return lanes[0];
}
RAMET_INLINE uint64_t dot_chunk(const int64_t* a, const int64_t* b, int64_t n) {
  return dot_chunk(reinterpret_cast<const uint64_t*>(a), reinterpret_cast<const uint64_t*>(b), n);
}

template <class T> void dot_of(const DotArgs& d) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  const int64_t per =
      imax(8 * kDotPiece, ceil_div(ceil_div(d.n, kDotPartials), kDotPiece) * kDotPiece);
  const int64_t chunks = ceil_div(d.n, per);
  Sum partial[kDotPartials];
  parallel_tasks(chunks, [&](int64_t t, int) {
    T x[kDotPiece], y[kDotPiece];
    Sum sum = 0;
    for (int64_t i = t * per; i < imin(d.n, (t + 1) * per); i += kDotPiece) {
      const int64_t n = imin(kDotPiece, imin(d.n, (t + 1) * per) - i);
      sum += dot_chunk(chunk_in(at(d.a, d.dtype, i * d.a_stride), d.dtype, d.a_stride, n, x),
                       chunk_in(at(d.b, d.dtype, i * d.b_stride), d.dtype, d.b_stride, n, y), n);
    }
    partial[t] = sum;
  });
  Sum sum = 0;
  for (int64_t t = 0; t < chunks; ++t) sum += partial[t];
  store_one(d.out, d.dtype, static_cast<T>(sum));
}

}  // namespace

void dot(const DotArgs& d) {
  by_compute_type(d.dtype, [&](auto t) { dot_of<decltype(t)>(d); });
}

namespace {

constexpr int64_t kSumColumns = 256, kSumRows = 64;

// Columns j0 .. j0+n, n <= kSumColumns.
template <class T> void sum_columns(const SumRowsArgs& s, int64_t j0, int64_t n) {
  alignas(64) T total[kSumColumns] = {}, block[kSumColumns], line[kSumColumns];
  for (int64_t i0 = 0; i0 < s.rows; i0 += kSumRows) {
    for (int64_t j = 0; j < n; ++j) block[j] = 0;
    for (int64_t i = i0; i < imin(s.rows, i0 + kSumRows); ++i) {
      const T* p = chunk_in(at(s.a, s.dtype, i * s.row + j0), s.dtype, 1, n, line);
      for (int64_t j = 0; j < n; ++j) block[j] += p[j];
    }
    for (int64_t j = 0; j < n; ++j) total[j] += block[j];
  }
  store_chunk(at(s.out, s.out_dtype, j0), s.out_dtype, 1, n, total);
}

}  // namespace

void sum_rows(const SumRowsArgs& s) {
  const auto task = [&](int64_t t, int) {
    const int64_t j = t * kSumColumns, n = imin(kSumColumns, s.n - j);
    by_floating_type(s.dtype, [&](auto t) { sum_columns<decltype(t)>(s, j, n); });
  };
  const int64_t tasks = ceil_div(s.n, kSumColumns);
  if (s.rows * s.n * bytes_of(s.dtype) >= 2 * parallel_grain()) return parallel_tasks(tasks, task);
  for (int64_t t = 0; t < tasks; ++t) task(t, 0);
}

}  // namespace ramet::kernels::RAMET_VARIANT
