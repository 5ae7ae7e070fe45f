#include "kernels/index/cumulative_sum.h"

#include "kernels/copy/chunk.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// What running sums are kept in.
template <class T> struct Running { using type = double; };
template <> struct Running<int64_t> { using type = uint64_t; };

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
  by_compute_type(a.in_dtype, [&](auto t) { cumulative_sum_as<decltype(t)>(a); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
