// Sixteen logical lanes of float, double or int64 for reductions and row kernels.
//
// A sum is defined over a fixed number of lanes and folded as a fixed tree, whatever the width of a register: v3 and v4 give
// the same bits. The partial group at the end of a row runs the same code on a padded register, so an element's result does
// not depend on where it stands.
#pragma once
#include "kernels/util.h"
#include "kernels/vmath.h"
#include "runtime/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {

template <class T> struct LaneVec { typedef T type __attribute__((vector_size(VL * 4))); };
template <> struct LaneVec<float> { using type = vf; };

template <class T>
struct Lanes {
  using Vec = typename LaneVec<T>::type;
  static constexpr int kWidth = VL * 4 / static_cast<int>(sizeof(T)), kParts = 16 / kWidth;
  Vec v[kParts];
};

/// Independent accumulators of a sweep: 64 logical lanes of float, 32 of the 8-byte types.
template <class T> inline constexpr int kAccumulators = sizeof(T) == 4 ? 4 : 2;

#define RAMET_EACH _Pragma("GCC unroll 8") for (int e = 0; e < Lanes<T>::kParts; ++e)

template <class T> RAMET_INLINE Lanes<T> lload(const T* p) {
  Lanes<T> r;
  RAMET_EACH __builtin_memcpy(&r.v[e], p + e * Lanes<T>::kWidth, sizeof r.v[e]);
  return r;
}
template <class T> RAMET_INLINE void lstore(T* p, const Lanes<T>& a) {
  RAMET_EACH __builtin_memcpy(p + e * Lanes<T>::kWidth, &a.v[e], sizeof a.v[e]);
}
/// Past the caches; p is 64-byte aligned. `stream_fence` must follow before another thread may look.
RAMET_INLINE void lstream(float* p, const Lanes<float>& a) {
  for (int e = 0; e < Lanes<float>::kParts; ++e) stream(p + e * VL, a.v[e]);
}
RAMET_INLINE void lstream(double* p, const Lanes<double>& a) { lstore(p, a); }
RAMET_INLINE void stream_fence() { __builtin_ia32_sfence(); }

template <class T> RAMET_INLINE Lanes<T> lset(T x) {
  Lanes<T> r;
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH r.v[e] = set1(x);
  } else {
    RAMET_EACH r.v[e] = x - typename Lanes<T>::Vec{};
  }
  return r;
}
template <class T> RAMET_INLINE Lanes<T> operator+(Lanes<T> a, const Lanes<T>& b) { RAMET_EACH a.v[e] += b.v[e]; return a; }
template <class T> RAMET_INLINE Lanes<T> operator-(Lanes<T> a, const Lanes<T>& b) { RAMET_EACH a.v[e] -= b.v[e]; return a; }
template <class T> RAMET_INLINE Lanes<T> operator*(Lanes<T> a, const Lanes<T>& b) { RAMET_EACH a.v[e] *= b.v[e]; return a; }
/// a * b + c: one rounding for float (from v3 on), two for double in every variant.
template <class T> RAMET_INLINE Lanes<T> lfma(Lanes<T> a, const Lanes<T>& b, const Lanes<T>& c) {
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH a.v[e] = fma(a.v[e], b.v[e], c.v[e]);
  } else {
    RAMET_EACH a.v[e] = a.v[e] * b.v[e] + c.v[e];
  }
  return a;
}
/// The larger one; the second where either is NaN.
template <class T> RAMET_INLINE Lanes<T> lmax(Lanes<T> a, const Lanes<T>& b) {
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH a.v[e] = max(a.v[e], b.v[e]);
  } else {
    RAMET_EACH a.v[e] = a.v[e] > b.v[e] ? a.v[e] : b.v[e];
  }
  return a;
}
template <class T> RAMET_INLINE Lanes<T> lmin(Lanes<T> a, const Lanes<T>& b) {
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH a.v[e] = min(a.v[e], b.v[e]);
  } else {
    RAMET_EACH a.v[e] = a.v[e] < b.v[e] ? a.v[e] : b.v[e];
  }
  return a;
}
/// x where x is a NaN, else y.
template <class T> RAMET_INLINE Lanes<T> lnan_or(const Lanes<T>& x, Lanes<T> y) {
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH y.v[e] = pick(eq(x.v[e], x.v[e]), y.v[e], x.v[e]);
  } else {
    RAMET_EACH y.v[e] = x.v[e] == x.v[e] ? y.v[e] : x.v[e];
  }
  return y;
}
template <class T> RAMET_INLINE Lanes<T> labs(Lanes<T> a) {
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH a.v[e] = vabs(a.v[e]);
  } else {  // of a double: the sign bit cleared, NaN kept
    typedef int64_t Bits __attribute__((vector_size(VL * 4)));
    RAMET_EACH a.v[e] = (typename Lanes<T>::Vec)((Bits)a.v[e] & (INT64_MAX - Bits{}));
  }
  return a;
}
/// 1 where x is not 0 (a NaN is not), else 0.
template <class T> RAMET_INLINE Lanes<T> lnonzero(Lanes<T> a) {
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH a.v[e] = pick(eq(a.v[e], vf{}), vf{}, set1(1.0f));
  } else {
    typename Lanes<T>::Vec zero{}, one = T(1) - zero;
    RAMET_EACH a.v[e] = a.v[e] == zero ? zero : one;
  }
  return a;
}
RAMET_INLINE Lanes<float> lexp(Lanes<float> a) {
  for (int e = 0; e < Lanes<float>::kParts; ++e) a.v[e] = vexp(a.v[e]);
  return a;
}
RAMET_INLINE Lanes<double> lexp(Lanes<double> a) {
  double t[16];
  lstore(t, a);
  for (int i = 0; i < 16; ++i) t[i] = __builtin_exp(t[i]);
  return lload(t);
}
RAMET_INLINE float log_of(float x) {
  float t[VL];
  store(t, vlog(set1(x)));
  return t[0];
}
RAMET_INLINE double log_of(double x) { return __builtin_log(x); }

