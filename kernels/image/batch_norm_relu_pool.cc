#include "kernels/image/batch_norm_relu_pool.h"

#include "kernels/simd/vec.h"
#include "kernels/util.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

RAMET_INLINE vf get(const float* p, int64_t left) { return left >= VL ? load(p) : loadn(p, left); }
RAMET_INLINE void put(float* p, vf v, int64_t left) {
  left >= VL ? store(p, v) : storen(p, v, left);
}
// max() keeps a NaN in b only
RAMET_INLINE vf max_or_nan(vf a, vf b) { return pick(eq(a, a), max(a, b), a); }

template <class Args> void affine_of(const Args& a, float* scale, float* shift) {
  for (int64_t j = 0; j < a.c; ++j) {
    const double s = static_cast<double>(a.weight ? a.weight[j] : 1.0f) * a.invstd[j];
    scale[j] = static_cast<float>(s);
    shift[j] = static_cast<float>((a.bias ? a.bias[j] : 0.0f) - a.mean[j] * s);
  }
}

// The four inputs of a window, and the one that receives the gradient: the first maximum, or the
// last NaN.
struct Window {
  vf x[4];
  vm hit[4];
  vm live;
  RAMET_INLINE Window(const float* p, int64_t row, int64_t c, vf scale, vf shift, int64_t left) {
    x[0] = get(p, left), x[1] = get(p + c, left), x[2] = get(p + row, left),
    x[3] = get(p + row + c, left);
    vf y[4];
    for (int i = 0; i < 4; ++i) y[i] = fma(x[i], scale, shift);
    const vf m = max_or_nan(max_or_nan(y[0], y[1]), max_or_nan(y[2], y[3]));
    live = either(lt(vf{}, m), ne(m, m));
    vm seen = hit[0] = eq(y[0], m);
    for (int i = 1; i < 4; ++i) {
      const vm e = eq(y[i], m);
      hit[i] = andnot(e, seen);
      seen = either(seen, e);
    }
    vm later = ne(y[3], y[3]);
    hit[3] = either(hit[3], later);
    for (int i = 2; i >= 0; --i) {
      const vm nan = ne(y[i], y[i]);
      hit[i] = either(hit[i], andnot(nan, later));
      later = either(later, nan);
    }
  }
  RAMET_INLINE vf winner() const {
    return pick(hit[0], x[0], pick(hit[1], x[1], pick(hit[2], x[2], x[3])));
  }
};

// f(image, first row of windows, end) for every task.
template <class F> RAMET_INLINE void for_rows(int64_t n, int64_t h, int64_t bytes, const F& f) {
  const int64_t rows = batch_norm_relu_pool_rows(h), parts = rows > 0 ? ceil_div(h / 2, rows) : 0;
  const auto task = [&](int64_t t, int) {
    const int64_t first = t % parts * rows;
    f(t, t / parts, first, imin(h / 2, first + rows));
  };
  if (bytes >= parallel_grain()) return parallel_tasks(n * parts, task);
  for (int64_t t = 0; t < n * parts; ++t) task(t, 0);
}

// Sums of the routed gradient and of its products with x - mean, of one part: out[0..c) and
// out[c..2c).
void sums_of(const BatchNormReluPoolBackwardArgs& a, const float* scale, const float* shift,
             int64_t n, int64_t first, int64_t end, float* out) {
  const int64_t oh = a.h / 2, ow = a.w / 2, row = a.w * a.c;
  for (int64_t c = 0; c < a.c; c += VL) {
    const int64_t left = a.c - c;
    const vf sc = get(scale + c, left), sh = get(shift + c, left), mean = get(a.mean + c, left);
    vf sum{}, dot{};
    for (int64_t i = first; i < end; ++i) {
      const float* p = a.x + (n * a.h + 2 * i) * row + c;
      const float* g = a.dy + (n * oh + i) * ow * a.c + c;
      vf line_sum{}, line_dot{};
      for (int64_t j = 0; j < ow; ++j, p += 2 * a.c, g += a.c) {
        const Window w(p, row, a.c, sc, sh, left);
        const vf v = keep(w.live, get(g, left));
        line_sum += v;
        line_dot = fma(v, w.winner() - mean, line_dot);
      }
      sum += line_sum, dot += line_dot;
    }
    put(out + c, sum, left), put(out + a.c + c, dot, left);
  }
}

