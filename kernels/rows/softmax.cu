#include "kernels/rows/rows_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/rows/softmax.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class S, int kGroup> __global__ void forward_kernel(SoftmaxArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarps];
  const T none = static_cast<T>(-INFINITY);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols;
    const Row<S> x = row_of<S>(a.x, row, a.cols, packed), y = row_of<S>(a.y, row, a.cols, packed);
    T v[kPack], top = none, sum = T(0);  // the maximum may miss a NaN; the sum never does
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      x.get(c, v, none);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) top = Larger()(v[j], top);
    });
    top = over_group<kGroup>(top, Larger(), shared);
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      x.get(c, v, top);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) sum += c + j < n ? vexp(v[j] - top) : T(0);
    });
    sum = over_group<kGroup>(sum, Plus(), shared);
    const T rest = a.log ? vlog(sum) : T(1) / sum;
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      x.get(c, v);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) v[j] = a.log ? v[j] - top - rest : vexp(v[j] - top) * rest;
      y.put(c, v);
    });
  });
}

template <class S, int kGroup> __global__ void backward_kernel(SoftmaxBackwardArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarps];
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols;
    const Row<S> y = row_of<S>(a.y, row, a.cols, packed), dy = row_of<S>(a.dy, row, a.cols, packed),
                 dx = row_of<S>(a.dx, row, a.cols, packed);
    T v[kPack], g[kPack], sum = T(0);
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      dy.get(c, g);
      if (!a.log) y.get(c, v);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) sum = a.log ? sum + g[j] : fma(v[j], g[j], sum);
    });
    sum = over_group<kGroup>(sum, Plus(), shared);
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      dy.get(c, g), y.get(c, v);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) g[j] = a.log ? g[j] - vexp(v[j]) * sum : v[j] * (g[j] - sum);
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
    start_rows("softmax", where, a.rows, a.cols, forward_kernel<S, kWarp>,
               forward_kernel<S, kThreads>, a, packed);
  });
}
void softmax_backward(const SoftmaxBackwardArgs& a, Stream where) {
  if (a.rows == 0 || a.cols == 0) return;
  const bool packed = rows_packed(a.dtype, a.cols, a.y, a.dy, a.dx);
  by_row_type(a.dtype, [&](auto s) {
    using S = decltype(s);
    start_rows("softmax_backward", where, a.rows, a.cols, backward_kernel<S, kWarp>,
               backward_kernel<S, kThreads>, a, packed);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
