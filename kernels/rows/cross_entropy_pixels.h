// Cross entropy of images in which the class is an outer dimension of the pixels. Works on vectors
// of pixels, class after class. For cross_entropy.cc only.
#pragma once
#include "kernels/rows/cross_entropy.h"
#include "kernels/rows/pixels.h"
#include "kernels/rows/rows.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T> constexpr T kLowest = T(-__builtin_inf());

struct Partial {
  double loss, weight;
};

static_assert(kLossGroup == kPixels, "a group is what a sweep takes");

// The position of class 0 of row r; the next classes follow at distances of `inner` elements.
RAMET_INLINE int64_t first_class(int64_t r, int64_t cols, int64_t inner) {
  return r / inner * cols * inner + r % inner;
}
// f(first row, rows) for the rows first .. end, which are at most a group: pieces of one image.
template <class F>
RAMET_INLINE void by_image(int64_t first, int64_t end, int64_t inner, const F& f) {
  for (int64_t r = first, next; r < end; r = next)
    next = imin(end, (r / inner + 1) * inner), f(r, next - r);
}
// The two statistics of a row for each of n pixels; with_weights: also sum_c w[c] (x[c] - max).
template <class T> struct PixelStatistics {
  T top[kLossGroup], log_sum[kLossGroup], weighted[kLossGroup];

  // known: the classes are log-probabilities, relative to 0.
  void find(const T* x, const T* w, int64_t n, int64_t cols, int64_t inner, bool known,
            bool with_weights) {
    Lanes<T> m[kBeside], s[kBeside], sums[kBeside];
    const int parts = static_cast<int>(ceil_div(n, 16));
    for (int u = 0; u < parts; ++u)
      m[u] = lset(known ? T(0) : kLowest<T>), s[u] = sums[u] = lset<T>(0);
    const auto at = [&](int64_t c, int u) { return pixels(x + c * inner, u, n); };
    if (!known) {
      for (int64_t c = 0; c < cols; ++c)
        for (int u = 0; u < parts; ++u) m[u] = lmax(m[u], at(c, u));
      add_up(s, parts, cols,
             [&](int64_t c, int u, const Lanes<T>& sum) { return sum + lexp(at(c, u) - m[u]); });
    }
    if (with_weights)
      add_up(sums, parts, cols, [&](int64_t c, int u, const Lanes<T>& sum) {
        return lfma(at(c, u) - m[u], lset(w ? w[c] : T(1)), sum);
      });
    for (int u = 0; u < parts; ++u) {
      lstore(top + u * 16, m[u]), lstore(weighted + u * 16, sums[u]);
      lstore(log_sum + u * 16, known ? lset<T>(0) : llog(s[u]));
    }
  }
};

// The contributions of a group's rows to the loss, and their statistics.
template <class T>
Partial forward_pixels(const CrossEntropyArgs& a, const T* weight, double weight_sum,
                       bool whole_rows, int64_t first, int64_t end) {
  const double sharp = 1 - a.smoothing, smooth = a.smoothing / static_cast<double>(a.cols);
  Partial sum{0, 0};
  by_image(first, end, a.inner, [&](int64_t r, int64_t n) {
    const T* x = static_cast<const T*>(a.x) + first_class(r, a.cols, a.inner);
    PixelStatistics<T> of;
    if (whole_rows) of.find(x, weight, n, a.cols, a.inner, a.log_probs, a.smoothing != 0);
    for (int64_t i = 0; i < n; ++i) {
      if (!a.log_probs) {
        T* st = static_cast<T*>(a.statistics) + 2 * (r + i);
        st[0] = of.top[i], st[1] = of.log_sum[i];
      }
      const int64_t t = a.target[r + i];
      double loss = 0;
      if (t != a.ignore_index) {
        const double w = weight ? static_cast<double>(weight[t]) : 1.0,
                     xt = static_cast<double>(x[t * a.inner + i]);
        if (whole_rows) {
          const auto log_sum = static_cast<double>(of.log_sum[i]);
          loss = sharp * w * (log_sum - (xt - static_cast<double>(of.top[i])));
          if (a.smoothing != 0)
            loss += smooth * (log_sum * weight_sum - static_cast<double>(of.weighted[i]));
        } else {
          loss = -w * xt;
        }
        sum.weight += w;
      }
      sum.loss += loss;
      if (a.reduction == LossReduction::kNone)
        static_cast<T*>(a.loss)[r + i] = static_cast<T>(loss);
    }
  });
  return sum;
}

// The gradient of the n pixels from row r on, of one image.
template <class T, class Gradient, class Own>
void backward_pixels(const CrossEntropyBackwardArgs& a, const T* w, double smooth_all,
                     double smooth, int64_t r, int64_t n, const Gradient& gradient_of,
                     const Own& own_of) {
  // For every pixel. A pixel that does not count is cleared at the end.
  T top[kLossGroup] = {}, log_sum[kLossGroup] = {}, scale[kLossGroup] = {}, each[kLossGroup] = {};
  const auto* statistics = static_cast<const T*>(a.statistics) + (a.log_probs ? 0 : 2 * r);
  for (int64_t i = 0; i < n; ++i) {
    if (!a.log_probs) top[i] = statistics[2 * i], log_sum[i] = statistics[2 * i + 1];
    const int64_t t = a.target[r + i];
    if (t == a.ignore_index) continue;
    const double g = gradient_of(r + i);
    scale[i] = static_cast<T>(g * (own_of(t) + smooth_all)), each[i] = static_cast<T>(-g * smooth);
  }
  const int64_t first = first_class(r, a.cols, a.inner);
  const T* x = static_cast<const T*>(a.x) + first;
  T* dx = static_cast<T*>(a.dx) + first;
  for (int64_t c = 0; c < a.cols; ++c) {
    const Lanes<T> wc = lset(w ? w[c] : T(1));
    for (int u = 0; u * 16 < n; ++u) {
      const int64_t i = u * 16;
      const Lanes<T> p =
          a.log_probs ? lset<T>(0)
                      : lexp(pixels(x + c * a.inner, u, n) - lload(top + i) - lload(log_sum + i));
      Lanes<T> v = p * lload(scale + i);
      if (smooth != 0) v = lfma(wc, lload(each + i), v);
      put_pixels(dx + c * a.inner, u, n, v);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t t = a.target[r + i];
    if (t == a.ignore_index) {
      for (int64_t c = 0; c < a.cols; ++c) dx[c * a.inner + i] = 0;
    } else {
      T& own = dx[t * a.inner + i];
      own = static_cast<T>(static_cast<double>(own) - gradient_of(r + i) * own_of(t));
    }
  }
}

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