// dx = a * routed dy + b * (x - mean) + k, for rows of windows (and for inputs after the last
// window). Without kTraining b = k = 0, and x is not read, because it may be infinite.
template <bool kTraining>
void route(const BatchNormReluPoolBackwardArgs& s, const float* scale, const float* shift,
           const float* a, const float* b, const float* k, int64_t n, int64_t first, int64_t end) {
  const int64_t oh = s.h / 2, ow = s.w / 2, row = s.w * s.c, C = s.c;
  const auto plain = [&](int64_t offset, int64_t c, int64_t left) __attribute__((always_inline)) {
    put(s.dx + offset,
        kTraining ? fma(get(b + c, left), get(s.x + offset, left) - get(s.mean + c, left),
                        get(k + c, left))
                  : vf{},
        left);
  };
  for (int64_t i = first; i < end; ++i) {
    const int64_t base = (n * s.h + 2 * i) * row;
    const float* g = s.dy + (n * oh + i) * ow * C;
    for (int64_t j = 0; j < ow; ++j, g += C)
      for (int64_t c = 0; c < C; c += VL) {
        const int64_t left = C - c, at = base + 2 * j * C + c;
        const Window w(s.x + at, row, C, get(scale + c, left), get(shift + c, left), left);
        const vf v = keep(w.live, get(g + c, left)) * get(a + c, left), vb = get(b + c, left),
                 vk = get(k + c, left), mean = get(s.mean + c, left);
        const auto statistics = [&](vf x) __attribute__((always_inline)) {
          return kTraining ? fma(vb, x - mean, vk) : vf{};
        };
        put(s.dx + at, statistics(w.x[0]) + keep(w.hit[0], v), left);
        put(s.dx + at + C, statistics(w.x[1]) + keep(w.hit[1], v), left);
        put(s.dx + at + row, statistics(w.x[2]) + keep(w.hit[2], v), left);
        put(s.dx + at + row + C, statistics(w.x[3]) + keep(w.hit[3], v), left);
      }
    if (s.w % 2)
      for (int64_t r = 0; r < 2; ++r)
        for (int64_t c = 0; c < C; c += VL) plain(base + r * row + (s.w - 1) * C + c, c, C - c);
  }
  if (s.h % 2 && end == oh)
    for (int64_t j = 0; j < s.w; ++j)
      for (int64_t c = 0; c < C; c += VL) plain((n * s.h + s.h - 1) * row + j * C + c, c, C - c);
}

}  // namespace

void batch_norm_relu_pool_forward(const BatchNormReluPoolArgs& a) {
  auto* scale = static_cast<float*>(a.workspace);
  float* shift = scale + a.c + 16;
  affine_of(a, scale, shift);
  const int64_t oh = a.h / 2, ow = a.w / 2, row = a.w * a.c;
  for_rows(a.n, a.h, a.n * a.h * row * 4, [&](int64_t, int64_t n, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const float* p = a.x + (n * a.h + 2 * i) * row;
      float* o = a.y + (n * oh + i) * ow * a.c;
      for (int64_t j = 0; j < ow; ++j, p += 2 * a.c, o += a.c)
        for (int64_t c = 0; c < a.c; c += VL) {
          const int64_t left = a.c - c;
          const vf sc = get(scale + c, left), sh = get(shift + c, left);
          const float* q = p + c;
          const vf m = max_or_nan(
              max_or_nan(fma(get(q, left), sc, sh), fma(get(q + a.c, left), sc, sh)),
              max_or_nan(fma(get(q + row, left), sc, sh), fma(get(q + row + a.c, left), sc, sh)));
          put(o + c, max(vf{}, m), left);
        }
    }
  });
}

void batch_norm_relu_pool_backward(const BatchNormReluPoolBackwardArgs& s) {
  const int64_t step = s.c + 16, parts = batch_norm_relu_pool_parts(s.n, s.h);
  auto* scale = static_cast<float*>(s.workspace);
  float *shift = scale + step, *a = shift + step, *b = a + step, *k = b + step, *part = k + step;
  affine_of(s, scale, shift);
  const int64_t bytes = s.n * s.h * s.w * s.c * 4;
  const bool sums = s.dweight || s.dbias || s.training;
  if (sums)
    for_rows(s.n, s.h, bytes, [&](int64_t t, int64_t n, int64_t first, int64_t end) {
      sums_of(s, scale, shift, n, first, end, part + t * 2 * s.c);
    });
  const double total = static_cast<double>(s.n * s.h * s.w);
  for (int64_t j = 0; j < s.c; ++j) {
    double sum = 0, dot = 0;
    if (sums)
      for (int64_t t = 0; t < parts; ++t)
        sum += part[t * 2 * s.c + j], dot += part[t * 2 * s.c + s.c + j];
    const double inv = s.invstd[j], w = static_cast<double>(s.weight ? s.weight[j] : 1.0f) * inv;
    if (s.dweight) s.dweight[j] = static_cast<float>(dot * inv);
    if (s.dbias) s.dbias[j] = static_cast<float>(sum);
    a[j] = static_cast<float>(w);
    b[j] = s.training ? static_cast<float>(-w * inv * inv * dot / total) : 0.0f;
    k[j] = s.training ? static_cast<float>(-w * sum / total) : 0.0f;
  }
  if (!s.dx) return;
  for_rows(s.n, s.h, 2 * bytes, [&](int64_t, int64_t n, int64_t first, int64_t end) {
    s.training ? route<true>(s, scale, shift, a, b, k, n, first, end)
               : route<false>(s, scale, shift, a, b, k, n, first, end);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
