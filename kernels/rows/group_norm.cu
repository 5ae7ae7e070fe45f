// Statistics of rows, sums of planes; then every element separately.
#include "kernels/rows/row_sums_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/rows/group_norm.h"
#include "kernels/rows/row_registers_gpu.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// The divisions between the positions of elements and the factors of their groups.
template <class I> struct Planes {
  Divisor<I> by_l, by_c, by_channels;
  I items, planes;
  explicit Planes(const GroupNormShape& s)
      : by_l(s.l),
        by_c(s.c),
        by_channels(s.c / s.groups),
        items(static_cast<I>(s.n * s.c * s.l)),
        planes(static_cast<I>(s.n * s.c)) {}

  /// Calls f(j) for the eight elements from i on, and with(channel, group) before the first one of
  /// each plane.
  template <class With, class F>
  __device__ __forceinline__ void over_pack(I i, const With& with, const F& f) const {
    I plane = i, place = by_l.take(plane);
    const auto enter = [&] {
      I channel = plane;
      channel = by_c.take(channel);
      with(channel, by_channels(plane));
    };
    enter();
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      if (place == by_l.by) {
        place = 0;
        if (++plane < planes) enter();
      }
      f(j);
      ++place;
    }
  }
};

// A group's elements are a row. Note [Rows in registers]; kPacks = 0: it is read twice.
template <class S, int kGroup, int kPacks>
__global__ void __launch_bounds__(kBlockOf<kGroup>, kPacks > 0 ? kKeptBlocks<S> : 1)
    statistics_kernel(GroupNormArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarpsOf<kGroup>];
  const GroupNormShape& s = a.shape;
  const int64_t cols = s.c / s.groups * s.l;
  over_rows<kGroup>(s.n * s.groups, [&](int64_t row, int place) {
    const T size = static_cast<T>(cols);
    RowMoments<T> m;
    if constexpr (kPacks > 0) {
      if (row < 0) return;  // all of a warp, which needs no other one
      Share<S, kGroup, kPacks> x(cols, place, packed);
      T v[kPacks][kPack];
      x.read(dense_row<S>(a.x, row, cols), S{});
      x.get(v);
      m = share_moments(x, v, size, a.eps, shared);
    } else {
      m = row_moments<kGroup>(row_of<S>(a.x, row, cols, packed), row < 0 ? 0 : cols, place, size,
                              a.eps, shared);
    }
    if (row < 0 || place != 0) return;
    static_cast<T*>(a.mean)[row] = m.mean;
    static_cast<T*>(a.rstd)[row] = m.rstd;
  });
}

template <class S, class I>
__global__ void forward_kernel(GroupNormArgs a, Planes<I> at, bool packed) {
  using T = ComputeOf<S>;
  const Row<S> x = row_of<S>(a.x, 0, at.items, packed), y = row_of<S>(a.y, 0, at.items, packed);
  const T *w = static_cast<const T*>(a.weight), *b = static_cast<const T*>(a.bias);
  for (int64_t i = first_item() * kPack; i < at.items; i += item_step() * kPack) {
    T v[kPack], mean, scale, shift;
    x.get(i, v);
    at.over_pack(
        static_cast<I>(i),
        [&](I channel, I group) {
          mean = static_cast<const T*>(a.mean)[group];
          scale = static_cast<const T*>(a.rstd)[group] * (w ? w[channel] : T(1));
          shift = b ? b[channel] : T(0);
        },
        [&](int j) { v[j] = fma(v[j] - mean, scale, shift); });
    y.put(i, v);
  }
}

// The sums of dy and of dy h of each plane.
template <class S, int kGroup>
__global__ void sums_kernel(GroupNormBackwardArgs a, bool packed, ComputeOf<S>* sums) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarpsOf<kGroup>];
  const GroupNormShape& s = a.shape;
  const int64_t planes = s.n * s.c, channels = s.c / s.groups;
  over_rows<kGroup>(planes, [&](int64_t plane, int place) {
    const Row<S> x = row_of<S>(a.x, plane, s.l, packed), dy = row_of<S>(a.dy, plane, s.l, packed);
    const int64_t group = plane < 0 ? 0 : plane / channels;
    const T mean = static_cast<const T*>(a.mean)[group];
    T v[kPack], g[kPack], sum = T(0), product = T(0);
    over_row_packs<kGroup>(plane < 0 ? 0 : s.l, place, [&](int64_t i) {
      x.get(i, v, mean), dy.get(i, g);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) {
        sum += g[j];
        product = fma(g[j], v[j] - mean, product);
      }
    });
    sum = over_group<kGroup>(sum, Plus(), shared);
    product = over_group<kGroup>(product, Plus(), shared);
    if (plane < 0 || place != 0) return;
    sums[plane] = sum;
    sums[planes + plane] = product * static_cast<const T*>(a.rstd)[group];
  });
}

