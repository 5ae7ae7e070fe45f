#include "kernels/rows_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/layer_norm.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T, int kGroup> __global__ void forward_kernel(LayerNormArgs a) {
  __shared__ T shared[kWarps];
  const T cols = static_cast<T>(a.cols);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols, start = row * a.cols;
    const auto x = [&](int64_t c) { return load_element<T>(a.x, a.dtype, start + c); };
    T sum = T(0), squares = T(0);
    for (int64_t c = place; c < n; c += kGroup) sum += x(c);
    const T mean = over_group<kGroup>(sum, Plus(), shared) / cols;
    for (int64_t c = place; c < n; c += kGroup) {
      const T d = x(c) - mean;
      squares = fma(d, d, squares);
    }
    const T var = over_group<kGroup>(squares, Plus(), shared) / cols;
    const T rstd = T(1) / sqrt(var + static_cast<T>(a.eps));
    for (int64_t c = place; c < n; c += kGroup) {
      const T w = a.weight ? load_element<T>(a.weight, a.dtype, c) : T(1),
              b = a.bias ? load_element<T>(a.bias, a.dtype, c) : T(0);
      store_element(a.y, a.dtype, start + c, fma((x(c) - mean) * rstd, w, b));
    }
    if (row < 0 || place != 0) return;
    static_cast<T*>(a.mean)[row] = mean;
    static_cast<T*>(a.rstd)[row] = rstd;
  });
}

template <class T, int kGroup> __global__ void backward_kernel(LayerNormBackwardArgs a) {
  __shared__ T shared[kWarps];
  const T cols = static_cast<T>(a.cols);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols, start = row * a.cols;
    const T mean = row < 0 ? T(0) : static_cast<const T*>(a.mean)[row],
            rstd = row < 0 ? T(0) : static_cast<const T*>(a.rstd)[row];
    const auto h = [&](int64_t c) {
      return (load_element<T>(a.x, a.dtype, start + c) - mean) * rstd;
    };
    const auto g = [&](int64_t c) {
      const T dy = load_element<T>(a.dy, a.dtype, start + c);
      return a.weight ? dy * load_element<T>(a.weight, a.dtype, c) : dy;
    };
    T sum = T(0), product = T(0);
    for (int64_t c = place; c < n; c += kGroup) {
      sum += g(c);
      product = fma(g(c), h(c), product);
    }
    sum = over_group<kGroup>(sum, Plus(), shared) / cols;
    product = over_group<kGroup>(product, Plus(), shared) / cols;
    for (int64_t c = place; c < n; c += kGroup)
      store_element(a.dx, a.dtype, start + c, rstd * (g(c) - sum - h(c) * product));
  });
}

// A thread has a column of a group of rows: neighbours read neighbours.
template <class T>
__global__ void columns_kernel(LayerNormBackwardArgs a, T* partials, int64_t groups,
                               int64_t stride) {
  for (int64_t i = first_item(); i < groups * a.cols; i += item_step()) {
    const int64_t group = i / a.cols, c = i % a.cols;
    T dw = T(0), db = T(0);
    for (int64_t r = group * kLayerNormGroup; r < imin(a.rows, (group + 1) * kLayerNormGroup);
         ++r) {
      const T dy = load_element<T>(a.dy, a.dtype, r * a.cols + c),
              h = (load_element<T>(a.x, a.dtype, r * a.cols + c) -
                   static_cast<const T*>(a.mean)[r]) *
                  static_cast<const T*>(a.rstd)[r];
      dw = fma(dy, h, dw);
      db += dy;
    }
    partials[group * 2 * stride + c] = dw;
    partials[(group * 2 + 1) * stride + c] = db;
  }
}
template <class T>
__global__ void groups_kernel(LayerNormBackwardArgs a, const T* partials, int64_t groups,
                              int64_t stride) {
  for (int64_t i = first_item(); i < 2 * a.cols; i += item_step()) {
    const int64_t which = i / a.cols, c = i % a.cols;
    void* out = which == 0 ? a.dweight : a.dbias;
    if (!out) continue;
    double sum = 0;
    for (int64_t group = 0; group < groups; ++group)
      sum += static_cast<double>(partials[(group * 2 + which) * stride + c]);
    store_element(out, a.dtype, c, static_cast<T>(sum));
  }
}

template <class T> void forward(const LayerNormArgs& a, Stream where) {
  start_rows("layer_norm", where, a.rows, a.cols, forward_kernel<T, kWarp>,
             forward_kernel<T, kThreads>, a);
}
template <class T> void backward(const LayerNormBackwardArgs& a, Stream where) {
  const char* name = "layer_norm_backward";
  if (a.dx && a.rows > 0)
    start_rows(name, where, a.rows, a.cols, backward_kernel<T, kWarp>, backward_kernel<T, kThreads>,
               a);
  if (!a.dweight && !a.dbias) return;
  T* partials = static_cast<T*>(a.workspace);
  const int64_t groups = ceil_div(a.rows, kLayerNormGroup), stride = row_stride(a.cols);
  start_for(name, where, groups * a.cols, columns_kernel<T>, a, partials, groups, stride);
  start_for(name, where, 2 * a.cols, groups_kernel<T>, a, partials, groups, stride);
}

}  // namespace

void layer_norm_forward(const LayerNormArgs& a, Stream where) {
  if (a.rows == 0 || a.cols == 0) return;
  a.dtype == ScalarType::Double ? forward<double>(a, where) : forward<float>(a, where);
}
void layer_norm_backward(const LayerNormBackwardArgs& a, Stream where) {
  if (a.cols == 0) return;
  a.dtype == ScalarType::Double ? backward<double>(a, where) : backward<float>(a, where);
}

}  // namespace ramet::kernels::RAMET_VARIANT
