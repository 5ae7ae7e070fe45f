#include "kernels/rows/row_registers_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/rows/layer_norm.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Note [Rows in registers]. kPacks = 0: the row is read twice for its moments, and once more.
template <class S, int kGroup, int kPacks>
__global__ void __launch_bounds__(kThreads, kPacks > 0 ? kKeptBlocks<S> : 1)
    forward_kernel(LayerNormArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarps];
  const T cols = static_cast<T>(a.cols);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    T w[kPack], b[kPack];
    RowMoments<T> m;
    if constexpr (kPacks > 0) {
      if (row < 0) return;  // all of a warp, which needs no other one
      Share<S, kGroup, kPacks> x(a.cols, place, packed);
      T v[kPacks][kPack];
      x.read(dense_row<S>(a.x, row, a.cols), S{});
      if (a.residual) {
        Share<S, kGroup, kPacks> other(a.cols, place, packed);
        other.read(dense_row<S>(a.residual, row, a.cols), S{});
        x.get(v);
        x.each([&](int k) {
          other.packs[k].get(w);
          RAMET_UNROLL
          for (int j = 0; j < kPack; ++j) v[k][j] += w[j];
        });
        x.put(v);  // the rounded sum
        x.write(dense_row<S>(a.sum, row, a.cols));
      }
      x.get(v);
      m = share_moments(x, v, cols, a.eps, shared);
      x.each([&](int k) {
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) w[j] = T(1), b[j] = T(0);
        if (a.weight) x.get_of(static_cast<const S*>(a.weight), k, w);
        if (a.bias) x.get_of(static_cast<const S*>(a.bias), k, b);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) v[k][j] = fma(v[k][j] * m.rstd, w[j], b[j]);
      });
      x.put(v);
      x.write(dense_row<S>(a.y, row, a.cols));
    } else {
      const int64_t n = row < 0 ? 0 : a.cols;
      Row<S> x = row_of<S>(a.x, row, a.cols, packed);
      const Row<S> r = row_of<S>(a.residual, row, a.cols, packed),
                   s = row_of<S>(a.sum, row, a.cols, packed),
                   weight = row_of<S>(a.weight, 0, n, packed),
                   bias = row_of<S>(a.bias, 0, n, packed), y = row_of<S>(a.y, row, a.cols, packed);
      T v[kPack];
      if (a.residual) {
        over_row_packs<kGroup>(n, place, [&](int64_t c) {
          x.get(c, v), r.get(c, w);
          RAMET_UNROLL
          for (int j = 0; j < kPack; ++j) v[j] += w[j];
          s.put(c, v);
        });
        x = s;  // the rounded sum, from this thread
      }
      m = row_moments<kGroup>(x, n, place, cols, a.eps, shared);
      over_row_packs<kGroup>(n, place, [&](int64_t c) {
        x.get(c, v), weight.get(c, w, T(1)), bias.get(c, b);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) v[j] = fma((v[j] - m.mean) * m.rstd, w[j], b[j]);
        y.put(c, v);
      });
    }
    if (row < 0 || place != 0) return;
    static_cast<T*>(a.mean)[row] = m.mean;
    static_cast<T*>(a.rstd)[row] = m.rstd;
  });
}

// The backward pass reads x and dy once, if a thread's part of a row fits into registers. That is
// up to kMostPacks packs in the layout of memory, and as many of each of its sums over rows.
template <class T> constexpr int kMostPacks = sizeof(T) == 8 ? 2 : kRowPacks;
template <class T> constexpr int64_t kMostColumns = kThreads* kPack* kMostPacks<T>;
static_assert(kMostColumns<float> == kLayerNormPartColumns);  // the workspace is for these

/// Adds the sums of a block's threads that have the same columns, warp after warp. Writes them from
/// sums[0] and sums[stride] on, in whole packs: a row of partial sums is long enough for them.
template <int kGroup, int kPacks, class T>
__device__ __forceinline__ void put_sums(const T (&dw)[kPacks][kPack], const T (&db)[kPacks][kPack],
                                         T* sums, int64_t stride, int64_t cols) {
  RAMET_GLOBAL(sums);
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (kGroup == kThreads) {
    over_share<kGroup, kPacks>(cols, thread, [&](int64_t c, int k) {
      store_bytes<sizeof dw[k]>(sums + c, dw[k]);
      store_bytes<sizeof db[k]>(sums + stride + c, db[k]);
    });
  } else {
    static_assert(kGroup == kWarp && kWarp * kPack == kThreads);
    alignas(16) __shared__ T of_warps[2][kWarps][kThreads];
    const int warp = thread / kWarp, first = thread % kWarp * kPack;
    RAMET_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const int64_t c = k * kThreads + thread;
      if (k * kThreads >= cols) continue;
      __syncthreads();  // its content has been read
      store_bytes<sizeof dw[k]>(&of_warps[0][warp][first], dw[k]);
      store_bytes<sizeof db[k]>(&of_warps[1][warp][first], db[k]);
      __syncthreads();
      if (c >= cols) continue;
      for (int which = 0; which < 2; ++which) {
        T sum = of_warps[which][0][thread];
        for (int w = 1; w < kWarps; ++w) sum += of_warps[which][w][thread];
        sums[which * stride + c] = sum;
      }
    }
  }
}

