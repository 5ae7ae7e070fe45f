#include "kernels/image/batch_norm.h"

#include <cmath>

#include "kernels/matrix/bfloat_pack.h"
#include "kernels/simd/lanes64.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T> RAMET_INLINE T* data_of(const ChannelView& v) { return static_cast<T*>(v.data); }

// The values in one of two layouts: rows of channels, or planes.
struct Layout {
  bool inside;           // channels innermost
  int64_t rows, chunks;  // rows: all of them (inside); chunks of the whole batch
  int64_t per, pieces;   // rows of a chunk; pieces of a plane
  RAMET_INLINE Layout(int64_t n, int64_t c, int64_t l, const ChannelView& v) {
    inside = v.c == 1 && (c > 1 || l == 1);
    rows = n * l, per = batch_norm_rows(c);
    pieces = ceil_div(l, kBatchNormPlane);
    chunks = batch_norm_chunks(n, c, l, inside);
  }
};
RAMET_INLINE int64_t row_stride(const ChannelView& v, int64_t l) { return l == 1 ? v.n : v.l; }

template <class F> RAMET_INLINE void run(int64_t tasks, int64_t bytes, const F& f) {
  if (bytes >= parallel_grain()) return parallel_tasks(tasks, f);
  for (int64_t t = 0; t < tasks; ++t) f(t, 0);
}

// ---- float: vectors of channels, or 64 lanes along a plane --------------------------------------
// Values, of type E, are floats or bfloat16.

RAMET_INLINE vf get(const float* p) { return load(p); }
RAMET_INLINE vf get(const float* p, int64_t n) { return loadn(p, n); }
RAMET_INLINE void put(float* p, vf v, int64_t n) { storen(p, v, n); }
RAMET_INLINE vf get(const uint16_t* p) { return as_floats(p, VL); }
RAMET_INLINE vf get(const uint16_t* p, int64_t n) { return as_floats(p, imin(n, VL)); }
RAMET_INLINE void put(uint16_t* p, vf v, int64_t n) { store_halves(p, v, imin(n, VL)); }

// A piece of a plane as floats, in `buffer` if it is not.
RAMET_INLINE const float* piece(const float* p, int64_t, float*) { return p; }
RAMET_INLINE const float* piece(const uint16_t* p, int64_t n, float* buffer) {
  for (int64_t i = 0; i < n; i += VL) store(buffer + i, get(p + i, n - i));
  return buffer;
}
template <class E> struct Piece {  // at most kBatchNormPlane values
  alignas(64) float values[sizeof(E) == 4 ? VL : kBatchNormPlane];
};

// Neighbouring vectors of channels that are summed together, so that whole lines of memory are
// read.
constexpr int kVectors = 4;

// The moments of a chunk about its mean, which is rounded to float. They are the sum of squares and
// the rest that the rounding leaves. part[0..c) holds the means, then the squares, then the rests;
// or one channel's three values.
template <class E>
void chunk_moments_rows(const E* x, int64_t stride, int64_t rows, int64_t c, float* part) {
  const float inverse = 1.0f / static_cast<float>(rows);
  int64_t j = 0;
  for (; j + kVectors * VL <= c; j += kVectors * VL) {
    vf mean[kVectors] = {}, square[kVectors] = {}, rest[kVectors] = {};
    for (int64_t r = 0; r < rows; ++r)
      for (int v = 0; v < kVectors; ++v) mean[v] += get(x + r * stride + j + v * VL);
    for (vf& m : mean) m = m * set1(inverse);
    for (int64_t r = 0; r < rows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        const vf d = get(x + r * stride + j + v * VL) - mean[v];
        square[v] = fma(d, d, square[v]);
        rest[v] += d;
      }
    for (int v = 0; v < kVectors; ++v) {
      float* to = part + j + v * VL;
      store(to, mean[v]), store(to + c, square[v]), store(to + 2 * c, rest[v]);
    }
  }
  for (; j < c; j += VL) {
    const int64_t left = c - j;
    vf sum{}, square{}, rest{};
    for (int64_t r = 0; r < rows; ++r) sum += get(x + r * stride + j, left);
    const vf mean = sum * set1(inverse);
    for (int64_t r = 0; r < rows; ++r) {
      const vf d = get(x + r * stride + j, left) - mean;
      square = fma(d, d, square);
      rest += d;
    }
    storen(part + j, mean, left), storen(part + c + j, square, left),
        storen(part + 2 * c + j, rest, left);
  }
}
void chunk_moments_plane(const float* x, int64_t n, int64_t c, float* part) {
  vf sum[kLaneVectors] = {}, square[kLaneVectors] = {}, rest[kLaneVectors] = {};
  lanes64(
      x, nullptr, n, 0.0f, [&](int v, vf a, vf) __attribute__((always_inline)) { sum[v] += a; });
  const float mean = fold(sum) / static_cast<float>(n);
  lanes64(
      x, nullptr, n, mean, [&](int v, vf a, vf) __attribute__((always_inline)) {
        const vf d = a - set1(mean);
        square[v] = fma(d, d, square[v]);
        rest[v] += d;
      });
  part[0] = mean, part[c] = fold(square), part[2 * c] = fold(rest);
}

