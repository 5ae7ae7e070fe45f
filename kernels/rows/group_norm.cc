// Planes are summed in lanes along memory. If channels are innermost, sixteen channels are summed
// at once. In both cases pieces are summed in T, and their sums in double.
#include "kernels/rows/group_norm.h"

#include "kernels/rows/rows.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kPiece = 4096;     // along memory; kChunk for converted elements
constexpr int64_t kPixels = 128;     // for several channels at once
constexpr int64_t kTileGroups = 64;  // the most groups of a task

// The new value of an element: (x - mean) a + b, or dy a + (x - mean) b + c.
struct Factors {
  double a, b, c;
};
struct Sums {
  double sum, product;
};

template <class T> RAMET_INLINE double value_or(const void* p, int64_t i, double otherwise) {
  return p ? static_cast<double>(static_cast<const T*>(p)[i]) : otherwise;
}
template <class T> RAMET_INLINE T stat(const void* p, int64_t i) {
  return static_cast<const T*>(p)[i];
}
template <class T> RAMET_INLINE void put(void* p, int64_t i, double value) {
  static_cast<T*>(p)[i] = static_cast<T>(value);
}
RAMET_INLINE int64_t group_size(const GroupNormShape& s) { return s.c / s.groups * s.l; }

// For channel c in the forward and the backward pass. `of` are the group's sums of g and of g (x -
// mean).
template <class T> RAMET_INLINE Factors forward_factors(const GroupNormArgs& a, int64_t c, T rstd) {
  return {static_cast<double>(rstd) * value_or<T>(a.weight, c, 1), value_or<T>(a.bias, c, 0), 0};
}
template <class T>
RAMET_INLINE Factors backward_factors(const GroupNormBackwardArgs& a, int64_t c, T rstd,
                                      const Sums& of) {
  const double k = static_cast<double>(rstd), m = static_cast<double>(group_size(a.shape));
  return {k * value_or<T>(a.weight, c, 1), -k * k * k * (of.product / m), -k * (of.sum / m)};
}
// Sums over a channel of a sample, of dy and of dy h. Adds their part to the sums of the group.
template <class T>
RAMET_INLINE void keep_sums(const GroupNormBackwardArgs& a, int64_t n, int64_t c, T rstd,
                            const Sums& s, Sums& of) {
  double* kept = static_cast<double*>(a.workspace) + 2 * n * a.shape.c + c;
  kept[0] = s.sum, kept[a.shape.c] = s.product * static_cast<double>(rstd);
  const double w = value_or<T>(a.weight, c, 1);
  of.sum += w * s.sum, of.product += w * s.product;
}

// ---- planes -------------------------------------------------------------------------------------

// f(i, count) for the pieces of n elements of type t.
template <class T, class F> RAMET_INLINE void in_pieces(ScalarType t, int64_t n, const F& f) {
  const int64_t each = t == ComputeTag<T>::value ? kPiece : kChunk;
  for (int64_t i = 0; i < n; i += each) f(i, imin(each, n - i));
}
template <class T>
RAMET_INLINE const T* piece_in(const void* p, ScalarType t, int64_t i, int64_t n, T* buffer) {
  return chunk_in(at(p, t, i), t, 1, n, buffer);
}

// The sum of f(lanes) over the n elements from `first` on. REQUIRES: f of `fill` is 0.
template <class T, class F>
RAMET_INLINE double sum_of(const GroupNormArgs& a, int64_t first, int64_t n, T fill, const F& f) {
  constexpr int last = kAccumulators<T> - 1;
  double sum = 0;
  in_pieces<T>(a.dtype, n, [&](int64_t i, int64_t count) {
    T buffer[kChunk];
    const T* x = piece_in(a.x, a.dtype, first + i, count, buffer);
    Accumulators<T> s;
    lfill<T>(s, 0);
    sweep<T>(
        count, [&](int64_t j, int u) { s[u] = f(lload(x + j), s[u]); },
        [&](int64_t j, int64_t left) { s[last] = f(lload_n<T>(x + j, left, fill), s[last]); });
    sum += static_cast<double>(lfold_add<T>(s));
  });
  return sum;
}

