// The functions that formulas may call for one double or int64. On the CPU they complement the
// vectors of smath.h, on a GPU the floats of gpu_math.h, which includes this. Double uses the C
// library. a * b + c has two roundings in every variant, so all variants agree.
#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/simd/inline.h"

#if !defined(RAMET_LIBM)
#define RAMET_LIBM(function) __builtin_##function
#endif

namespace ramet::kernels::RAMET_VARIANT {

/// A constant of compute type V.
template <class V> RAMET_INLINE V cst(double x) { return static_cast<V>(x); }

#define RAMET_SCALAR_OPS(T)                                                               \
  RAMET_INLINE bool lt(T a, T b) { return a < b; }                                        \
  RAMET_INLINE bool le(T a, T b) { return a <= b; }                                       \
  RAMET_INLINE bool eq(T a, T b) { return a == b; }                                       \
  RAMET_INLINE bool ne(T a, T b) { return a != b; }                                       \
  RAMET_INLINE T pick(bool m, T a, T b) { return m ? a : b; }                             \
  RAMET_INLINE T keep(bool m, T a) { return m ? a : T(0); }                               \
  RAMET_INLINE T max(T a, T b) { return a > b ? a : b; } /* b when unordered, as maxps */ \
  RAMET_INLINE T min(T a, T b) { return a < b ? a : b; }
RAMET_SCALAR_OPS(double)
RAMET_SCALAR_OPS(int64_t)
RAMET_INLINE bool both(bool a, bool b) { return a && b; }
RAMET_INLINE bool either(bool a, bool b) { return a || b; }

// Wrap-around arithmetic: signed overflow is undefined in C++, but defined in LibTorch.
RAMET_INLINE double vadd(double a, double b) { return a + b; }
RAMET_INLINE double vsub(double a, double b) { return a - b; }
RAMET_INLINE double vmul(double a, double b) { return a * b; }
RAMET_INLINE int64_t vadd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
RAMET_INLINE int64_t vsub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
RAMET_INLINE int64_t vmul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

RAMET_INLINE double fma(double a, double b, double c) { return a * b + c; }
RAMET_INLINE int64_t fma(int64_t a, int64_t b, int64_t c) { return vadd(vmul(a, b), c); }

RAMET_INLINE double vabs(double x) { return RAMET_LIBM(fabs)(x); }
RAMET_INLINE int64_t vabs(int64_t x) { return x < 0 ? vsub(int64_t{0}, x) : x; }
RAMET_INLINE double sqrt(double x) { return RAMET_LIBM(sqrt)(x); }
RAMET_INLINE double vround(double x) { return RAMET_LIBM(rint)(x); }
RAMET_INLINE double vfloor(double x) { return RAMET_LIBM(floor)(x); }
RAMET_INLINE double vceil(double x) { return RAMET_LIBM(ceil)(x); }
RAMET_INLINE double vtrunc(double x) { return RAMET_LIBM(trunc)(x); }
RAMET_INLINE double vexp(double x) { return RAMET_LIBM(exp)(x); }
RAMET_INLINE double vexpm1(double x) { return RAMET_LIBM(expm1)(x); }
RAMET_INLINE double vlog(double x) { return RAMET_LIBM(log)(x); }
RAMET_INLINE double vlog1p(double x) { return RAMET_LIBM(log1p)(x); }
RAMET_INLINE double vlog2(double x) { return RAMET_LIBM(log2)(x); }
RAMET_INLINE double vsin(double x) { return RAMET_LIBM(sin)(x); }
RAMET_INLINE double vcos(double x) { return RAMET_LIBM(cos)(x); }
RAMET_INLINE double vtanh(double x) { return RAMET_LIBM(tanh)(x); }
RAMET_INLINE double verf(double x) { return RAMET_LIBM(erf)(x); }
RAMET_INLINE double vsigmoid(double x) { return 1.0 / (1.0 + RAMET_LIBM(exp)(-x)); }

RAMET_INLINE double vpow(double a, double b) { return RAMET_LIBM(pow)(a, b); }
/// By squaring, wrapping. A negative exponent gives the truncated reciprocal, as in LibTorch.
RAMET_INLINE int64_t vpow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  int64_t r = 1;
  for (; b; b >>= 1, a = vmul(a, a))
    if (b & 1) r = vmul(r, a);
  return r;
}

/// C's fmod: the sign of a.
RAMET_INLINE double vfmod(double a, double b) { return RAMET_LIBM(fmod)(a, b); }
/// Integer division by zero gives 0 here; fronts have checked for zeros before.
RAMET_INLINE int64_t vfmod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
RAMET_INLINE int64_t quotient(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? vsub(int64_t{0}, a) : a / b;
}

}  // namespace ramet::kernels::RAMET_VARIANT