// Sums of dy and of dy * (x - mean) of a chunk.
template <class E>
void chunk_products_rows(const E* x, int64_t xs, const E* dy, int64_t ds, int64_t rows, int64_t c,
                         const float* mean, float* part) {
  int64_t j = 0;
  for (; j + kVectors * VL <= c; j += kVectors * VL) {
    vf m[kVectors], sum[kVectors] = {}, dot[kVectors] = {};
    for (int v = 0; v < kVectors; ++v) m[v] = load(mean + j + v * VL);
    for (int64_t r = 0; r < rows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        const vf g = get(dy + r * ds + j + v * VL);
        sum[v] += g;
        dot[v] = fma(g, get(x + r * xs + j + v * VL) - m[v], dot[v]);
      }
    for (int v = 0; v < kVectors; ++v)
      store(part + j + v * VL, sum[v]), store(part + c + j + v * VL, dot[v]);
  }
  for (; j < c; j += VL) {
    const int64_t left = c - j;
    const vf m = loadn(mean + j, left);
    vf sum{}, dot{};
    for (int64_t r = 0; r < rows; ++r) {
      const vf g = get(dy + r * ds + j, left);
      sum += g;
      dot = fma(g, get(x + r * xs + j, left) - m, dot);
    }
    storen(part + j, sum, left), storen(part + c + j, dot, left);
  }
}
void chunk_products_plane(const float* x, const float* dy, int64_t n, float mean, float* sum_out,
                          float* dot_out) {
  vf sum[kLaneVectors] = {}, dot[kLaneVectors] = {};
  lanes64(
      x, dy, n, mean, [&](int v, vf a, vf g) __attribute__((always_inline)) {
        sum[v] += g;
        dot[v] = fma(g, a - set1(mean), dot[v]);
      });
  *sum_out = fold(sum), *dot_out = fold(dot);
}

// y = x * p[0] + p[1] per channel.
template <class E>
void affine(int64_t n, int64_t c, int64_t l, const ChannelView& x, const ChannelView& y,
            const float* scale, const float* shift) {
  const Layout layout(n, c, l, x);
  const int64_t bytes = n * c * l * 8;
  if (layout.inside) {
    const int64_t xs = row_stride(x, l), ys = row_stride(y, l);
    run(layout.chunks, bytes, [&](int64_t t, int) {
      const int64_t end = imin(layout.rows, (t + 1) * layout.per);
      for (int64_t r = t * layout.per; r < end; ++r) {
        const E* p = data_of<const E>(x) + r * xs;
        E* q = data_of<E>(y) + r * ys;
        for (int64_t j = 0; j < c; j += VL) {
          const int64_t left = c - j;
          put(q + j, fma(get(p + j, left), loadn(scale + j, left), loadn(shift + j, left)), left);
        }
      }
    });
    return;
  }
  run(n * c, bytes, [&](int64_t t, int) {
    const E* p = data_of<const E>(x) + t / c * x.n + t % c * x.c;
    E* q = data_of<E>(y) + t / c * y.n + t % c * y.c;
    const vf a = set1(scale[t % c]), b = set1(shift[t % c]);
    for (int64_t i = 0; i < l; i += VL) put(q + i, fma(get(p + i, l - i), a, b), l - i);
  });
}

