// Variances, with means.
#pragma once
#include "kernels/reduce/reduce_kind.h"
#include "kernels/reduce/squares.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Chan, Golub, LeVeque (1979): parts with counts n, m, means a, b and squared deviations A, B about
// them are joined. With d = b - a the mean is a + d m/(n+m), the deviations A + B + d^2 nm/(n+m).
struct Moments {
  double n, mean, m2;
};
static_assert(sizeof(Moments) == kReducePartial);
RAMET_INLINE void join(Moments& a, double n, double mean, double m2) {
  if (a.n == 0) {  // without the difference of means: its square may be infinite
    a = {n, mean, m2};
    return;
  }
  const double d = mean - a.mean, share = n / (a.n + n);
  a.m2 += m2 + d * d * (a.n * share);
  a.mean += d * share;
  a.n += n;
}
template <class T> struct Variance {
  static constexpr int64_t kColumns = kTile;
  // Are the squared deviations too inaccurate in float?
  static RAMET_INLINE bool leaves(T m2) {
    return sizeof(T) < sizeof(double) && unit_of<T>(static_cast<double>(m2)) != 1;
  }
  static void init(void* states, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Moments*>(states)[i] = {0, 0, 0};
  }
  static void block(void* state, const void* data, int64_t n, int64_t, double) {
    constexpr int last = kAccumulators<T> - 1;
    const T* x = static_cast<const T*>(data);
    Accumulators<T> s, q;
    lfill<T>(s, 0);
    sweep<T>(
        n, [&](int64_t i, int u) { s[u] = s[u] + lload(x + i); },
        [&](int64_t i, int64_t left) { s[last] = s[last] + lload_n<T>(x + i, left, T(0)); });
    // The block is in the first-level cache. First come the deviations from its rounded mean. Then
    // they correct that mean.
    const T m = lfold_add<T>(s) / static_cast<T>(n);
    const Lanes<T> M = lset(m);
    lfill<T>(s, 0), lfill<T>(q, 0);
    sweep<T>(
        n,
        [&](int64_t i, int u) {
          const Lanes<T> d = lload(x + i) - M;
          s[u] = s[u] + d, q[u] = lfma(d, d, q[u]);
        },
        [&](int64_t i, int64_t left) {
          const Lanes<T> d = lload_n<T>(x + i, left, m) - M;
          s[last] = s[last] + d, q[last] = lfma(d, d, q[last]);
        });
    const T m2 = lfold_add<T>(q);
    if (leaves(m2)) {
      double t[kReduceBlock];
      for (int64_t i = 0; i < n; ++i) t[i] = static_cast<double>(x[i]);
      return Variance<double>::block(state, t, n, 0, 0);
    }
    const double d = lfold_add<T>(s), count = static_cast<double>(n);
    join(*static_cast<Moments*>(state), count, m + d / count, m2 - d * d / count);
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t,
                      double) {
    Moments* out = static_cast<Moments*>(states);
    const double n = static_cast<double>(count);
    for (int64_t c = 0; c < w; c += 16) {
      const int64_t left = imin(16, w - c);
      const auto row = [&](int64_t r) {
        const T* x = static_cast<const T*>(data[r]) + c;
        return left == 16 ? lload(x) : lload_n<T>(x, left, T(0));
      };
      Lanes<T> s = lset<T>(0), q = lset<T>(0);
      for (int64_t r = 0; r < count; ++r) s = s + row(r);
      const Lanes<T> M = s * lset<T>(T(1) / static_cast<T>(count));
      s = lset<T>(0);
      for (int64_t r = 0; r < count; ++r) {
        const Lanes<T> d = row(r) - M;
        s = s + d, q = lfma(d, d, q);
      }
      T m[16], d[16], m2[16];
      lstore(m, M), lstore(d, s), lstore(m2, q);
      bool wide = false;
      for (int64_t i = 0; i < left; ++i) wide = wide || leaves(m2[i]);
      if (wide) {
        double t[kReduceRows * 16];
        const void* rows[kReduceRows];
        for (int64_t r = 0; r < count; ++r) {
          for (int64_t i = 0; i < left; ++i)
            t[r * 16 + i] = static_cast<double>(static_cast<const T*>(data[r])[c + i]);
          rows[r] = t + r * 16;
        }
        Variance<double>::columns(out + c, rows, count, left, 0, 0);
        continue;
      }
      for (int64_t i = 0; i < left; ++i) {
        const double e = d[i];
        join(out[c + i], n, m[i] + e / n, m2[i] - e * e / n);
      }
    }
  }
  static void merge(void* into, const void* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const Moments& b = static_cast<const Moments*>(from)[i];
      join(static_cast<Moments*>(into)[i], b.n, b.mean, b.m2);
    }
  }
};

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