template <class T> void forward_planes(const GroupNormArgs& a, int64_t row) {
  const GroupNormShape& s = a.shape;
  const int64_t channels = s.c / s.groups, n = channels * s.l, first = row * n;
  const double size = static_cast<double>(n);
  put<T>(a.mean, row, sum_of<T>(a, first, n, T(0), [](const Lanes<T>& x, const Lanes<T>& sum) {
                        return sum + x;
                      }) / size);
  const T mean = stat<T>(a.mean, row);
  const Lanes<T> M = lset(mean);
  const double squares = sum_of<T>(a, first, n, mean, [&](const Lanes<T>& x, const Lanes<T>& sum) {
    const Lanes<T> d = x - M;
    return lfma(d, d, sum);
  });
  put<T>(a.rstd, row, 1 / __builtin_sqrt(a.eps + squares / size));
  const T rstd = stat<T>(a.rstd, row);
  for (int64_t k = 0; k < channels; ++k) {
    const Factors f = forward_factors<T>(a, row % s.groups * channels + k, rstd);
    const Lanes<T> A = lset(static_cast<T>(f.a)), B = lset(static_cast<T>(f.b));
    in_pieces<T>(a.dtype, s.l, [&](int64_t i, int64_t count) {
      T in[kChunk], out[kChunk];
      const int64_t at_i = first + k * s.l + i;
      const T* x = piece_in(a.x, a.dtype, at_i, count, in);
      T* y = chunk_out(at(a.y, a.dtype, at_i), a.dtype, 1, out);
      sweep<T>(
          count, [&](int64_t j, int) { lstore(y + j, lfma(lload(x + j) - M, A, B)); },
          [&](int64_t j, int64_t left) {
            lstore_n(y + j, lfma(lload_n<T>(x + j, left, T(0)) - M, A, B), left);
          });
      chunk_done(at(a.y, a.dtype, at_i), a.dtype, 1, count, out);
    });
  }
}

template <class T>
RAMET_INLINE Sums plane_sums(const GroupNormBackwardArgs& a, int64_t first, T mean) {
  constexpr int last = kAccumulators<T> - 1;
  const Lanes<T> M = lset(mean);
  Sums of{0, 0};
  in_pieces<T>(a.dtype, a.shape.l, [&](int64_t i, int64_t count) {
    T xs[kChunk], gs[kChunk];
    const T *x = piece_in(a.x, a.dtype, first + i, count, xs),
            *g = piece_in(a.dy, a.dtype, first + i, count, gs);
    Accumulators<T> s, z;
    lfill<T>(s, 0), lfill<T>(z, 0);
    sweep<T>(
        count,
        [&](int64_t j, int u) {
          const Lanes<T> v = lload(g + j);
          s[u] = s[u] + v, z[u] = lfma(v, lload(x + j) - M, z[u]);
        },
        [&](int64_t j, int64_t left) {
          const Lanes<T> v = lload_n<T>(g + j, left, T(0));
          s[last] = s[last] + v;
          z[last] = lfma(v, lload_n<T>(x + j, left, mean) - M, z[last]);
        });
    of.sum += static_cast<double>(lfold_add<T>(s));
    of.product += static_cast<double>(lfold_add<T>(z));
  });
  return of;
}

template <class T> void backward_planes(const GroupNormBackwardArgs& a, int64_t row) {
  const GroupNormShape& s = a.shape;
  const int64_t channels = s.c / s.groups, first = row * channels * s.l,
                c0 = row % s.groups * channels;
  const T mean = stat<T>(a.mean, row), rstd = stat<T>(a.rstd, row);
  const Lanes<T> M = lset(mean);
  Sums of{0, 0};
  for (int64_t k = 0; k < channels; ++k)
    keep_sums(a, row / s.groups, c0 + k, rstd, plane_sums(a, first + k * s.l, mean), of);
  if (!a.dx) return;
  for (int64_t k = 0; k < channels; ++k) {
    const Factors f = backward_factors(a, c0 + k, rstd, of);
    const Lanes<T> A = lset(static_cast<T>(f.a)), B = lset(static_cast<T>(f.b)),
                   C = lset(static_cast<T>(f.c));
    in_pieces<T>(a.dtype, s.l, [&](int64_t i, int64_t count) {
      T xs[kChunk], gs[kChunk], out[kChunk];
      const int64_t at_i = first + k * s.l + i;
      const T *x = piece_in(a.x, a.dtype, at_i, count, xs),
              *g = piece_in(a.dy, a.dtype, at_i, count, gs);
      T* dx = chunk_out(at(a.dx, a.dtype, at_i), a.dtype, 1, out);
      sweep<T>(
          count,
          [&](int64_t j, int) {
            lstore(dx + j, lfma(lload(x + j) - M, B, lfma(lload(g + j), A, C)));
          },
          [&](int64_t j, int64_t left) {
            const auto part = [&](const T* p) { return lload_n<T>(p + j, left, T(0)); };
            lstore_n(dx + j, lfma(part(x) - M, B, lfma(part(g), A, C)), left);
          });
      chunk_done(at(a.dx, a.dtype, at_i), a.dtype, 1, count, out);
    });
  }
}

