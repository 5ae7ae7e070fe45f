// Sixteen logical lanes of float, double or int64 for reductions and row kernels.
//
// A sum is defined over a fixed number of lanes and folded as a fixed tree, for any width of a
// register. So v3 and v4 give the same bits. The partial group at the end of a row runs the same
// code on a padded register. So an element's result does not depend on its position.
#pragma once
#include "kernels/simd/shuffle.h"
#include "kernels/simd/vmath.h"
#include "kernels/util.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {

template <class T> struct LaneVec { typedef T type __attribute__((vector_size(VL * 4))); };
template <> struct LaneVec<float> { using type = vf; };

template <class T> struct Lanes {
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
/// Writes past the caches; p is 64-byte aligned. `stream_fence` must follow before another thread
/// reads.
RAMET_INLINE void lstream(float* p, const Lanes<float>& a) {
  for (int e = 0; e < Lanes<float>::kParts; ++e) stream(p + e * VL, a.v[e]);
}
RAMET_INLINE void lstream(double* p, const Lanes<double>& a) { lstore(p, a); }

template <class T> RAMET_INLINE Lanes<T> lset(T x) {
  Lanes<T> r;
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH r.v[e] = set1(x);
  } else {
    RAMET_EACH r.v[e] = x - typename Lanes<T>::Vec{};
  }
  return r;
}
template <class T> RAMET_INLINE Lanes<T> operator+(Lanes<T> a, const Lanes<T>& b) {
  RAMET_EACH a.v[e] += b.v[e];
  return a;
}
template <class T> RAMET_INLINE Lanes<T> operator-(Lanes<T> a, const Lanes<T>& b) {
  RAMET_EACH a.v[e] -= b.v[e];
  return a;
}
template <class T> RAMET_INLINE Lanes<T> operator*(Lanes<T> a, const Lanes<T>& b) {
  RAMET_EACH a.v[e] *= b.v[e];
  return a;
}
template <class T> RAMET_INLINE Lanes<T> operator/(Lanes<T> a, const Lanes<T>& b) {
  RAMET_EACH a.v[e] /= b.v[e];
  return a;
}
/// a * b + c: one rounding for float (from v3 on), two for double in every variant.
template <class T> RAMET_INLINE Lanes<T> lfma(Lanes<T> a, const Lanes<T>& b, const Lanes<T>& c) {
  if constexpr (sizeof(T) == 4) {
    RAMET_EACH a.v[e] = fma(a.v[e], b.v[e], c.v[e]);
  } else {
    RAMET_EACH a.v[e] = a.v[e] * b.v[e] + c.v[e];
  }
  return a;
}
/// The larger one; the second if either is NaN.
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
  } else {  // double: clears the sign bit, keeps NaN
    typedef int64_t Bits __attribute__((vector_size(VL * 4)));
    RAMET_EACH a.v[e] = (typename Lanes<T>::Vec)((Bits)a.v[e] & (INT64_MAX - Bits{}));
  }
  return a;
}
/// 1 where x is not 0 (NaN gives 1), else 0.
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
RAMET_INLINE Lanes<float> llog(Lanes<float> a) {
  for (int e = 0; e < Lanes<float>::kParts; ++e) a.v[e] = vlog(a.v[e]);
  return a;
}
RAMET_INLINE Lanes<double> llog(Lanes<double> a) {
  double t[16];
  lstore(t, a);
  for (double& x : t) x = __builtin_log(x);
  return lload(t);
}
RAMET_INLINE float log_of(float x) {
  float t[VL];
  store(t, vlog(set1(x)));
  return t[0];
}
RAMET_INLINE double log_of(double x) { return __builtin_log(x); }

