#include "kernels/index/cumulative_sum.h"

#include "kernels/copy/chunk.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// The type of running sums.
template <class T> struct Running { using type = double; };
template <> struct Running<int64_t> { using type = uint64_t; };

// Running sums along VL rows of n floats at once, so that one sum does not only wait for the sum
// before it.
void along_rows(const float* in, float* out, int64_t rows, int64_t n, bool reverse) {
  typedef double Sums __attribute__((vector_size(VL * 8)));
  Sums sum{};
  for (int64_t i = 0; i < n; i += VL) {
    const int64_t m = imin(VL, n - i), first = reverse ? n - i - m : i;
    vf v[VL];
#pragma GCC unroll 16
    for (int r = 0; r < VL; ++r) v[r] = r < rows ? loadn(in + r * n + first, m) : vf{};
    transpose(v);
    for (int64_t j = 0; j < m; ++j) {
      vf& x = v[reverse ? m - 1 - j : j];
      sum += __builtin_convertvector(x, Sums);
      x = __builtin_convertvector(sum, vf);
    }
    transpose(v);
#pragma GCC unroll 16
    for (int r = 0; r < VL; ++r)
      if (r < rows) storen(out + r * n + first, v[r], m);
  }
}

template <class T> void cumulative_sum_as(const CumulativeSumArgs& a) {
  using S = typename Running<T>::type;
  constexpr int64_t kWidth = 64;
  const int64_t strips = ceil_div(a.inner, kWidth);
  run_tasks(a.outer * strips, a.outer * a.n * a.inner * bytes_of(a.in_dtype),
            [&](int64_t task, int) {
              const int64_t c = task % strips * kWidth, w = imin(kWidth, a.inner - c),
                            base = task / strips * a.n * a.inner + c;
              S sum[kWidth] = {};
              T row[kChunk];
              if (w == 1) {  // the axis is (nearly) the last one: whole chunks of it
                const int64_t sign = a.reverse ? -1 : 1,
                              start = a.reverse ? base + (a.n - 1) * a.inner : base;
                for (int64_t i = 0; i < a.n; i += kChunk) {
                  const int64_t m = imin(kChunk, a.n - i), at0 = start + sign * i * a.inner;
                  load_chunk(at(a.in, a.in_dtype, at0), a.in_dtype, sign * a.inner, m, row);
                  for (int64_t j = 0; j < m; ++j)
                    row[j] = static_cast<T>(sum[0] += static_cast<S>(row[j]));
                  store_chunk(at(a.out, a.out_dtype, at0), a.out_dtype, sign * a.inner, m, row);
                }
                return;
              }
              for (int64_t i = 0; i < a.n; ++i) {
                const int64_t p = base + (a.reverse ? a.n - 1 - i : i) * a.inner;
                load_chunk(at(a.in, a.in_dtype, p), a.in_dtype, 1, w, row);
                for (int64_t j = 0; j < w; ++j)
                  row[j] = static_cast<T>(sum[j] += static_cast<S>(row[j]));
                store_chunk(at(a.out, a.out_dtype, p), a.out_dtype, 1, w, row);
              }
            });
}

}  // namespace

void cumulative_sum(const CumulativeSumArgs& a) {
  if (a.outer == 0 || a.n == 0 || a.inner == 0) return;
  const bool floats = a.in_dtype == ScalarType::Float && a.out_dtype == ScalarType::Float;
  if (floats && a.inner == 1 && a.outer > 1)
    return run_tasks(ceil_div(a.outer, VL), a.outer * a.n * 4, [&](int64_t task, int) {
      const int64_t first = task * VL;
      along_rows(static_cast<const float*>(a.in) + first * a.n,
                 static_cast<float*>(a.out) + first * a.n, imin(VL, a.outer - first), a.n,
                 a.reverse);
    });
  by_compute_type(a.in_dtype, [&](auto t) { cumulative_sum_as<decltype(t)>(a); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
