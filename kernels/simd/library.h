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

/// 2^n for n in [-1022, 1023].
RAMET_INLINE double power_of_two(int64_t n) {
  const int64_t bits = (n + 1023) * (int64_t{1} << 52);
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/// 2^x, at most 0.7 units of the last place, 0.8 of a subnormal one. 2^x = 2^k e^t, k the nearest
/// whole number, t = hi + lo. The product of a float and ln 2's first 24 bits is exact. Taylor's
/// series, |t| < 0.347.
RAMET_INLINE double exp2_of(double x) {
  if (!(x > -1080 && x < 1025)) return x != x ? x : x > 0 ? __builtin_inf() : 0.0;
  constexpr double kLn2 = 0x1.62e43p-1, kRest = -0x1.05c610ca86c39p-29;
  const double k = vround(x), r = x - k, first = static_cast<float>(r);
  const double hi = first * kLn2, lo = (r - first) * kLn2 + r * kRest, t = hi + lo;
  const double q =
      horner(t, 1 / 87178291200.0, 1 / 6227020800.0, 1 / 479001600.0, 1 / 39916800.0, 1 / 3628800.0,
             1 / 362880.0, 1 / 40320.0, 1 / 5040.0, 1 / 720.0, 1 / 120.0, 1 / 24.0, 1 / 6.0, 0.5);
  const double sum = 1 + hi, e = sum + (((1 - sum) + hi) + (lo + t * t * q));
  // Two exact factors: one rounding, of a subnormal result, too.
  const auto n = static_cast<int64_t>(k), half = n / 2;
  return e * power_of_two(half) * power_of_two(n - half);
}
template <class V> RAMET_INLINE V vexp2(V x) {
  return in_double([](double v) { return exp2_of(v); }, x);
}

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