// ---- channels innermost -------------------------------------------------------------------------

template <class T>
RAMET_INLINE Lanes<T> strip_in(const void* p, ScalarType t, int64_t i, int64_t left) {
  if (t == ComputeTag<T>::value) {
    const T* x = static_cast<const T*>(p) + i;
    return left == 16 ? lload(x) : lload_n<T>(x, left, T(0));
  }
  T x[16] = {};
  load_chunk(at(p, t, i), t, 1, left, x);
  return lload(x);
}
template <class T>
RAMET_INLINE void strip_out(void* p, ScalarType t, int64_t i, int64_t left, const Lanes<T>& v) {
  if (t == ComputeTag<T>::value) {
    T* y = static_cast<T*>(p) + i;
    return left == 16 ? lstore(y, v) : lstore_n(y, v, left);
  }
  T y[16];
  lstore(y, v);
  store_chunk(at(p, t, i), t, 1, left, y);
}

template <int kStrips> struct Wide {};
#define RAMET_EACH_STRIP _Pragma("GCC unroll 4") for (int q = 0; q < kStrips; ++q)

// The groups of a sample in a task: whole groups, with more channels than a cache line.
struct Tile {
  int64_t n, first, end, channels;
  static RAMET_INLINE int64_t groups_of(const GroupNormShape& s) {
    const int64_t channels = s.c / s.groups;
    return imin(kTileGroups, imax(ceil_div(64, channels), ceil_div(8192, channels * s.l)));
  }
  RAMET_INLINE Tile(const GroupNormShape& s, int64_t task) {
    const int64_t each = groups_of(s), tiles = ceil_div(s.groups, each);
    n = task / tiles, first = task % tiles * each, end = imin(s.groups, first + each);
    channels = s.c / s.groups;
  }
  /// f(first channel, channels, Wide) for strips of sixteen channels, four at once as long as
  /// possible.
  template <class F> RAMET_INLINE void strips(const F& f) const {
    int64_t c = first * channels;
    for (; c + 64 <= end * channels; c += 64) f(c, int64_t{64}, Wide<4>());
    for (; c < end * channels; c += 16) f(c, imin(16, end * channels - c), Wide<1>());
  }
  /// f(k, channel, its group in this tile) for the channels of a strip.
  template <class F> RAMET_INLINE void lanes(int64_t c, int64_t count, const F& f) const {
    int64_t g = c / channels, next = (g + 1) * channels;
    for (int64_t k = 0; k < count; ++k) {
      if (c + k == next) ++g, next += channels;
      f(k, c + k, g - first);
    }
  }
};

// Calls f(position, index of the strip, its sums) for strips of a sample's pixels; f adds to lanes.
// Adds their sums to `total`.
template <class T, int kStrips, int kSums, class F>
RAMET_INLINE void over_pixels(const GroupNormShape& s, int64_t n, int64_t c,
                              double (&total)[kSums][16 * kStrips], const F& f) {
  for (int64_t p = 0; p < s.l; p += kPixels) {
    Lanes<T> sums[kStrips][kSums];
    RAMET_EACH_STRIP for (int k = 0; k < kSums; ++k) sums[q][k] = lset<T>(0);
    const int64_t end = n * s.l + imin(s.l, p + kPixels);
    for (int64_t pixel = n * s.l + p; pixel < end; ++pixel) {
      RAMET_EACH_STRIP f(pixel * s.c + c + 16 * q, q, sums[q]);
    }
    for (int k = 0; k < kSums; ++k) {
      T part[16 * kStrips];
      RAMET_EACH_STRIP lstore(part + 16 * q, sums[q][k]);
      for (int j = 0; j < 16 * kStrips; ++j) total[k][j] += static_cast<double>(part[j]);
    }
  }
}