constexpr float kLaneIndex[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
/// The first n of 16 elements (n < 16), followed by `fill`.
template <class T> RAMET_INLINE Lanes<T> lload_n(const T* p, int64_t n, T fill) {
  if constexpr (sizeof(T) == 4) {
    Lanes<T> r;
    const vf limit = set1(static_cast<float>(n)), other = set1(fill);
    RAMET_EACH {
      const int64_t left = n - e * VL;
      r.v[e] = left <= 0 ? other
                         : pick(lt(load(kLaneIndex + e * VL), limit),
                                loadn(p + e * VL, static_cast<long>(left)), other);
    }
    return r;
  } else {
    T t[16];
    for (int i = 0; i < 16; ++i) t[i] = fill;
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return lload(t);
  }
}
/// The first n of 16 lanes (n < 16), followed by 0.
template <class T> RAMET_INLINE Lanes<T> lfirst(Lanes<T> a, int64_t n) {
  if constexpr (sizeof(T) == 4) {
    const vf limit = set1(static_cast<float>(n));
    RAMET_EACH a.v[e] = keep(lt(load(kLaneIndex + e * VL), limit), a.v[e]);
    return a;
  } else {
    T t[16];
    lstore(t, a);
    for (int i = 0; i < 16; ++i) t[i] = i < n ? t[i] : T(0);
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

// How two lanes are joined. Written once for whole Lanes, for plain vectors of the compiler and for
// numbers.
struct JoinAdd {
  template <class V> RAMET_INLINE V operator()(const V& a, const V& b) const { return a + b; }
};
struct JoinMax {  // the second if either is NaN
  template <class V> RAMET_INLINE V operator()(const V& a, const V& b) const {
    return a > b ? a : b;
  }
  template <class T> RAMET_INLINE Lanes<T> operator()(const Lanes<T>& a, const Lanes<T>& b) const {
    return lmax(a, b);
  }
};

/// Folds one register into one number: lane i with lane i + n/2. It halves down to 128 bits first,
/// because wide permutations are slow.
template <class T, class V, class Op> RAMET_INLINE T lfold_register(const V& v, Op op) {
  constexpr int n = static_cast<int>(sizeof(V) / sizeof(T));
  if constexpr (sizeof(V) > 16) {
    typedef T Half __attribute__((vector_size(sizeof(V) / 2)));
    Half low, high;
    if constexpr (n == 16) {
      low = RAMET_SHUFFLE(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
      high = RAMET_SHUFFLE(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    } else if constexpr (n == 8) {
      low = RAMET_SHUFFLE(v, v, 0, 1, 2, 3);
      high = RAMET_SHUFFLE(v, v, 4, 5, 6, 7);
    } else {
      low = RAMET_SHUFFLE(v, v, 0, 1);
      high = RAMET_SHUFFLE(v, v, 2, 3);
    }
    return lfold_register<T>(op(low, high), op);
  } else if constexpr (n == 4) {
    const V two = op(v, V(RAMET_SHUFFLE(v, v, 2, 3, 2, 3)));
    return op(two, V(RAMET_SHUFFLE(two, two, 1, 1, 1, 1)))[0];
  } else {
    return op(v, V(RAMET_SHUFFLE(v, v, 1, 1)))[0];
  }
}
/// 16 lanes to one, always as the same tree: lane i with lane i + 8, then + 4, + 2, + 1.
template <class T, class Op> RAMET_INLINE T lfold(Lanes<T> a, Op op) {
#pragma GCC unroll 4
  for (int h = Lanes<T>::kParts / 2; h; h /= 2) {
    Lanes<T> b = a;
#pragma GCC unroll 8
    for (int i = 0; i < h; ++i) b.v[i] = a.v[i + h];
    a = op(a, b);
  }
  typedef T Plain __attribute__((vector_size(VL * 4)));
  return lfold_register<T>(Plain(a.v[0]), op);
}
template <class T> using Accumulators = Lanes<T>[kAccumulators<T>];
template <class T, class Op> RAMET_INLINE T lfold_all(const Accumulators<T>& s, Op op) {
  if constexpr (kAccumulators<T> == 4) return lfold<T>(op(op(s[0], s[1]), op(s[2], s[3])), op);
  else return lfold<T>(op(s[0], s[1]), op);
}
template <class T> RAMET_INLINE T lfold_add(const Accumulators<T>& s) {
  return lfold_all<T>(s, JoinAdd());
}
template <class T> RAMET_INLINE T lfold_max(const Accumulators<T>& s) {
  return lfold_all<T>(s, JoinMax());
}
template <class T> RAMET_INLINE void lfill(Accumulators<T>& s, T x) {
  for (int u = 0; u < kAccumulators<T>; ++u) s[u] = lset(x);
}

/// body(i, accumulator) for every whole group of 16 in a row of n; tail(i, count) for the rest.
template <class T, class Body, class Tail>
RAMET_INLINE void sweep(int64_t n, Body body, Tail tail) {
  constexpr int A = kAccumulators<T>;
  int64_t i = 0;
  for (; i + 16 * A <= n; i += 16 * A) {
#pragma GCC unroll 4
    for (int u = 0; u < A; ++u) body(i + 16 * u, u);
  }
  for (; i + 16 <= n; i += 16) body(i, A - 1);
  if (i < n) tail(i, n - i);
}

/// f(task, slot) for task in [0, tasks). Runs on the pool if the work, in bytes touched, is large
/// enough.
template <class F> RAMET_INLINE void run_tasks(int64_t tasks, int64_t bytes, const F& f) {
  if (tasks > 1 && bytes >= parallel_grain()) return parallel_tasks(tasks, f);
  for (int64_t t = 0; t < tasks; ++t) f(t, 0);
}

}  // namespace ramet::kernels::RAMET_VARIANT