// dx = dy * a + (x - mean) * b + k per channel.
template <class E>
void combine(const BatchNormBackwardArgs& g, const float* a, const float* b, const float* k,
             const float* mean) {
  const Layout layout(g.n, g.c, g.l, g.x);
  const int64_t bytes = g.n * g.c * g.l * 12;
  if (layout.inside) {
    const int64_t xs = row_stride(g.x, g.l), ds = row_stride(g.dy, g.l), os = row_stride(g.dx, g.l);
    run(layout.chunks, bytes, [&](int64_t t, int) {
      const int64_t end = imin(layout.rows, (t + 1) * layout.per);
      for (int64_t r = t * layout.per; r < end; ++r) {
        const E *p = data_of<const E>(g.x) + r * xs, *d = data_of<const E>(g.dy) + r * ds;
        E* o = data_of<E>(g.dx) + r * os;
        for (int64_t j = 0; j < g.c; j += VL) {
          const int64_t left = g.c - j;
          const vf base = fma(get(d + j, left), loadn(a + j, left), loadn(k + j, left));
          put(o + j, fma(get(p + j, left) - loadn(mean + j, left), loadn(b + j, left), base), left);
        }
      }
    });
    return;
  }
  run(g.n * g.c, bytes, [&](int64_t t, int) {
    const int64_t n = t / g.c, c = t % g.c;
    const E *p = data_of<const E>(g.x) + n * g.x.n + c * g.x.c,
            *d = data_of<const E>(g.dy) + n * g.dy.n + c * g.dy.c;
    E* o = data_of<E>(g.dx) + n * g.dx.n + c * g.dx.c;
    const vf va = set1(a[c]), vb = set1(b[c]), vk = set1(k[c]), vm = set1(mean[c]);
    for (int64_t i = 0; i < g.l; i += VL) {
      const int64_t left = g.l - i;
      put(o + i, fma(get(p + i, left) - vm, vb, fma(get(d + i, left), va, vk)), left);
    }
  });
}

// Calls rows(chunk, first row, rows) or plane(chunk, sample, channel, first, count) for every chunk
// of the batch.
template <class Rows, class Plane>
RAMET_INLINE void for_chunks(const Layout& layout, int64_t n, int64_t c, int64_t l,
                             const Rows& rows, const Plane& plane) {
  const int64_t bytes = n * c * l * 4;
  if (layout.inside) {
    run(layout.chunks, bytes, [&](int64_t t, int) {
      rows(t, t * layout.per, imin(layout.per, layout.rows - t * layout.per));
    });
    return;
  }
  run(n, bytes, [&](int64_t s, int) {
    for (int64_t piece = 0; piece < layout.pieces; ++piece)
      for (int64_t j = 0; j < c; ++j)
        plane(s * layout.pieces + piece, s, j, piece * kBatchNormPlane,
              imin(kBatchNormPlane, l - piece * kBatchNormPlane));
  });
}
RAMET_INLINE int64_t chunk_size(const Layout& layout, int64_t l, int64_t chunk) {
  if (layout.inside) return imin(layout.per, layout.rows - chunk * layout.per);
  return imin(kBatchNormPlane, l - chunk % layout.pieces * kBatchNormPlane);
}

struct Moments {  // of one channel
  double mean, square;
};

// So many channels are combined together: their values of a chunk are in one or two cache lines.
constexpr int64_t kBeside = 16;

// f(first, end) for groups of kBeside channels of `chunks` chunks.
template <class F> RAMET_INLINE void beside(int64_t c, int64_t chunks, const F& f) {
  run(ceil_div(c, kBeside), chunks * c * 8,
      [&](int64_t t, int) { f(t * kBeside, imin(c, t * kBeside + kBeside)); });
}