// The means of g and of g h of each group.
template <class T> __global__ void means_kernel(GroupNormBackwardArgs a, const T* sums, T* means) {
  const GroupNormShape& s = a.shape;
  const int64_t rows = s.n * s.groups, channels = s.c / s.groups, planes = s.n * s.c;
  const T size = static_cast<T>(channels * s.l), *w = static_cast<const T*>(a.weight);
  over_rows<kWarp>(rows, [&](int64_t row, int place) {
    const int64_t c0 = row % s.groups * channels;
    T sum = T(0), product = T(0);
    for (int64_t k = place; k < (row < 0 ? 0 : channels); k += kWarp) {
      const T weight = w ? w[c0 + k] : T(1);
      sum = fma(weight, sums[row * channels + k], sum);
      product = fma(weight, sums[planes + row * channels + k], product);
    }
    sum = over_group<kWarp, T>(sum, Plus(), nullptr);
    product = over_group<kWarp, T>(product, Plus(), nullptr);
    if (row < 0 || place != 0) return;
    means[row] = sum / size;
    means[rows + row] = product / size;
  });
}

template <class S, class I>
__global__ void backward_kernel(GroupNormBackwardArgs a, Planes<I> at, bool packed,
                                const ComputeOf<S>* means) {
  using T = ComputeOf<S>;
  const Row<S> x = row_of<S>(a.x, 0, at.items, packed), dy = row_of<S>(a.dy, 0, at.items, packed),
               dx = row_of<S>(a.dx, 0, at.items, packed);
  const T *w = static_cast<const T*>(a.weight), *products = means + a.shape.n * a.shape.groups;
  for (int64_t i = first_item() * kPack; i < at.items; i += item_step() * kPack) {
    T v[kPack], g[kPack], mean, rstd, weight, sum, product;
    x.get(i, v), dy.get(i, g);
    at.over_pack(
        static_cast<I>(i),
        [&](I channel, I group) {
          mean = static_cast<const T*>(a.mean)[group], rstd = static_cast<const T*>(a.rstd)[group];
          weight = w ? w[channel] : T(1), sum = means[group], product = products[group];
        },
        [&](int j) { v[j] = rstd * (g[j] * weight - sum - (v[j] - mean) * rstd * product); });
    dx.put(i, v);
  }
}

bool all_packed(ScalarType t, std::initializer_list<const void*> blocks) {
  for (const void* p : blocks)
    if (!packs_fit(p, t)) return false;
  return true;
}
template <class F> void over_packs(const GroupNormShape& s, const F& f) {
  const int64_t items = s.n * s.c * s.l;
  if (items > 0)
    by_index(static_cast<double>(items), [&](auto i) { f(i, ceil_div(items, kPack)); });
}

template <class S> void backward(const GroupNormBackwardArgs& a, Stream where) {
  using T = ComputeOf<S>;
  const char* name = "group_norm_backward";
  const GroupNormShape& s = a.shape;
  const int64_t planes = s.n * s.c;
  T *sums = static_cast<T*>(a.workspace), *means = sums + 2 * planes;
  if (planes > 0)
    start_rows(name, where, planes, s.l, sums_kernel<S, kWarp>, sums_kernel<S, kThreads>, a,
               rows_packed(a.dtype, s.l, a.x, a.dy), sums);
  if (a.dx)
    over_packs(s, [&](auto i, int64_t packs) {
      start(name, where, grid_of(ceil_div(s.n * s.groups, kWarps)), kThreads, 0, means_kernel<T>, a,
            sums, means);
      start_for(name, where, packs, backward_kernel<S, decltype(i)>, a, Planes<decltype(i)>(s),
                all_packed(a.dtype, {a.x, a.dy, a.dx}), means);
    });
  const auto add = [&](const T* of_planes, void* out) {
    if (out)
      sum_rows_of<T, T>(name, where,
                        row_sums(of_planes, {{s.n, s.c}}, s.c, 1, out, ComputeTag<T>::value));
  };
  add(sums, a.dbias), add(sums + planes, a.dweight);
}

}  // namespace

void group_norm_forward(const GroupNormArgs& a, Stream where) {
  const GroupNormShape& s = a.shape;
  over_packs(s, [&](auto i, int64_t packs) {
    by_row_type(a.dtype, [&](auto of) {
      using S = decltype(of);
      const int64_t rows = s.n * s.groups, cols = s.c / s.groups * s.l;
      const bool packed = rows_packed(a.dtype, cols, a.x);
      if (kKept<S> && cols <= kMostKept)
        start_kept_rows<S>(
            "group_norm", where, rows, cols,
            [](auto group, auto packs) { return statistics_kernel<S, group(), packs()>; }, a,
            packed);
      else
        start_long_rows("group_norm", where, rows, cols, statistics_kernel<S, kWarp, 0>,
                        statistics_kernel<S, kThreads, 0>, statistics_kernel<S, kLargeThreads, 0>,
                        a, packed);
      start_for("group_norm", where, packs, forward_kernel<S, decltype(i)>, a,
                Planes<decltype(i)>(s), all_packed(a.dtype, {a.x, a.y}));
    });
  });
}
void group_norm_backward(const GroupNormBackwardArgs& a, Stream where) {
  by_row_type(a.dtype, [&](auto s) { backward<decltype(s)>(a, where); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
