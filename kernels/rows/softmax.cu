#include "kernels/rows/row_registers_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/rows/softmax.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Note [Rows in registers]. A row's values become its exponentials where they are, so there is one
// exponential for each element. Without registers the second pass computes them again.
template <class S, int kGroup, int kPacks>
__global__ void forward_kernel(SoftmaxArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarps];
  const T none = static_cast<T>(-INFINITY);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const Row<S> x = row_of<S>(a.x, row, a.cols, packed), y = row_of<S>(a.y, row, a.cols, packed);
    T top = none, sum = T(0);  // the maximum may miss a NaN; the sum never does
    if constexpr (kPacks > 0) {
      Share<S, kGroup, kPacks> share;
      T v[kPacks][kPack];
      share.read(x, place, lowest<S>());
      share.get(v);
      const auto over_values = [&](const auto& f) {
        share.each([&](int, int k) {
          RAMET_UNROLL
          for (int j = 0; j < kPack; ++j) f(v[k][j]);
        });
      };
      over_values([&](T e) { top = Most()(e, top); });
      top = over_group<kGroup>(top, Most(), shared);
      if (a.log) over_values([&](T e) { sum += row_exp<S>(e - top); });
      else over_values([&](T& e) { e = row_exp<S>(e - top), sum += e; });
      sum = over_group<kGroup>(sum, Plus(), shared);
      const T rest = a.log ? vlog(sum) : T(1) / sum;
      if (a.log) over_values([&](T& e) { e = e - top - rest; });
      else over_values([&](T& e) { e *= rest; });
      share.put(v);
      share.write(y);
    } else {
      const int64_t n = row < 0 ? 0 : a.cols;
      T v[kPack];
      over_row_packs<kGroup>(n, place, [&](int64_t c) {
        x.get(c, v, none);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) top = Most()(v[j], top);
      });
      top = over_group<kGroup>(top, Most(), shared);
      over_row_packs<kGroup>(n, place, [&](int64_t c) {
        x.get(c, v, top);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) sum += c + j < n ? row_exp<S>(v[j] - top) : T(0);
      });
      sum = over_group<kGroup>(sum, Plus(), shared);
      const T rest = a.log ? vlog(sum) : T(1) / sum;
      over_row_packs<kGroup>(n, place, [&](int64_t c) {
        x.get(c, v);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j)
          v[j] = a.log ? v[j] - top - rest : row_exp<S>(v[j] - top) * rest;
        y.put(c, v);
      });
    }
  });
}

// y and dy stay in registers as they are stored: in sixteen bits they take half as many.
template <class S, int kGroup, int kPacks>
__global__ void backward_kernel(SoftmaxBackwardArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarps];
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols;
    const Row<S> y = row_of<S>(a.y, row, a.cols, packed), dy = row_of<S>(a.dy, row, a.cols, packed),
                 dx = row_of<S>(a.dx, row, a.cols, packed);
    constexpr int kHeld = kPacks > 0 ? kPacks : 1;
    Pack<S> ys[kHeld], gs[kHeld];
    const auto read = [&](int64_t c, int k) { gs[k].read(dy, c), ys[k].read(y, c); };
    if constexpr (kPacks > 0) over_share<kGroup, kPacks>(n, place, read);
    T v[kPack], g[kPack], sum = T(0);
    const auto get = [&](int64_t c, int k) {
      if constexpr (kPacks == 0) read(c, k);
      gs[k].get(g), ys[k].get(v);
    };
    over_share<kGroup, kPacks>(n, place, [&](int64_t c, int k) {
      get(c, k);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) sum = a.log ? sum + g[j] : fma(v[j], g[j], sum);
    });
    sum = over_group<kGroup>(sum, Plus(), shared);
    over_share<kGroup, kPacks>(n, place, [&](int64_t c, int k) {
      get(c, k);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j)
        g[j] = a.log ? g[j] - row_exp<S>(v[j]) * sum : v[j] * (g[j] - sum);
      dx.put(c, g);
    });
  });
}

}  // namespace

void softmax_forward(const SoftmaxArgs& a, Stream where) {
  if (a.rows == 0 || a.cols == 0) return;
  const bool packed = rows_packed(a.dtype, a.cols, a.x, a.y);
  by_row_type(a.dtype, [&](auto s) {
    using S = decltype(s);
    start_kept_rows<S>(
        "softmax", where, a.rows, a.cols,
        [](auto group, auto packs) { return forward_kernel<S, group(), packs()>; }, a, packed);
  });
}
void softmax_backward(const SoftmaxBackwardArgs& a, Stream where) {
  if (a.rows == 0 || a.cols == 0) return;
  const bool packed = rows_packed(a.dtype, a.cols, a.y, a.dy, a.dx);
  by_row_type(a.dtype, [&](auto s) {
    using S = decltype(s);
    start_kept_rows<S>(
        "softmax_backward", where, a.rows, a.cols,
        [](auto group, auto packs) { return backward_kernel<S, group(), packs()>; }, a, packed);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