// sum = sum of size * mean + rest. A chunk's squares about the total mean are square - 2 d rest +
// size d^2, where d is the distance of the means. If a mean is infinite, the rest is NaN and is not
// used. `count` channels from `part` on.
RAMET_INLINE void combine_moments(const Layout& layout, int64_t l, int64_t c, int64_t count,
                                  const float* part, double total, Moments* m) {
  double sum[kBeside] = {}, square[kBeside] = {}, mean[kBeside];
  const float* p = part;
  for (int64_t i = 0; i < layout.chunks; ++i, p += 3 * c) {
    const auto size = static_cast<double>(chunk_size(layout, l, i));
    for (int64_t j = 0; j < count; ++j) {
      const double rest = p[2 * c + j];
      sum[j] += size * p[j] + (rest == rest ? rest : 0);
    }
  }
  for (int64_t j = 0; j < count; ++j) mean[j] = sum[j] / total;
  p = part;
  for (int64_t i = 0; i < layout.chunks; ++i, p += 3 * c) {
    const auto size = static_cast<double>(chunk_size(layout, l, i));
    for (int64_t j = 0; j < count; ++j) {
      const double d = mean[j] - p[j];
      square[j] += p[c + j] + d * (size * d - 2.0 * p[2 * c + j]);
    }
  }
  for (int64_t j = 0; j < count; ++j) m[j] = {mean[j], square[j]};
}

template <class T>
RAMET_INLINE void finish_statistics(const BatchNormArgs& a, int64_t j, Moments m, double total) {
  static_cast<T*>(a.mean)[j] = static_cast<T>(m.mean);
  static_cast<T*>(a.invstd)[j] = static_cast<T>(1 / std::sqrt(m.square / total + a.eps));
  if (a.running_mean) {
    T& r = static_cast<T*>(a.running_mean)[j];
    r = static_cast<T>(a.momentum * m.mean + (1 - a.momentum) * static_cast<double>(r));
  }
  if (a.running_var) {
    T& r = static_cast<T*>(a.running_var)[j];
    r = static_cast<T>(a.momentum * (m.square / (total - 1)) +
                       (1 - a.momentum) * static_cast<double>(r));
  }
}

template <class E> void float_statistics(const BatchNormArgs& a) {
  const Layout layout(a.n, a.c, a.l, a.x);
  auto* part = static_cast<float*>(a.workspace);
  const E* x = data_of<const E>(a.x);
  const int64_t c = a.c;
  for_chunks(
      layout, a.n, c, a.l,
      [&](int64_t chunk, int64_t row, int64_t rows) {
        const int64_t s = row_stride(a.x, a.l);
        chunk_moments_rows(x + row * s, s, rows, c, part + chunk * 3 * c);
      },
      [&](int64_t chunk, int64_t n, int64_t j, int64_t first, int64_t count) {
        Piece<E> floats;
        chunk_moments_plane(piece(x + n * a.x.n + j * a.x.c + first, count, floats.values), count,
                            c, part + chunk * 3 * c + j);
      });
  const double total = static_cast<double>(a.n * a.l);
  beside(c, layout.chunks, [&](int64_t first, int64_t end) {
    Moments m[kBeside];
    combine_moments(layout, a.l, c, end - first, part + first, total, m);
    for (int64_t j = first; j < end; ++j) finish_statistics<float>(a, j, m[j - first], total);
  });
}

template <class T> RAMET_INLINE T or_one(const void* p, int64_t j) {
  return p ? static_cast<const T*>(p)[j] : T{1};
}
template <class T> RAMET_INLINE T or_zero(const void* p, int64_t j) {
  return p ? static_cast<const T*>(p)[j] : T{0};
}