// Two blocks at once on a multiprocessor, if registers allow: while one waits, the other works.
template <class S, int kGroup, int kPacks>
constexpr int kBlocksAtOnce =
    sizeof(S) == 2 && kGroup == kWarp&& kPacks > 0 && kPacks < kMostPacks<float> ? 2 : 1;

// A block has `per` consecutive rows, and writes their sums if kPacks is not 0.
template <class S, int kGroup, int kPacks>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<S, kGroup, kPacks>)
    backward_kernel(LayerNormBackwardArgs a, bool packed, int64_t per, ComputeOf<S>* partials,
                    int64_t stride) {
  using T = ComputeOf<S>;
  constexpr int kKept = kPacks > 0 ? kPacks : 1;
  __shared__ T shared[kWarps];
  const T cols = static_cast<T>(a.cols);
  const int place = static_cast<int>(threadIdx.x) % kGroup;
  const Row<S> weight = row_of<S>(a.weight, 0, a.cols, packed);
  for (int64_t part = blockIdx.x; part * per < a.rows; part += gridDim.x) {
    T dw[kKept][kPack], db[kKept][kPack];
    RAMET_UNROLL
    for (int k = 0; k < kKept; ++k) {
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) dw[k][j] = db[k][j] = T(0);
    }
    const int64_t end = imin(a.rows, (part + 1) * per);
    for (int64_t row = part * per + threadIdx.x / kGroup; row < end; row += kThreads / kGroup) {
      const T mean = static_cast<const T*>(a.mean)[row], rstd = static_cast<const T*>(a.rstd)[row];
      const Row<S> x = row_of<S>(a.x, row, a.cols, packed),
                   dy = row_of<S>(a.dy, row, a.cols, packed),
                   ds = row_of<S>(a.dsum, row, a.cols, packed),
                   dx = row_of<S>(a.dx, row, a.cols, packed);
      Pack<S> xs[kKept], gs[kKept];
      const auto read = [&](int64_t c, int k) { xs[k].read(x, c), gs[k].read(dy, c); };
      if constexpr (kPacks > 0) over_share<kGroup, kPacks>(a.cols, place, read);
      T h[kPack], g[kPack], w[kPack], sum = T(0), product = T(0);
      const auto get = [&](int64_t c, int k) {
        if constexpr (kPacks == 0) read(c, k);
        xs[k].get(h), gs[k].get(g);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) h[j] = (h[j] - mean) * rstd;
      };
      const auto times_weight = [&](int64_t c) {
        if (!a.weight) return;
        weight.get(c, w);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) g[j] *= w[j];
      };
      over_share<kGroup, kPacks>(a.cols, place, [&](int64_t c, int k) {
        get(c, k);
        if constexpr (kPacks > 0) {
          RAMET_UNROLL
          for (int j = 0; j < kPack; ++j) {
            dw[k][j] = fma(g[j], h[j], dw[k][j]);
            db[k][j] += g[j];
          }
        }
        times_weight(c);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) {
          sum += g[j];
          product = fma(g[j], h[j], product);
        }
      });
      if (!a.dx) continue;
      sum = over_group<kGroup>(sum, Plus(), shared) / cols;
      product = over_group<kGroup>(product, Plus(), shared) / cols;
      over_share<kGroup, kPacks>(a.cols, place, [&](int64_t c, int k) {
        get(c, k), times_weight(c);
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) g[j] = rstd * (g[j] - sum - h[j] * product);
        if (a.dsum) {
          ds.get(c, w);
          RAMET_UNROLL
          for (int j = 0; j < kPack; ++j) g[j] += w[j];
        }
        dx.put(c, g);
      });
    }
    if constexpr (kPacks > 0)
      put_sums<kGroup>(dw, db, partials + part * 2 * stride, stride, a.cols);
  }
}