// For the channels of one strip or four; `row` is the tile's first group.
template <class T, int kStrips>
RAMET_INLINE void get_means(const Tile& tile, const void* mean, int64_t row, int64_t c,
                            int64_t count, Lanes<T> (&m)[kStrips]) {
  T means[16 * kStrips] = {};
  tile.lanes(c, count, [&](int64_t k, int64_t, int64_t g) { means[k] = stat<T>(mean, row + g); });
  RAMET_EACH_STRIP m[q] = lload(means + 16 * q);
}

template <class T> void forward_inside(const GroupNormArgs& a, int64_t task) {
  const GroupNormShape& s = a.shape;
  const Tile tile(s, task);
  const int64_t row = tile.n * s.groups + tile.first;
  const double size = static_cast<double>(group_size(s));
  double sums[kTileGroups] = {};
  T scale[64] = {}, shift[64] = {};
  tile.strips([&]<int kStrips>(int64_t c, int64_t count, Wide<kStrips>) {
    double total[1][16 * kStrips] = {};
    over_pixels<T, kStrips>(s, tile.n, c, total, [&](int64_t i, int, Lanes<T>(&sum)[1]) {
      sum[0] = sum[0] + strip_in<T>(a.x, a.dtype, i, imin(16, count));
    });
    tile.lanes(c, count, [&](int64_t k, int64_t, int64_t g) { sums[g] += total[0][k]; });
  });
  for (int64_t g = 0; g < tile.end - tile.first; ++g)
    put<T>(a.mean, row + g, sums[g] / size), sums[g] = 0;
  tile.strips([&]<int kStrips>(int64_t c, int64_t count, Wide<kStrips>) {
    Lanes<T> M[kStrips];
    get_means(tile, a.mean, row, c, count, M);
    double total[1][16 * kStrips] = {};
    over_pixels<T, kStrips>(s, tile.n, c, total, [&](int64_t i, int q, Lanes<T>(&sum)[1]) {
      const Lanes<T> d = strip_in<T>(a.x, a.dtype, i, imin(16, count)) - M[q];
      sum[0] = lfma(d, d, sum[0]);
    });
    tile.lanes(c, count, [&](int64_t k, int64_t, int64_t g) { sums[g] += total[0][k]; });
  });
  for (int64_t g = 0; g < tile.end - tile.first; ++g)
    put<T>(a.rstd, row + g, 1 / __builtin_sqrt(a.eps + sums[g] / size));
  tile.strips([&]<int kStrips>(int64_t c, int64_t count, Wide<kStrips>) {
    Lanes<T> M[kStrips], A[kStrips], B[kStrips];
    get_means(tile, a.mean, row, c, count, M);
    tile.lanes(c, count, [&](int64_t k, int64_t channel, int64_t g) {
      const Factors f = forward_factors<T>(a, channel, stat<T>(a.rstd, row + g));
      scale[k] = static_cast<T>(f.a), shift[k] = static_cast<T>(f.b);
    });
    RAMET_EACH_STRIP A[q] = lload(scale + 16 * q), B[q] = lload(shift + 16 * q);
    for (int64_t p = 0; p < s.l; ++p) {
      RAMET_EACH_STRIP {
        const int64_t i = (tile.n * s.l + p) * s.c + c + 16 * q, left = imin(16, count);
        strip_out(a.y, a.dtype, i, left,
                  lfma(strip_in<T>(a.x, a.dtype, i, left) - M[q], A[q], B[q]));
      }
    }
  });
}

