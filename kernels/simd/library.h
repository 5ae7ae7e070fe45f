// Functions of the C library (on a GPU, CUDA's functions of the same name), for doubles. Floats are
// computed in double (in_double): the error is at most half a unit of their last place and a
// thousandth. exp2 and hypot are our own: the library's depend on the processor (tools/libm.txt).
#pragma once
#include "kernels/simd/gamma.h"

namespace ramet::kernels::RAMET_VARIANT {

#define RAMET_FROM_LIBRARY(name)                                       \
  template <class V> RAMET_INLINE V v##name(V x) {                     \
    return in_double([](double v) { return RAMET_LIBM(name)(v); }, x); \
  }
RAMET_FROM_LIBRARY(asin)
RAMET_FROM_LIBRARY(acos)
RAMET_FROM_LIBRARY(atan)
RAMET_FROM_LIBRARY(sinh)
RAMET_FROM_LIBRARY(cosh)
RAMET_FROM_LIBRARY(asinh)
RAMET_FROM_LIBRARY(acosh)
RAMET_FROM_LIBRARY(erfc)
#undef RAMET_FROM_LIBRARY

#define RAMET_FROM_LIBRARY(name)                                                       \
  template <class V> RAMET_INLINE V v##name(V x, V y) {                                \
    return in_double([](double v, double w) { return RAMET_LIBM(name)(v, w); }, x, y); \
  }
RAMET_FROM_LIBRARY(atan2)
RAMET_FROM_LIBRARY(copysign)
#undef RAMET_FROM_LIBRARY

/// A whole number less than 1 away from x, for |x| < 2^51. The processor's rounding mode says
/// which.
template <class D> RAMET_INLINE D near_whole(D x) { return (x + 0x1.8p52) - 0x1.8p52; }

/// 2^n for whole numbers n in [-1022, 1023].
RAMET_INLINE double power_of_two(double n) {
  const double last_bits = n + (0x1.8p52 + 1023);  // n + 1023 is its lowest bits
  int64_t bits;
  memcpy(&bits, &last_bits, sizeof bits);
  bits = static_cast<int64_t>(static_cast<uint64_t>(bits) << 52);
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
RAMET_INLINE double to_float_and_back(double x) { return static_cast<float>(x); }
#if !defined(RAMET_GPU_MATH)
/// A register of doubles: half as many as `vf` has floats.
typedef double VecD __attribute__((vector_size(sizeof(vf))));
RAMET_INLINE VecD power_of_two(VecD n) {
  typedef int64_t VecI __attribute__((vector_size(sizeof(VecD))));
  return reinterpret_cast<VecD>(reinterpret_cast<VecI>(n + (0x1.8p52 + 1023)) << 52);
}
RAMET_INLINE VecD to_float_and_back(VecD x) {
  typedef float Floats __attribute__((vector_size(sizeof(VecD) / 2)));
  return __builtin_convertvector(__builtin_convertvector(x, Floats), VecD);
}
#endif

/// 2^x, at most 0.7 units of the last place, 0.8 of a subnormal one, 1.3 where the processor does
/// not round to nearest. 2^x = 2^k e^t, k the nearest whole number, t = hi + lo. The product of a
/// float and ln 2's first 24 bits is exact. Taylor's series, |t| < 0.347. `D` is double or VecD.
template <class D> RAMET_INLINE D exp2_of(D x) {
  constexpr double kLn2 = 0x1.62e43p-1, kRest = -0x1.05c610ca86c39p-29;
  const D zero{};
  // Beyond these the result is 0 or infinite, in every rounding mode.
  const D low = x > -1080.0 ? x : zero, in = low < 1025.0 ? low : zero;
  const D near = near_whole(in), off = in - near;
  const D down = off < -0.5 ? near - 1.0 : near, k = off > 0.5 ? near + 1.0 : down;
  const D r = in - k, first = to_float_and_back(r);
  const D hi = first * kLn2, lo = (r - first) * kLn2 + r * kRest, t = hi + lo;
  const D q = horner(t, zero + 1 / 87178291200.0, 1 / 6227020800.0, 1 / 479001600.0, 1 / 39916800.0,
                     1 / 3628800.0, 1 / 362880.0, 1 / 40320.0, 1 / 5040.0, 1 / 720.0, 1 / 120.0,
                     1 / 24.0, 1 / 6.0, 0.5);
  const D sum = 1 + hi, e = sum + (((1 - sum) + hi) + (lo + t * t * q));
  // Two exact factors: one rounding, of a subnormal result, too.
  const D half = near_whole(k * 0.5);
  const D y = e * power_of_two(half) * power_of_two(k - half);
  const D below = x < 1025.0 ? y : zero + __builtin_inf(), result = x > -1080.0 ? below : zero;
  return x == x ? result : x;
}
template <class V> RAMET_INLINE V vexp2(V x) {
  return in_double([](double v) { return exp2_of(v); }, x);
}
#if !defined(RAMET_GPU_MATH)
RAMET_INLINE vf vexp2(vf x) {
  typedef float Floats __attribute__((vector_size(sizeof(vf) / 2)));
  Floats half[2];
  memcpy(half, &x, sizeof x);
  for (Floats& part : half)
    part = __builtin_convertvector(exp2_of(__builtin_convertvector(part, VecD)), Floats);
  memcpy(&x, half, sizeof x);
  return x;
}
#endif

/// a * a = result + rest, exactly.
RAMET_INLINE double exact_square(double a, double& rest) {
  const double far = a * 134217729, high = far - (far - a), low = a - high, s = a * a;
  rest = ((high * high - s) + 2 * high * low) + low * low;
  return s;
}

/// The root of x^2 + y^2, at most 0.51 units of the last place. Exact squares show how far the root
/// of the rounded sum is off. Infinite where one of them is, even if the other is a NaN.
RAMET_INLINE double hypot_of(double x, double y) {
  const double u = vabs(x), v = vabs(y);
  if (u == __builtin_inf() || v == __builtin_inf()) return __builtin_inf();
  double a = u < v ? v : u, b = u < v ? u : v;
  if (u != u || v != v || b == 0) return u + v;
  const double scale = a > 0x1p500 ? 0x1p-600 : a < 0x1p-400 ? 0x1p600 : 1;
  a *= scale, b *= scale;
  double rest_a, rest_b, rest_h;
  const double aa = exact_square(a, rest_a), bb = exact_square(b, rest_b), sum = aa + bb;
  const double h = sqrt(sum), hh = exact_square(h, rest_h);
  const double off = ((sum - hh) - rest_h) + (((aa - sum) + bb) + (rest_a + rest_b));
  return (h + off / (2 * h)) / scale;
}
template <class V> RAMET_INLINE V vhypot(V x, V y) {
  return in_double([](double v, double w) { return hypot_of(v, w); }, x, y);
}

}  // namespace ramet::kernels::RAMET_VARIANT