// For longer rows. A thread has a column of a group of rows, so neighbours read neighbours.
template <class T>
__global__ void columns_kernel(LayerNormBackwardArgs a, T* partials, int64_t groups,
                               int64_t stride) {
  const int64_t c = first_item();
  if (c >= a.cols) return;
  for (int64_t group = blockIdx.y; group < groups; group += gridDim.y) {
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

// The sums of the partial sums. A block has eight columns, 32 threads each. With a few threads for
// a whole column the wait for memory would be longer than the work on the rows.
template <class T>
__global__ void groups_kernel(LayerNormBackwardArgs a, const T* partials, int64_t groups,
                              int64_t stride) {
  constexpr int kSlices = kThreads / kPack;
  __shared__ double sums[kSlices][kPack];
  const int slice = static_cast<int>(threadIdx.x) / kPack,
            j = static_cast<int>(threadIdx.x) % kPack;
  const int64_t tiles = ceil_div(a.cols, kPack);
  for (int64_t i = blockIdx.x; i < 2 * tiles; i += gridDim.x) {
    const int64_t which = i / tiles, c = i % tiles * kPack + j;
    void* out = which == 0 ? a.dweight : a.dbias;
    if (!out) continue;
    double sum = 0;
    if (c < a.cols)
      for (int64_t group = slice; group < groups; group += kSlices)
        sum += static_cast<double>(partials[(group * 2 + which) * stride + c]);
    __syncthreads();  // its content has been read
    sums[slice][j] = sum;
    __syncthreads();
    if (slice > 0 || c >= a.cols) continue;
    for (int s = 1; s < kSlices; ++s) sum += sums[s][j];
    store_element(out, a.dtype, c, static_cast<T>(sum));
  }
}

// Starts the kernel of rows, with sums over them or without. Returns the number of rows of partial
// sums.
template <class S, int kGroup>
int64_t start_backward(const char* name, const LayerNormBackwardArgs& a, Stream where, bool sums) {
  using T = ComputeOf<S>;
  constexpr int kMost = kMostPacks<T>;
  constexpr int64_t kAtOnce = kThreads / kGroup;
  const int64_t packs = ceil_div(a.cols, kGroup * kPack),
                // With few rows there are many blocks; with many rows each block adds many.
      fair = ceil_div(ceil_div(a.rows, kLayerNormParts), kAtOnce) * kAtOnce,
                per = !sums ? kAtOnce
                            : imin(fair, kGroup == kWarp ? 2 * kLayerNormGroup : kLayerNormGroup),
                parts = ceil_div(a.rows, per);
  const bool packed = rows_packed(a.dtype, a.cols, a.x, a.weight, a.dy, a.dsum, a.dx);
  start(name, where, grid_of(parts), kThreads, 0,
        !sums           ? backward_kernel<S, kGroup, 0>
        : packs == 1    ? backward_kernel<S, kGroup, 1>
        : packs < kMost ? backward_kernel<S, kGroup, kMost - 1>
                        : backward_kernel<S, kGroup, kMost>,
        a, packed, per, static_cast<T*>(a.workspace), row_stride(a.cols));
  return parts;
}

template <class S> void backward(const LayerNormBackwardArgs& a, Stream where) {
  using T = ComputeOf<S>;
  const char* name = "layer_norm_backward";
  const bool sums = a.dweight || a.dbias, at_once = sums && a.cols <= kMostColumns<T>,
             by_warp = a.cols <= kWarp * kPack * kMostPacks<T>;
  T* partials = static_cast<T*>(a.workspace);
  const int64_t stride = row_stride(a.cols);
  int64_t groups = 0;
  if (a.rows > 0 && (a.dx || at_once))
    groups = by_warp ? start_backward<S, kWarp>(name, a, where, at_once)
                     : start_backward<S, kThreads>(name, a, where, at_once);
  if (!sums) return;
  if (!at_once) {
    groups = ceil_div(a.rows, kLayerNormGroup);
    const dim3 grid(static_cast<unsigned>(ceil_div(a.cols, kThreads)),
                    static_cast<unsigned>(imin(groups, 65535)));
    if (groups > 0)
      start(name, where, grid, kThreads, 0, columns_kernel<T>, a, partials, groups, stride);
  }
  start(name, where, grid_of(2 * ceil_div(a.cols, kPack)), kThreads, 0, groups_kernel<T>, a,
        partials, groups, stride);
}

}  // namespace

void layer_norm_forward(const LayerNormArgs& a, Stream where) {
  if (a.rows == 0 || a.cols == 0) return;
  const bool packed = rows_packed(a.dtype, a.cols, a.x, a.weight, a.bias, a.residual, a.sum, a.y);
  by_row_type(a.dtype, [&](auto s) {
    using S = decltype(s);
    start_kept_rows<S>(
        "layer_norm", where, a.rows, a.cols,
        [](auto group, auto packs) { return forward_kernel<S, group(), packs()>; }, a, packed);
  });
}
void layer_norm_backward(const LayerNormBackwardArgs& a, Stream where) {
  if (a.cols == 0) return;
  by_row_type(a.dtype, [&](auto s) { backward<decltype(s)>(a, where); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
