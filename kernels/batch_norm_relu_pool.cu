#include "kernels/rows_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/batch_norm_relu_pool.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// scale and shift of a channel.
struct Affine {
  float scale, shift;
};
template <class Args> RAMET_INLINE Affine affine_of(const Args& a, int64_t c) {
  const double s =
      static_cast<double>(a.weight ? a.weight[c] : 1.0f) * static_cast<double>(a.invstd[c]);
  const double b = a.bias ? static_cast<double>(a.bias[c]) : 0.0;
  return {static_cast<float>(s), static_cast<float>(b - static_cast<double>(a.mean[c]) * s)};
}

/// A window: its four inputs, their greatest result (a NaN wins) and whose it is: the first
/// greatest, or the last NaN.
struct Window {
  float x[4], best;
  int whose;
  template <class Args>
  RAMET_INLINE Window(const Args& a, int64_t n, int64_t i, int64_t j, int64_t c) {
    const Affine f = affine_of(a, c);
    const int64_t row = a.w * a.c;
    const float* p = a.x + (n * a.h + 2 * i) * row + 2 * j * a.c + c;
    x[0] = p[0], x[1] = p[a.c], x[2] = p[row], x[3] = p[row + a.c];
    for (int k = 0; k < 4; ++k) {
      const float y = fma(x[k], f.scale, f.shift);
      if (k == 0 || y > best || y != y) best = y, whose = k;
    }
  }
  RAMET_INLINE bool passes() const { return best > 0 || best != best; }
};

// Windows from 0: channel fastest, then column, row, image.
struct WindowPlace {
  int64_t c, j, i, n;
};
template <class Args> RAMET_INLINE WindowPlace window_place(const Args& a, int64_t item) {
  const int64_t ow = a.w / 2, oh = a.h / 2;
  WindowPlace p;
  p.c = item % a.c, item /= a.c;
  p.j = item % ow, item /= ow;
  p.i = item % oh, p.n = item / oh;
  return p;
}

__global__ void forward_kernel(BatchNormReluPoolArgs a, int64_t items) {
  for (int64_t item = first_item(); item < items; item += item_step()) {
    const WindowPlace p = window_place(a, item);
    const Window w(a, p.n, p.i, p.j, p.c);
    a.y[item] = w.passes() ? w.best : 0.0f;
  }
}

// Sums of the routed gradient, and of its products with the distance from the mean, of rows of
// windows: a warp takes 32 channels, eight warps take turns in columns.
__global__ void sums_kernel(BatchNormReluPoolBackwardArgs a, int64_t parts, int64_t rows,
                            float* partials) {
  __shared__ double shared[2][kThreads];
  const int64_t tiles = ceil_div(a.c, kWarp), oh = a.h / 2, ow = a.w / 2, of_image = parts / a.n;
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int64_t task = blockIdx.x; task < tiles * parts; task += gridDim.x) {
    const int64_t part = task % parts, c = task / parts * kWarp + lane, n = part / of_image,
                  first = part % of_image * rows, end = imin(oh, first + rows);
    double sum = 0, dot = 0;
    if (c < a.c)
      for (int64_t k = first * ow + warp; k < end * ow; k += kWarps) {
        const Window w(a, n, k / ow, k % ow, c);
        if (!w.passes()) continue;
        const double dy = static_cast<double>(a.dy[((n * oh + k / ow) * ow + k % ow) * a.c + c]);
        sum += dy;
        dot += dy * (static_cast<double>(w.x[w.whose]) - static_cast<double>(a.mean[c]));
      }
    shared[0][threadIdx.x] = sum, shared[1][threadIdx.x] = dot;
    __syncthreads();
    if (warp < 2 && c < a.c) {
      double all = 0;
      for (int w = 0; w < kWarps; ++w) all += shared[warp][w * kWarp + lane];
      partials[(part * 2 + warp) * a.c + c] = static_cast<float>(all);
    }
    __syncthreads();
  }
}

// factors[k * c + channel]: what the routed dy, the distance from the mean and 1 are multiplied
// with.
__global__ void factors_kernel(BatchNormReluPoolBackwardArgs a, int64_t parts,
                               const float* partials, float* factors) {
  for (int64_t c = first_item(); c < a.c; c += item_step()) {
    double sum = 0, dot = 0;
    for (int64_t t = 0; t < parts; ++t) {
      sum += static_cast<double>(partials[t * 2 * a.c + c]);
      dot += static_cast<double>(partials[(t * 2 + 1) * a.c + c]);
    }
    const double inv = static_cast<double>(a.invstd[c]),
                 total = static_cast<double>(a.n * a.h * a.w),
                 w = static_cast<double>(a.weight ? a.weight[c] : 1.0f) * inv;
    if (a.dweight) a.dweight[c] = static_cast<float>(dot * inv);
    if (a.dbias) a.dbias[c] = static_cast<float>(sum);
    factors[c] = static_cast<float>(w);
    factors[a.c + c] = a.training ? static_cast<float>(-w * inv * inv * dot / total) : 0.0f;
    factors[2 * a.c + c] = a.training ? static_cast<float>(-w * sum / total) : 0.0f;
  }
}

__global__ void backward_kernel(BatchNormReluPoolBackwardArgs a, int64_t items,
                                const float* factors) {
  const int64_t oh = a.h / 2, ow = a.w / 2;
  for (int64_t item = first_item(); item < items; item += item_step()) {
    const int64_t c = item % a.c, x = item / a.c % a.w, y = item / (a.c * a.w) % a.h,
                  n = item / (a.c * a.w * a.h), i = y / 2, j = x / 2;
    // Otherwise x does not matter: it may be infinite.
    float dx =
        a.training ? fma(factors[a.c + c], a.x[item] - a.mean[c], factors[2 * a.c + c]) : 0.0f;
    if (i < oh && j < ow) {
      const Window w(a, n, i, j, c);
      if (w.passes() && w.whose == y % 2 * 2 + x % 2)
        dx += a.dy[((n * oh + i) * ow + j) * a.c + c] * factors[c];
    }
    a.dx[item] = dx;
  }
}

}  // namespace

void batch_norm_relu_pool_forward(const BatchNormReluPoolArgs& a, Stream where) {
  const int64_t items = a.n * (a.h / 2) * (a.w / 2) * a.c;
  start_for("batch_norm_relu_pool", where, items, forward_kernel, a, items);
}

void batch_norm_relu_pool_backward(const BatchNormReluPoolBackwardArgs& a, Stream where) {
  const char* name = "batch_norm_relu_pool_backward";
  const int64_t parts = batch_norm_relu_pool_parts(a.n, a.h);
  float *factors = static_cast<float*>(a.workspace), *partials = factors + 5 * (a.c + 16);
  if (parts > 0)
    start(name, where, grid_of(ceil_div(a.c, kWarp) * parts),
          kThreads, 0, sums_kernel, a, parts, batch_norm_relu_pool_rows(a.h), partials);
  start_for(name, where, a.c, factors_kernel, a, parts, partials, factors);
  const int64_t items = a.n * a.h * a.w * a.c;
  if (a.dx) start_for(name, where, items, backward_kernel, a, items, factors);
}

}  // namespace ramet::kernels::RAMET_VARIANT
