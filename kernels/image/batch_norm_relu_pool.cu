#include "kernels/reduce/joins_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/image/batch_norm_relu_pool.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// scale and shift of a channel.
struct Affine {
  float scale, shift;
};
template <class Args, class I> RAMET_INLINE Affine affine_of(const Args& a, I c) {
  const double s =
      static_cast<double>(a.weight ? a.weight[c] : 1.0f) * static_cast<double>(a.invstd[c]);
  const double b = a.bias ? static_cast<double>(a.bias[c]) : 0.0;
  return {static_cast<float>(s), static_cast<float>(b - static_cast<double>(a.mean[c]) * s)};
}

/// Extents of the images and of the windows in them, with their divisions prepared.
template <class I> struct Geometry {
  I h, w, c, oh, ow;
  Divisor<I> by_h, by_w, by_c, by_oh, by_ow;
  template <class Args>
  explicit Geometry(const Args& a)
      : h(static_cast<I>(a.h)),
        w(static_cast<I>(a.w)),
        c(static_cast<I>(a.c)),
        oh(h / 2),
        ow(w / 2),
        by_h(a.h),
        by_w(a.w),
        by_c(a.c),
        by_oh(oh),
        by_ow(ow) {}
};
/// A window: its four inputs, their greatest result (a NaN wins) and the input that has it. That is
/// the first greatest, or the last NaN.
struct Window {
  float x[4], best;
  int whose;
  template <class Args, class I>
  RAMET_INLINE Window(const Args& a, const Geometry<I>& g, I n, I i, I j, I c) {
    const Affine f = affine_of(a, c);
    const I row = g.w * g.c;
    const float* p = a.x + ((n * g.h + 2 * i) * row + 2 * j * g.c + c);
    x[0] = p[0], x[1] = p[g.c], x[2] = p[row], x[3] = p[row + g.c];
    for (int k = 0; k < 4; ++k) {
      const float y = fma(x[k], f.scale, f.shift);
      if (k == 0 || y > best || y != y) best = y, whose = k;
    }
  }
  RAMET_INLINE bool passes() const { return best > 0 || best != best; }
};

// Windows from 0: channel fastest, then column, row, image.
template <class I> __global__ void forward_kernel(BatchNormReluPoolArgs a, Geometry<I> g, I items) {
  for (I item = static_cast<I>(first_item()); item < items; item += static_cast<I>(item_step())) {
    I n = item;
    const I c = g.by_c.take(n), j = g.by_ow.take(n), i = g.by_oh.take(n);
    const Window w(a, g, n, i, j, c);
    a.y[item] = w.passes() ? w.best : 0.0f;
  }
}