template <class E> void float_forward(const BatchNormArgs& a) {
  auto* scale = static_cast<float*>(a.workspace);
  float* shift = scale + a.c;
  for (int64_t j = 0; j < a.c; ++j) {
    const double s =
        static_cast<double>(or_one<float>(a.weight, j)) * static_cast<const float*>(a.invstd)[j];
    scale[j] = static_cast<float>(s);
    shift[j] =
        static_cast<float>(or_zero<float>(a.bias, j) - static_cast<const float*>(a.mean)[j] * s);
  }
  affine<E>(a.n, a.c, a.l, a.x, a.y, scale, shift);
}

template <class E> void float_backward(const BatchNormBackwardArgs& g) {
  const int64_t c = g.c;
  const Layout layout(g.n, c, g.l, g.x);
  auto* a = static_cast<float*>(g.workspace);
  float *b = a + c, *k = b + c, *part = k + c;
  const auto* mean = static_cast<const float*>(g.mean);
  const bool sums = g.dweight || g.dbias || g.training;
  if (sums)
    for_chunks(
        layout, g.n, c, g.l,
        [&](int64_t chunk, int64_t row, int64_t rows) {
          const int64_t xs = row_stride(g.x, g.l), ds = row_stride(g.dy, g.l);
          chunk_products_rows(data_of<const E>(g.x) + row * xs, xs,
                              data_of<const E>(g.dy) + row * ds, ds, rows, c, mean,
                              part + chunk * 2 * c);
        },
        [&](int64_t chunk, int64_t n, int64_t j, int64_t first, int64_t count) {
          float* p = part + chunk * 2 * c + j;
          Piece<E> x, dy;
          chunk_products_plane(
              piece(data_of<const E>(g.x) + n * g.x.n + j * g.x.c + first, count, x.values),
              piece(data_of<const E>(g.dy) + n * g.dy.n + j * g.dy.c + first, count, dy.values),
              count, mean[j], p, p + c);
        });
  const double total = static_cast<double>(g.n * g.l);
  beside(c, layout.chunks, [&](int64_t first, int64_t end) {
    double sums_of[kBeside] = {}, dots[kBeside] = {};
    if (sums)
      for (int64_t i = 0; i < layout.chunks; ++i) {
        const float* p = part + i * 2 * c + first;
        for (int64_t j = 0; j < end - first; ++j) sums_of[j] += p[j], dots[j] += p[c + j];
      }
    for (int64_t j = first; j < end; ++j) {
      const double sum = sums_of[j - first], dot = dots[j - first],
                   inv = static_cast<const float*>(g.invstd)[j],
                   w = static_cast<double>(or_one<float>(g.weight, j)) * inv;
      if (g.dweight) static_cast<float*>(g.dweight)[j] = static_cast<float>(dot * inv);
      if (g.dbias) static_cast<float*>(g.dbias)[j] = static_cast<float>(sum);
      a[j] = static_cast<float>(w);
      b[j] = g.training ? static_cast<float>(-w * inv * inv * dot / total) : 0.0f;
      k[j] = g.training ? static_cast<float>(-w * sum / total) : 0.0f;
    }
  });
  if (g.dx.data && g.training) combine<E>(g, a, b, k, mean);
  // x is not read, because it may be infinite
  else if (g.dx.data) affine<E>(g.n, c, g.l, g.dy, g.dx, a, k);
}

// f(E) for the type of the values.
template <class F> RAMET_INLINE void by_values(ScalarType values, const F& f) {
  if (values == ScalarType::BFloat16) f(uint16_t{});
  else f(float{});
}
void statistics(const BatchNormArgs& a, float) {
  by_values(a.values, [&](auto e) { float_statistics<decltype(e)>(a); });
}
void forward(const BatchNormArgs& a, float) {
  by_values(a.values, [&](auto e) { float_forward<decltype(e)>(a); });
}
void backward(const BatchNormBackwardArgs& g, float) {
  by_values(g.values, [&](auto e) { float_backward<decltype(e)>(g); });
}

// ---- double: channel by channel -----------------------------------------------------------------

