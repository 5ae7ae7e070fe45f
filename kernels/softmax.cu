#include "kernels/rows_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/softmax.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T, int kGroup> __global__ void forward_kernel(SoftmaxArgs a) {
  __shared__ T shared[kWarps];
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols, start = row * a.cols;
    const auto x = [&](int64_t c) { return load_element<T>(a.x, a.dtype, start + c); };
    T top = static_cast<T>(-INFINITY);
    for (int64_t c = place; c < n; c += kGroup) top = Larger()(x(c), top);
    top = over_group<kGroup>(top, Larger(), shared);
    T sum = T(0);  // a NaN may escape the maximum, never the sum
    for (int64_t c = place; c < n; c += kGroup) sum += vexp(x(c) - top);
    sum = over_group<kGroup>(sum, Plus(), shared);
    const T rest = a.log ? vlog(sum) : T(1) / sum;
    for (int64_t c = place; c < n; c += kGroup) {
      const T y = a.log ? x(c) - top - rest : vexp(x(c) - top) * rest;
      store_element(a.y, a.dtype, start + c, y);
    }
  });
}

template <class T, int kGroup> __global__ void backward_kernel(SoftmaxBackwardArgs a) {
  __shared__ T shared[kWarps];
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols, start = row * a.cols;
    const auto y = [&](int64_t c) { return load_element<T>(a.y, a.dtype, start + c); };
    const auto dy = [&](int64_t c) { return load_element<T>(a.dy, a.dtype, start + c); };
    T sum = T(0);
    for (int64_t c = place; c < n; c += kGroup) sum = a.log ? sum + dy(c) : fma(y(c), dy(c), sum);
    sum = over_group<kGroup>(sum, Plus(), shared);
    for (int64_t c = place; c < n; c += kGroup) {
      const T dx = a.log ? dy(c) - vexp(y(c)) * sum : y(c) * (dy(c) - sum);
      store_element(a.dx, a.dtype, start + c, dx);
    }
  });
}

template <class T> void forward(const SoftmaxArgs& a, Stream where) {
  start_rows("softmax", where, a.rows, a.cols, forward_kernel<T, kWarp>,
             forward_kernel<T, kThreads>, a);
}
template <class T> void backward(const SoftmaxBackwardArgs& a, Stream where) {
  start_rows("softmax_backward", where, a.rows, a.cols, backward_kernel<T, kWarp>,
             backward_kernel<T, kThreads>, a);
}

}  // namespace

void softmax_forward(const SoftmaxArgs& a, Stream where) {
  if (a.rows == 0 || a.cols == 0) return;
  a.dtype == ScalarType::Double ? forward<double>(a, where) : forward<float>(a, where);
}
void softmax_backward(const SoftmaxBackwardArgs& a, Stream where) {
  if (a.rows == 0 || a.cols == 0) return;
  a.dtype == ScalarType::Double ? backward<double>(a, where) : backward<float>(a, where);
}

}  // namespace ramet::kernels::RAMET_VARIANT