template <class T> void backward_inside(const GroupNormBackwardArgs& a, int64_t task) {
  const GroupNormShape& s = a.shape;
  const Tile tile(s, task);
  const int64_t row = tile.n * s.groups + tile.first;
  Sums sums[kTileGroups] = {};
  T fa[64] = {}, fb[64] = {}, fc[64] = {};
  tile.strips([&]<int kStrips>(int64_t c, int64_t count, Wide<kStrips>) {
    Lanes<T> M[kStrips];
    get_means(tile, a.mean, row, c, count, M);
    double total[2][16 * kStrips] = {};
    over_pixels<T, kStrips>(s, tile.n, c, total, [&](int64_t i, int q, Lanes<T>(&sum)[2]) {
      const Lanes<T> g = strip_in<T>(a.dy, a.dtype, i, imin(16, count));
      sum[0] = sum[0] + g;
      sum[1] = lfma(g, strip_in<T>(a.x, a.dtype, i, imin(16, count)) - M[q], sum[1]);
    });
    tile.lanes(c, count, [&](int64_t k, int64_t channel, int64_t g) {
      keep_sums(a, tile.n, channel, stat<T>(a.rstd, row + g), {total[0][k], total[1][k]}, sums[g]);
    });
  });
  if (!a.dx) return;
  tile.strips([&]<int kStrips>(int64_t c, int64_t count, Wide<kStrips>) {
    Lanes<T> M[kStrips], A[kStrips], B[kStrips], C[kStrips];
    get_means(tile, a.mean, row, c, count, M);
    tile.lanes(c, count, [&](int64_t k, int64_t channel, int64_t g) {
      const Factors f = backward_factors(a, channel, stat<T>(a.rstd, row + g), sums[g]);
      fa[k] = static_cast<T>(f.a), fb[k] = static_cast<T>(f.b), fc[k] = static_cast<T>(f.c);
    });
    RAMET_EACH_STRIP {
      A[q] = lload(fa + 16 * q), B[q] = lload(fb + 16 * q), C[q] = lload(fc + 16 * q);
    }
    for (int64_t p = 0; p < s.l; ++p) {
      RAMET_EACH_STRIP {
        const int64_t i = (tile.n * s.l + p) * s.c + c + 16 * q, left = imin(16, count);
        const Lanes<T> g = strip_in<T>(a.dy, a.dtype, i, left),
                       d = strip_in<T>(a.x, a.dtype, i, left) - M[q];
        strip_out(a.dx, a.dtype, i, left, lfma(d, B[q], lfma(g, A[q], C[q])));
      }
    }
  });
}

// The sums over a channel's samples.
template <class T> void finish(const GroupNormBackwardArgs& a) {
  const GroupNormShape& s = a.shape;
  const auto* kept = static_cast<const double*>(a.workspace);
  constexpr int64_t kColumns = 256;
  run_tasks(ceil_div(s.c, kColumns), s.n * s.c * 16, [&](int64_t task, int) {
    for (int64_t c = task * kColumns; c < imin(s.c, (task + 1) * kColumns); ++c)
      for (int64_t k = 0; k < 2; ++k) {
        void* out = k == 0 ? a.dbias : a.dweight;
        if (!out) continue;
        double sum = 0;
        for (int64_t n = 0; n < s.n && s.l > 0; ++n) sum += kept[(2 * n + k) * s.c + c];
        static_cast<T*>(out)[c] = static_cast<T>(sum);
      }
  });
}

// f(row) for all groups of planes, or g(task) for all tiles.
template <class Planes, class Inside>
RAMET_INLINE void over_groups(const GroupNormShape& s, ScalarType t, const Planes& planes,
                              const Inside& inside) {
  if (group_size(s) == 0) return;
  if (s.inside)
    return run_tasks(s.n * ceil_div(s.groups, Tile::groups_of(s)), s.n * s.c * s.l * bytes_of(t),
                     [&](int64_t task, int) { inside(task); });
  by_rows(s.n * s.groups, group_size(s), t, [&](int64_t first, int64_t end, int) {
    for (int64_t row = first; row < end; ++row) planes(row);
  });
}

}  // namespace

void group_norm_forward(const GroupNormArgs& a) {
  by_floating_type(a.dtype, [&](auto t) {
    using T = decltype(t);
    over_groups(
        a.shape, a.dtype, [&](int64_t row) { forward_planes<T>(a, row); },
        [&](int64_t task) { forward_inside<T>(a, task); });
  });
}

void group_norm_backward(const GroupNormBackwardArgs& a) {
  by_floating_type(a.dtype, [&](auto t) {
    using T = decltype(t);
    over_groups(
        a.shape, a.dtype, [&](int64_t row) { backward_planes<T>(a, row); },
        [&](int64_t task) { backward_inside<T>(a, task); });
    if (a.dweight || a.dbias) finish<T>(a);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
