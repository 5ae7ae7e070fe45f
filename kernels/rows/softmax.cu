#include "kernels/rows/row_registers_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/rows/softmax.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Note [Rows in registers]. A row's values become its exponentials where they are, so there is one
// exponential for each element.
template <class S, int kGroup, int kPacks>
__global__ void __launch_bounds__(kThreads, kPacks > 0 ? kKeptBlocks<S> : 1)
    forward_kernel(SoftmaxArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarps];
  const T none = static_cast<T>(-INFINITY);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    T top = none, sum = T(0);  // the maximum may miss a NaN; the sum never does
    if constexpr (kPacks > 0) {
      if (row < 0) return;  // all of a warp, which needs no other one
      Share<S, kGroup, kPacks> share(a.cols, place, packed);
      T v[kPacks][kPack];
      share.read(dense_row<S>(a.x, row, a.cols), lowest<S>());
      share.get(v);
      share.over(v, [&](T e) { top = Most()(e, top); });
      top = over_group<kGroup>(top, Most(), shared);
      if (a.log) share.over(v, [&](T e) { sum += row_exp<S>(e - top); });
      else share.over(v, [&](T& e) { e = row_exp<S>(e - top), sum += e; });
      sum = over_group<kGroup>(sum, Plus(), shared);
      const T rest = a.log ? vlog(sum) : T(1) / sum;
      if (a.log) share.over(v, [&](T& e) { e = e - top - rest; });
      else share.over(v, [&](T& e) { e *= rest; });
      share.put(v);
      share.write(dense_row<S>(a.y, row, a.cols));
    } else {
      const int64_t n = row < 0 ? 0 : a.cols;
      const Row<S> x = row_of<S>(a.x, row, a.cols, packed), y = row_of<S>(a.y, row, a.cols, packed);
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
__global__ void __launch_bounds__(kThreads, kPacks > 0 ? kKeptBlocks<S> : 1)
    backward_kernel(SoftmaxBackwardArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarps];
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    T v[kPack], g[kPack], sum = T(0);
    const auto add = [&] {
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) sum = a.log ? sum + g[j] : fma(v[j], g[j], sum);
    };
    const auto slopes = [&] {
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j)
        g[j] = a.log ? g[j] - row_exp<S>(v[j]) * sum : v[j] * (g[j] - sum);
    };
    if constexpr (kPacks > 0) {
      if (row < 0) return;  // all of a warp, which needs no other one
      Share<S, kGroup, kPacks> y(a.cols, place, packed), dy(a.cols, place, packed);
      y.read(dense_row<S>(a.y, row, a.cols), S{});
      dy.read(dense_row<S>(a.dy, row, a.cols), S{});
      const auto get = [&](int k) { y.packs[k].get(v), dy.packs[k].get(g); };
      y.each([&](int k) { get(k), add(); });
      sum = over_group<kGroup>(sum, Plus(), shared);
      y.each([&](int k) { get(k), slopes(), dy.packs[k].put(g); });
      dy.write(dense_row<S>(a.dx, row, a.cols));
    } else {
      const int64_t n = row < 0 ? 0 : a.cols;
      const Row<S> y = row_of<S>(a.y, row, a.cols, packed),
                   dy = row_of<S>(a.dy, row, a.cols, packed),
                   dx = row_of<S>(a.dx, row, a.cols, packed);
      const auto get = [&](int64_t c) { dy.get(c, g), y.get(c, v); };
      over_row_packs<kGroup>(n, place, [&](int64_t c) { get(c), add(); });
      sum = over_group<kGroup>(sum, Plus(), shared);
      over_row_packs<kGroup>(n, place, [&](int64_t c) { get(c), slopes(), dx.put(c, g); });
    }
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