// f(x offset, second offset) over a channel, sample by sample.
template <class F>
RAMET_INLINE void over_channel(int64_t n, int64_t l, int64_t j, const ChannelView& x,
                               const ChannelView& y, const F& f) {
  for (int64_t s = 0; s < n; ++s)
    for (int64_t i = 0; i < l; ++i) f(s * x.n + j * x.c + i * x.l, s * y.n + j * y.c + i * y.l);
}

void statistics(const BatchNormArgs& a, double) {
  const double total = static_cast<double>(a.n * a.l);
  const auto* x = data_of<const double>(a.x);
  run(a.c, a.n * a.c * a.l * 8, [&](int64_t j, int) {
    double sum = 0, square = 0;
    over_channel(a.n, a.l, j, a.x, a.x, [&](int64_t i, int64_t) { sum += x[i]; });
    const double mean = sum / total;
    over_channel(a.n, a.l, j, a.x, a.x,
                 [&](int64_t i, int64_t) { square += (x[i] - mean) * (x[i] - mean); });
    finish_statistics<double>(a, j, {mean, square}, total);
  });
}

void forward(const BatchNormArgs& a, double) {
  const auto* x = data_of<const double>(a.x);
  auto* y = data_of<double>(a.y);
  run(a.c, a.n * a.c * a.l * 16, [&](int64_t j, int) {
    const double scale = or_one<double>(a.weight, j) * static_cast<const double*>(a.invstd)[j];
    const double mean = static_cast<const double*>(a.mean)[j], bias = or_zero<double>(a.bias, j);
    over_channel(a.n, a.l, j, a.x, a.y,
                 [&](int64_t i, int64_t o) { y[o] = (x[i] - mean) * scale + bias; });
  });
}

void backward(const BatchNormBackwardArgs& g, double) {
  const double total = static_cast<double>(g.n * g.l);
  const auto *x = data_of<const double>(g.x), *dy = data_of<const double>(g.dy);
  auto* dx = data_of<double>(g.dx);
  run(g.c, g.n * g.c * g.l * 24, [&](int64_t j, int) {
    const double mean = static_cast<const double*>(g.mean)[j],
                 inv = static_cast<const double*>(g.invstd)[j];
    const double w = or_one<double>(g.weight, j) * inv;
    double sum = 0, dot = 0;
    over_channel(g.n, g.l, j, g.x, g.dy,
                 [&](int64_t i, int64_t o) { sum += dy[o], dot += dy[o] * (x[i] - mean); });
    if (g.dweight) static_cast<double*>(g.dweight)[j] = dot * inv;
    if (g.dbias) static_cast<double*>(g.dbias)[j] = sum;
    if (!dx) return;
    const double b = g.training ? -w * inv * inv * dot / total : 0,
                 k = g.training ? -w * sum / total : 0;
    for (int64_t s = 0; s < g.n; ++s)
      for (int64_t i = 0; i < g.l; ++i)
        dx[s * g.dx.n + j * g.dx.c + i * g.dx.l] =
            dy[s * g.dy.n + j * g.dy.c + i * g.dy.l] * w +
            (g.training ? (x[s * g.x.n + j * g.x.c + i * g.x.l] - mean) * b + k : 0);
  });
}

template <class T> void from_running(const BatchNormArgs& a) {
  for (int64_t j = 0; j < a.c; ++j) {
    static_cast<T*>(a.mean)[j] = static_cast<const T*>(a.running_mean)[j];
    static_cast<T*>(a.invstd)[j] = static_cast<T>(
        1 / std::sqrt(static_cast<double>(static_cast<const T*>(a.running_var)[j]) + a.eps));
  }
}

}  // namespace

void batch_norm_statistics(const BatchNormArgs& a) {
  by_dtype<float, double>(
      a.dtype, [&](auto t) { a.training ? statistics(a, t) : from_running<decltype(t)>(a); });
}
void batch_norm_forward(const BatchNormArgs& a) {
  by_dtype<float, double>(a.dtype, [&](auto t) { forward(a, t); });
}
void batch_norm_backward(const BatchNormBackwardArgs& a) {
  by_dtype<float, double>(a.dtype, [&](auto t) { backward(a, t); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