// Sums of the routed gradient, and of its products with the distance from the mean, for rows of
// windows. A warp takes 32 channels, and eight warps take turns in columns.
template <class I>
__global__ void sums_kernel(BatchNormReluPoolBackwardArgs a, Geometry<I> g, int64_t parts,
                            int64_t rows, float* partials) {
  __shared__ double shared[2][kThreads];
  const int64_t tiles = ceil_div(a.c, kWarp), oh = a.h / 2, ow = a.w / 2, of_image = parts / a.n;
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int64_t task = blockIdx.x; task < tiles * parts; task += gridDim.x) {
    const int64_t part = task % parts, c = task / parts * kWarp + lane, n = part / of_image,
                  first = part % of_image * rows, end = imin(oh, first + rows);
    double sum = 0, dot = 0;
    if (c < a.c)
      for (I k = static_cast<I>(first * ow + warp); k < end * ow; k += kWarps) {
        I i = k;
        const I j = g.by_ow.take(i), image = static_cast<I>(n), channel = static_cast<I>(c);
        const Window w(a, g, image, i, j, channel);
        if (!w.passes()) continue;
        const double dy =
            static_cast<double>(a.dy[((image * g.oh + i) * g.ow + j) * g.c + channel]);
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

// factors[k * c + channel]: the factors of the routed dy, of the distance from the mean and of 1. A
// group of threads has a channel.
__global__ void factors_kernel(BatchNormReluPoolBackwardArgs a, int64_t parts,
                               const float* partials, float* factors, int group) {
  __shared__ TwoSums shared[kThreads];
  over_outputs(a.c, group, [&](int64_t c, bool there) {
    const auto part_of = [&](int64_t t) -> TwoSums {
      return {static_cast<double>(partials[t * 2 * a.c + c]),
              static_cast<double>(partials[(t * 2 + 1) * a.c + c])};
    };
    const auto [sum, dot] =
        join_pieces(TwoSums{0, 0}, there ? parts : 0, group, shared, part_of, PlusTwo());
    if (!there || static_cast<int>(threadIdx.x) % group != 0) return;
    const double inv = static_cast<double>(a.invstd[c]),
                 total = static_cast<double>(a.n * a.h * a.w),
                 w = static_cast<double>(a.weight ? a.weight[c] : 1.0f) * inv;
    if (a.dweight) a.dweight[c] = static_cast<float>(dot * inv);
    if (a.dbias) a.dbias[c] = static_cast<float>(sum);
    factors[c] = static_cast<float>(w);
    factors[a.c + c] = a.training ? static_cast<float>(-w * inv * inv * dot / total) : 0.0f;
    factors[2 * a.c + c] = a.training ? static_cast<float>(-w * sum / total) : 0.0f;
  });
}

template <class I>
__global__ void backward_kernel(BatchNormReluPoolBackwardArgs a, Geometry<I> g, I items,
                                const float* factors) {
  for (I item = static_cast<I>(first_item()); item < items; item += static_cast<I>(item_step())) {
    I n = item;
    const I c = g.by_c.take(n), x = g.by_w.take(n), y = g.by_h.take(n), i = y / 2, j = x / 2;
    // Otherwise x is not read, because it may be infinite.
    float dx =
        a.training ? fma(factors[g.c + c], a.x[item] - a.mean[c], factors[2 * g.c + c]) : 0.0f;
    if (i < g.oh && j < g.ow) {
      const Window w(a, g, n, i, j, c);
      if (w.passes() && w.whose == y % 2 * 2 + x % 2)
        dx += a.dy[((n * g.oh + i) * g.ow + j) * g.c + c] * factors[c];
    }
    a.dx[item] = dx;
  }
}

// f(I{}) with the type of positions.
template <class Args, class F> void by_places(const Args& a, const F& f) {
  by_index(product_of({a.n, a.h, a.w, a.c}), f);
}

}  // namespace

void batch_norm_relu_pool_forward(const BatchNormReluPoolArgs& a, Stream where) {
  const int64_t items = a.n * (a.h / 2) * (a.w / 2) * a.c;
  by_places(a, [&](auto i) {
    using I = decltype(i);
    start_for("batch_norm_relu_pool", where, items, forward_kernel<I>, a, Geometry<I>(a),
              static_cast<I>(items));
  });
}

void batch_norm_relu_pool_backward(const BatchNormReluPoolBackwardArgs& a, Stream where) {
  const char* name = "batch_norm_relu_pool_backward";
  const int64_t rows = batch_norm_relu_pool_gpu_rows(a.n, a.h, a.c),
                parts = batch_norm_relu_pool_parts_of(a.n, a.h, rows);
  float *factors = static_cast<float*>(a.workspace), *partials = factors + 5 * (a.c + 16);
  if (parts > 0)
    by_places(a, [&](auto i) {
      using I = decltype(i);
      start(name, where, grid_of(ceil_div(a.c, kWarp) * parts), kThreads, 0, sums_kernel<I>, a,
            Geometry<I>(a), parts, rows, partials);
    });
  if (a.c > 0) start_join(name, where, a.c, parts, 0, factors_kernel, a, parts, partials, factors);
  const int64_t items = a.n * a.h * a.w * a.c;
  if (!a.dx) return;
  by_places(a, [&](auto i) {
    using I = decltype(i);
    start_for(name, where, items, backward_kernel<I>, a, Geometry<I>(a), static_cast<I>(items),
              factors);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
