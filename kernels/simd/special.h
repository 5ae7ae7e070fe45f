// The inverse of the error function, and sin(pi x) / (pi x) with its derivatives, for one double.
// Scalar like simd/gamma.h, which has the polynomials that they use.
//
// Largest errors in double, in units of the last place (of floats: half a unit and a thousandth):
//   verfinv           6
//   vsinc             4; next to its zeros of 1 / |pi x|
//   vsinc_derivative  8 of the larger of the result and pi^n / (n + 1), the largest value there is,
//                     for n up to 4; 40 for n up to 10
//   vldexp            exact where the exponent is whole (rounded once where denormal); else 2
#pragma once
#include "kernels/simd/library.h"

namespace ramet::kernels::RAMET_VARIANT {

/// y with erf(y) = x: an infinity at -1 and 1, NaN outside. By the normal distribution's quantiles,
/// M. J. Wichura's algorithm AS 241 (Applied Statistics 37, 1988).
RAMET_INLINE double erfinv_of(double x) {
  const double tail = (1 - vabs(x)) / 2;  // of the part above |y|, on one side
  if (!(tail > 0)) return tail == 0 ? x * __builtin_inf() : (x - x) / (x - x);
  if (vabs(x) <= 0.85) {
    const double r = 0.180625 - x * x / 4;
    return x * 0.35355339059327373 *  // 1 / (2 sqrt 2)
           (horner(r, 2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987,
                   13731.693765509461, 1971.5909503065513, 133.14166789178438, 3.3871328727963665) /
            horner(r, 5226.495278852855, 28729.085735721943, 39307.89580009271, 21213.794301586597,
                   5394.196021424751, 687.1870074920579, 42.31333070160091, 1.0));
  }
  double r = sqrt(-vlog(tail)), y;
  if (r <= 5) {
    r -= 1.6;
    y = horner(r, 0.0007745450142783414, 0.022723844989269184, 0.2417807251774506,
               1.2704582524523684, 3.6478483247632045, 5.769497221460691, 4.630337846156546,
               1.4234371107496835) /
        horner(r, 1.0507500716444169e-09, 0.0005475938084995345, 0.015198666563616457,
               0.14810397642748008, 0.6897673349851, 1.6763848301838038, 2.053191626637759, 1.0);
  } else {
    r -= 5;
    y = horner(r, 2.0103343992922881e-07, 2.7115555687434876e-05, 0.0012426609473880784,
               0.026532189526576124, 0.29656057182850487, 1.7848265399172913, 5.463784911164114,
               6.657904643501103) /
        horner(r, 2.0442631033899397e-15, 1.421511758316446e-07, 1.8463183175100548e-05,
               0.0007868691311456133, 0.014875361290850615, 0.1369298809227358, 0.5998322065558879,
               1.0);
  }
  y *= 0.7071067811865476;
  return x < 0 ? -y : y;
}

/// sin(pi x + n pi / 2): the whole part of x is removed exactly. NaN for an infinity.
RAMET_INLINE double sin_pi_from(double x, double n) {
  const double whole = vround(x), r = x - whole, quarter = n - 4 * vfloor(n / 4);
  const double y = quarter == 0 || quarter == 2 ? sin_pi(r) : sin_pi(0.5 - vabs(r));
  const bool odd = whole - 2 * vfloor(whole / 2) != 0;
  return odd != (quarter >= 2) ? -y : y;
}
/// sin(pi x) / (pi x), 1 at 0 and 0 at other whole numbers, never -0; NaN at infinities.
RAMET_INLINE double sinc_of(double x) {
  return x == 0 ? 1 : sin_pi_from(x, 0) / (3.141592653589793 * x) + 0.0;
}
/// Its n-th derivative, n = 1, 2, ...: the integral of (pi t)^n cos(pi t x + n pi / 2) for t from 0
/// to 1. Near 0 by the cosine's series, farther away from the previous derivative.
RAMET_INLINE double sinc_derivative_of(double n, double x) {
  constexpr double kPi = 3.141592653589793;
  const double z = kPi * x;
  if (vabs(z) < 2 + n / 3) {
    double term = 1, sum = 0;  // z^j / j!; the sign changes with every second j
    for (double i = 1; i <= n; ++i) term *= kPi;
    const double odd = n - 2 * vfloor(n / 2), turns = vfloor((n + 1) / 2);
    if (odd != 0) term *= z;
    if (turns - 2 * vfloor(turns / 2) != 0) term = -term;
    double largest = 0;
    for (double j = odd; j < 200; j += 2) {
      const double part = term / (n + j + 1);
      sum += part;
      largest = max(largest, vabs(part));
      if (vabs(part) <= 1e-18 * largest) break;
      term *= -z * z / ((j + 1) * (j + 2));
    }
    return sum;
  }
  double y = sinc_of(x), power = 1 / kPi;
  for (double m = 1; m <= n; ++m) {
    power *= kPi;
    y = (power * sin_pi_from(x, m) - m * y) / x;
  }
  return y;
}

template <class V> RAMET_INLINE V verfinv(V x) {
  return in_double([](double v) { return erfinv_of(v); }, x);
}
template <class V> RAMET_INLINE V vsinc(V x) {
  return in_double([](double v) { return sinc_of(v); }, x);
}
template <class V> RAMET_INLINE V vsinc_derivative(V n, V x) {
  return in_double([](double m, double v) { return sinc_derivative_of(m, v); }, n, x);
}
/// a 2^b, without intermediate overflow or underflow.
template <class V> RAMET_INLINE V vldexp(V a, V b) {
  return in_double(
      [](double v, double w) {
        if (w - w != 0) return v * exp2_of(w);
        // v first moves away from the nearer end of the range. So the rest of the exponent does not
        // make it an infinity, and loses no bits as a denormal.
        const double whole = vfloor(w), away = vabs(v) < 1 ? 64 : -64;
        return RAMET_LIBM(ldexp)(v * (away > 0 ? 0x1p64 : 0x1p-64) * exp2_of(w - whole),
                                 static_cast<int>(min(max(whole, -5000.0), 5000.0) - away));
      },
      a, b);
}
/// e with |x| = m 2^e, 1/2 <= m < 1: 0 for 0, infinities and NaN.
template <class V> RAMET_INLINE V vexponent(V x) {
  return in_double([](double v) { return v == 0 || v - v != 0 ? 0.0 : RAMET_LIBM(logb)(v) + 1; },
                   x);
}

/// The largest whole number that divides the absolute values of both. 0 for two zeros; 2^63 wraps
/// around.
RAMET_INLINE uint64_t gcd_of(uint64_t a, uint64_t b) {
  while (b != 0) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
RAMET_INLINE int64_t vgcd(int64_t a, int64_t b) {
  return static_cast<int64_t>(
      gcd_of(static_cast<uint64_t>(vabs(a)), static_cast<uint64_t>(vabs(b))));
}
/// The smallest that both divide, 0 where one of them is 0; it wraps around.
RAMET_INLINE int64_t vlcm(int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(vabs(a)), y = static_cast<uint64_t>(vabs(b));
  const uint64_t g = gcd_of(x, y);
  return g == 0 ? 0 : static_cast<int64_t>(x / g * y);
}

}  // namespace ramet::kernels::RAMET_VARIANT
