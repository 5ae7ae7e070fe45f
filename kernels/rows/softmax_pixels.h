// Softmax along an axis that is not the last. Works on vectors of neighbours, one step of the axis
// after the other. For softmax.cc only.
#pragma once
#include "kernels/rows/pixels.h"
#include "kernels/rows/rows.h"
#include "kernels/rows/softmax.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// f(offset of the strip's first element, its width, its vectors) for every strip of a block [outer,
// cols, inner].
template <class F>
void by_strips(int64_t rows, int64_t cols, int64_t inner, ScalarType t, const F& f) {
  const int64_t strips = ceil_div(inner, kPixels), outer = rows / inner;
  run_tasks(outer * strips, rows * cols * bytes_of(t), [&](int64_t task, int) {
    const int64_t at = task % strips * kPixels, width = imin(kPixels, inner - at);
    f(task / strips * cols * inner + at, width, static_cast<int>(ceil_div(width, 16)));
  });
}

template <class T, bool kLog> void forward_strips(const SoftmaxArgs& a) {
  by_strips(a.rows, a.cols, a.inner, a.dtype, [&](int64_t first, int64_t width, int parts) {
    const T* x = static_cast<const T*>(a.x) + first;
    T* y = static_cast<T*>(a.y) + first;
    Lanes<T> m[kBeside], s[kBeside] = {};
    for (int u = 0; u < parts; ++u) m[u] = lset(T(-__builtin_inf()));
    for (int64_t c = 0; c < a.cols; ++c)
      for (int u = 0; u < parts; ++u) m[u] = lmax(m[u], pixels(x + c * a.inner, u, width));
    // The maximum may miss a NaN; the sum never does.
    add_up(s, parts, a.cols, [&](int64_t c, int u, const Lanes<T>& sum) {
      const Lanes<T> e = lexp(pixels(x + c * a.inner, u, width) - m[u]);
      if (!kLog) put_pixels(y + c * a.inner, u, width, e);
      return sum + e;
    });
    for (int u = 0; u < parts; ++u) s[u] = kLog ? llog(s[u]) : lset<T>(1) / s[u];
    for (int64_t c = 0; c < a.cols; ++c)
      for (int u = 0; u < parts; ++u)
        put_pixels(y + c * a.inner, u, width,
                   kLog ? pixels(x + c * a.inner, u, width) - m[u] - s[u]
                        : pixels(y + c * a.inner, u, width) * s[u]);
  });
}

template <class T, bool kLog> void backward_strips(const SoftmaxBackwardArgs& a) {
  by_strips(a.rows, a.cols, a.inner, a.dtype, [&](int64_t first, int64_t width, int parts) {
    const T *y = static_cast<const T*>(a.y) + first, *dy = static_cast<const T*>(a.dy) + first;
    T* dx = static_cast<T*>(a.dx) + first;
    const auto at = [&](const T* p, int64_t c, int u) { return pixels(p + c * a.inner, u, width); };
    Lanes<T> s[kBeside] = {};
    add_up(s, parts, a.cols, [&](int64_t c, int u, const Lanes<T>& sum) {
      return kLog ? sum + at(dy, c, u) : lfma(at(y, c, u), at(dy, c, u), sum);
    });
    for (int64_t c = 0; c < a.cols; ++c)
      for (int u = 0; u < parts; ++u) {
        const Lanes<T> v = at(y, c, u), g = at(dy, c, u);
        put_pixels(dx + c * a.inner, u, width, kLog ? g - lexp(v) * s[u] : v * (g - s[u]));
      }
  });
}

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
