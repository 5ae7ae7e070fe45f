#include "kernels/rows_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/layer_norm.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class S, int kGroup> __global__ void forward_kernel(LayerNormArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarps];
  const T cols = static_cast<T>(a.cols);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols;
    Row<S> x = row_of<S>(a.x, row, a.cols, packed);
    T v[kPack], w[kPack], b[kPack], sum = T(0), squares = T(0);
    if (a.residual) {
      const Row<S> r = row_of<S>(a.residual, row, a.cols, packed),
                   s = row_of<S>(a.sum, row, a.cols, packed);
      over_row_packs<kGroup>(n, place, [&](int64_t c) {
        x.get(c, v), r.get(c, w);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) v[j] += w[j];
        s.put(c, v);
      });
      x = s;  // as it was rounded, by this thread
    }
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      x.get(c, v);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) sum += v[j];
    });
    const T mean = over_group<kGroup>(sum, Plus(), shared) / cols;
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      x.get(c, v, mean);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) squares = fma(v[j] - mean, v[j] - mean, squares);
    });
    const T var = over_group<kGroup>(squares, Plus(), shared) / cols;
    const T rstd = T(1) / sqrt(var + static_cast<T>(a.eps));
    const Row<S> weight = row_of<S>(a.weight, 0, n, packed), bias = row_of<S>(a.bias, 0, n, packed),
                 y = row_of<S>(a.y, row, a.cols, packed);
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      x.get(c, v), weight.get(c, w, T(1)), bias.get(c, b);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) v[j] = fma((v[j] - mean) * rstd, w[j], b[j]);
      y.put(c, v);
    });
    if (row < 0 || place != 0) return;
    static_cast<T*>(a.mean)[row] = mean;
    static_cast<T*>(a.rstd)[row] = rstd;
  });
}

template <class S, int kGroup>
__global__ void backward_kernel(LayerNormBackwardArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarps];
  const T cols = static_cast<T>(a.cols);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols;
    const T mean = row < 0 ? T(0) : static_cast<const T*>(a.mean)[row],
            rstd = row < 0 ? T(0) : static_cast<const T*>(a.rstd)[row];
    const Row<S> x = row_of<S>(a.x, row, a.cols, packed), dy = row_of<S>(a.dy, row, a.cols, packed),
                 weight = row_of<S>(a.weight, 0, n, packed),
                 ds = row_of<S>(a.dsum, row, a.cols, packed),
                 dx = row_of<S>(a.dx, row, a.cols, packed);
    T h[kPack], g[kPack], w[kPack], sum = T(0), product = T(0);
    const auto get = [&](int64_t c) {
      x.get(c, h, mean), dy.get(c, g), weight.get(c, w, T(1));
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) {
        h[j] = (h[j] - mean) * rstd;
        if (a.weight) g[j] *= w[j];
      }
    };
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      get(c);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) {
        sum += g[j];
        product = fma(g[j], h[j], product);
      }
    });
    sum = over_group<kGroup>(sum, Plus(), shared) / cols;
    product = over_group<kGroup>(product, Plus(), shared) / cols;
    over_row_packs<kGroup>(n, place, [&](int64_t c) {
      get(c);
      ds.get(c, w);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) {
        g[j] = rstd * (g[j] - sum - h[j] * product);
        if (a.dsum) g[j] += w[j];
      }
      dx.put(c, g);
    });
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

template <class T> void backward(const LayerNormBackwardArgs& a, Stream where) {
  const char* name = "layer_norm_backward";
  if (a.dx && a.rows > 0) {
    const bool packed = rows_packed(a.dtype, a.cols, a.x, a.weight, a.dy, a.dsum, a.dx);
    by_row_type(a.dtype, [&](auto s) {
      using S = decltype(s);
      start_rows(name, where, a.rows, a.cols, backward_kernel<S, kWarp>,
                 backward_kernel<S, kThreads>, a, packed);
    });
  }
  if (!a.dweight && !a.dbias) return;
  T* partials = static_cast<T*>(a.workspace);
  const int64_t groups = ceil_div(a.rows, kLayerNormGroup), stride = row_stride(a.cols);
  start_for(name, where, groups * a.cols, columns_kernel<T>, a, partials, groups, stride);
  start_for(name, where, 2 * a.cols, groups_kernel<T>, a, partials, groups, stride);
}

}  // namespace

void layer_norm_forward(const LayerNormArgs& a, Stream where) {
  if (a.rows == 0 || a.cols == 0) return;
  const bool packed = rows_packed(a.dtype, a.cols, a.x, a.weight, a.bias, a.residual, a.sum, a.y);
  by_row_type(a.dtype, [&](auto s) {
    using S = decltype(s);
    start_rows("layer_norm", where, a.rows, a.cols, forward_kernel<S, kWarp>,
               forward_kernel<S, kThreads>, a, packed);
  });
}
void layer_norm_backward(const LayerNormBackwardArgs& a, Stream where) {
  if (a.cols == 0) return;
  a.dtype == ScalarType::Double ? backward<double>(a, where) : backward<float>(a, where);
}

}  // namespace ramet::kernels::RAMET_VARIANT