/// The first n of 16 elements (n < 16), `fill` behind them.
template <class T> RAMET_INLINE Lanes<T> lload_n(const T* p, int64_t n, T fill) {
  if constexpr (sizeof(T) == 4) {
    static constexpr float kIndex[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Lanes<T> r;
    const vf limit = set1(static_cast<float>(n)), other = set1(fill);
    RAMET_EACH {
      const int64_t left = n - e * VL;
      r.v[e] = left <= 0 ? other : pick(lt(load(kIndex + e * VL), limit), loadn(p + e * VL, static_cast<long>(left)), other);
    }
    return r;
  } else {
    T t[16];
    for (int i = 0; i < 16; ++i) t[i] = fill;
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return lload(t);
  }
}
/// Stores the first n of 16 elements (n < 16).
template <class T> RAMET_INLINE void lstore_n(T* p, const Lanes<T>& a, int64_t n) {
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH if (n > e * VL) storen(p + e * VL, a.v[e], static_cast<long>(n - e * VL));
  } else {
    T t[16];
    lstore(t, a);
    for (int i = 0; i < n; ++i) p[i] = t[i];
  }
}

/// 16 lanes to one, always as the same tree.
template <class T, class F> RAMET_INLINE T lfold(const Lanes<T>& a, F f) {
  T t[16];
  lstore(t, a);
  for (int h = 8; h; h /= 2)
    for (int i = 0; i < h; ++i) t[i] = f(t[i], t[i + h]);
  return t[0];
}
template <class T> using Accumulators = Lanes<T>[kAccumulators<T>];
template <class T, class F, class G> RAMET_INLINE T lfold_all(const Accumulators<T>& s, F lanes, G scalars) {
  if constexpr (kAccumulators<T> == 4) return lfold(lanes(lanes(s[0], s[1]), lanes(s[2], s[3])), scalars);
  else return lfold(lanes(s[0], s[1]), scalars);
}
template <class T> RAMET_INLINE T lfold_add(const Accumulators<T>& s) {
  return lfold_all<T>(s, [](const Lanes<T>& a, const Lanes<T>& b) { return a + b; }, [](T a, T b) { return static_cast<T>(a + b); });
}
template <class T> RAMET_INLINE void lfill(Accumulators<T>& s, T x) {
  for (int u = 0; u < kAccumulators<T>; ++u) s[u] = lset(x);
}

/// body(i, accumulator) for every whole group of 16 in a row of n; the rest goes through tail(i, count).
template <class T, class Body, class Tail> RAMET_INLINE void sweep(int64_t n, Body body, Tail tail) {
  constexpr int A = kAccumulators<T>;
  int64_t i = 0;
  for (; i + 16 * A <= n; i += 16 * A) {
#pragma GCC unroll 4
    for (int u = 0; u < A; ++u) body(i + 16 * u, u);
  }
  for (; i + 16 <= n; i += 16) body(i, A - 1);
  if (i < n) tail(i, n - i);
}

/// f(task, slot) for task in [0, tasks): on the pool where the work, in bytes touched, is worth it.
template <class F> RAMET_INLINE void run_tasks(int64_t tasks, int64_t bytes, const F& f) {
  if (tasks > 1 && bytes >= parallel_grain()) return parallel_tasks(tasks, f);
  for (int64_t t = 0; t < tasks; ++t) f(t, 0);
}

}  // namespace ramet::kernels::RAMET_VARIANT
