// The logarithm of the gamma function and its derivatives, for one double. Scalar, for CPUs and
// GPUs, so that all variants and emulated GPUs give the same bits. Formulas: NIST's Digital Library
// of Mathematical Functions (DLMF), chapters 5 and 25. Floats are computed in double (in_double).
//
// Largest errors in double, in units of the last place (of floats: half a unit and a thousandth):
//   vlgamma     8, at 1.49; for x < -1/2, where it has zeros, 3 of |ln Gamma(1 - x)| + 2
//   vdigamma    5; for x < 0, where it has zeros, of |psi(1 - x)| + |pi cot(pi x)|
//   vpolygamma  6 + n / 3 for n up to 170; for x < 0 and even n, where it has zeros, of
//               n! / |distance to the next pole|^(n + 1); NaN where two such terms are too large
#pragma once
#include "kernels/simd/in_double.h"

namespace ramet::kernels::RAMET_VARIANT {

/// (acc x + c) x + ...: coefficients of the highest power first. `D` is double, or a vector of
/// them.
template <class D> RAMET_INLINE D horner(D, D acc) { return acc; }
template <class D, class... T> RAMET_INLINE D horner(D x, D acc, double c, T... rest) {
  return horner(x, acc * x + c, rest...);
}

/// sin(pi r) for |r| <= 1/2: DLMF 4.19.1. The toolkit's sine needs a stack, for angles of any size.
RAMET_INLINE double sin_pi(double r) {
  return r * horner(r * r, -1.0518471716932065e-11, 5.392664662608129e-10, -2.2948428997269873e-08,
                    7.952054001475513e-07, -2.1915353447830217e-05, 0.00046630280576761255,
                    -0.0073704309457143504, 0.08214588661112823, -0.5992645293207921,
                    2.5501640398773455, -5.16771278004997, 3.141592653589793);
}

/// ln Gamma(2 + z) for |z| <= 1/2: DLMF 5.7.3 for 1 + z, and 5.5.1. Accurate to the last places at
/// its zero.
RAMET_INLINE double lgamma_near_2(double z) {
  return z * horner(z, 5.731367241678862e-10, -1.1921401405860912e-09, 2.4836745438024785e-09,
                    -5.183475041970047e-09, 1.0838659214896955e-08, -2.2711094608943164e-08,
                    4.7698101693639804e-08, -1.0043224823968099e-07, 2.1207184805554665e-07,
                    -4.492469198764566e-07, 9.55141213040742e-07, -2.039215753801366e-06,
                    4.374866789907488e-06, -9.439488275268397e-06, 2.050721277567069e-05,
                    -4.492623673813314e-05, 9.945751278180853e-05, -0.00022315475845357939,
                    0.0005096695247430425, -0.001192753911703261, 0.0028905103307415234,
                    -0.007385551028673986, 0.020580808427784546, -0.0673523010531981,
                    0.3224670334241132, 0.42278433509846713);
}

/// ln |Gamma(x)|; +inf at the poles 0, -1, -2, ... and at both infinities.
RAMET_INLINE double lgamma_of(double x) {
  if (x != x) return x;
  double reflected = 0, sign = 1;
  if (x <= -0.5) {  // DLMF 5.5.3; the distance to the next pole is exact
    const double r = vabs(x - vround(x));
    if (!(r > 0)) return __builtin_inf();  // -inf, too
    reflected = vlog(3.141592653589793 / sin_pi(r));
    sign = -1;
    x = 1 - x;
  }
  double y;
  if (x >= 8) {  // Stirling's series, DLMF 5.11.1
    const double z = 1 / x;
    y = (x - 0.5) * (vlog(x) - 1) +
        (0.4189385332046728 +  // ln(2 pi) / 2 - 1 / 2
         z * horner(z * z, -0.029550653594771242, 0.00641025641025641, -0.0019175269175269176,
                    0.0008417508417508417, -0.0005952380952380953, 0.0007936507936507937,
                    -0.002777777777777778, 0.08333333333333333));
  } else {  // 5.5.1, down to the series or up
    double p = 1;
    while (x > 2.5) x -= 1, p *= x;
    double z = x - 2, log_ratio = vlog(p);
    if (x < 0.5) z = x, log_ratio = -vlog1p(z) - vlog(vabs(z));
    else if (x < 1.5) z = x - 1, log_ratio = -vlog1p(z);
    y = lgamma_near_2(z) + log_ratio;
  }
  return reflected + sign * y;
}

/// psi(x) = (ln Gamma)'(x) for |x - x0| <= 1/2, where x0 is its zero. The Taylor series of psi(x +
/// 1) (DLMF 5.15.1) minus 1 / x (5.5.2), with the factor x - x0. x0 has twice the digits.
RAMET_INLINE double digamma_near_zero(double x) {
  const double t = (x - 1.4616321449683622) - 9.549995429965697e-17;
  return t * (0.6841666717870696 / x +
              horner(t, 6.733788627268473e-11, -1.6577065288159067e-10, 4.08099443984292e-10,
                     -1.0047053252261424e-09, 2.473612210913063e-09, -6.090500964947203e-09,
                     1.499735247478639e-08, -3.6934557862649377e-08, 9.097694978453553e-08,
                     -2.241523416103308e-07, 5.524792977920754e-07, -1.3624395717959079e-06,
                     3.3623594458438883e-06, -8.306859775003972e-06, 2.055414125395239e-05,
                     -5.097190255450742e-05, 0.0001268167281965579, -0.0003170368244016943,
                     0.0007983109588290198, -0.0020324818225491725, 0.00526559187211755,
                     -0.014039965293930434, 0.03939709733579885, -0.12251567278862602,
                     0.49958821066342546));
}

/// psi(x): at 0 an infinity of the sign of -x, NaN at the other poles and at -inf.
RAMET_INLINE double digamma_of(double x) {
  if (x != x || x == 0) return x == 0 ? -1 / x : x;
  double y = 0;
  if (x < 0) {  // DLMF 5.5.4
    const double r = x - vround(x);
    if (!(vabs(r) > 0)) return r / r;
    y = -3.141592653589793 * sin_pi(0.5 - vabs(r)) / sin_pi(r);
    x = 1 - x;
  }
  if (x >= 10) {  // 5.11.2
    const double z = 1 / x;
    return y + (vlog(x) - z * (0.5 + z * horner(z * z, -0.4432598039215686, 0.08333333333333333,
                                                -0.021092796092796094, 0.007575757575757576,
                                                -0.004166666666666667, 0.003968253968253968,
                                                -0.008333333333333333, 0.08333333333333333)));
  }
  double steps = 0;  // 5.5.2
  if (x < 0.96) steps = -1 / x, x += 1;
  while (x > 1.96) x -= 1, steps += 1 / x;
  return y + (digamma_near_zero(x) + steps);
}

/// n! / a^e for e = n + 1 or n: in two halves, which overflow only if the whole does.
struct FactorialOverPower {
  double n, half, lower, upper;

  RAMET_INLINE explicit FactorialOverPower(double order)
      : n(order), half(vfloor((order + 1) / 2)), lower(1), upper(1) {
    if (n > kMost) return;
    for (double i = 2; i <= n; ++i) (i <= half ? lower : upper) *= i;
  }
  RAMET_INLINE double operator()(double a, double e) const {
    if (n > kMost) return vexp(lgamma_of(n + 1) - e * vlog(a));
    return lower * inverse_power(a, half) * (upper * inverse_power(a, e - half));
  }
  static RAMET_INLINE double inverse_power(double a, double e) {
    return e == 0 ? 1 : e == 1 ? 1 / a : e == 2 ? 1 / a / a : vpow(a, -e);
  }
  static constexpr double kMost = 170;  // 171! is no double
};

/// m (m + 1) q (c + (m + 2) (m + 3) q (...))
RAMET_INLINE double rising_series(double, double) { return 0; }
template <class... T> RAMET_INLINE double rising_series(double m, double q, double c, T... rest) {
  return m * (m + 1) * q * (c + rising_series(m + 2, q, rest...));
}

/// n! zeta(n + 1, a), Hurwitz's zeta function for a > 0 and whole n >= 1. First terms, then the sum
/// of Euler and Maclaurin (DLMF 25.11.28; coefficients B_2k / (2k)!).
RAMET_INLINE double hurwitz_zeta(const FactorialOverPower& term, double a) {
  const double n = term.n;
  double sum = 0;
  // Fewer than 60 terms; above 2^53 a + 1 is a.
  for (int k = 0; k < 1000 && a < n + 10; ++k, ++a) {
    const double next = term(a, n + 1);
    sum += next;
    // the rest is less than next (1 + a / n)
    if (next * (a + n) <= 1e-17 * n * sum || !(sum < __builtin_inf())) return sum;
  }
  const double q = 1 / (a * a);
  return sum + term(a, n) / n *
                   (1 + 0.5 * n / a +
                    rising_series(
                        n, q, 0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05,
                        -8.267195767195768e-07, 2.08767569878681e-08, -5.284190138687493e-10,
                        1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
                        -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19));
}

/// The n-th derivative of psi, n = 0, 1, 2, ...: (-1)^(n + 1) n! zeta(n + 1, x), DLMF 25.11.12 and
/// 5.15.1. For n > 0 at the poles +inf (odd n) or -inf, NaN at -inf.
RAMET_INLINE double polygamma_of(double n, double x) {
  if (n == 0) return digamma_of(x);
  if (x != x) return x;
  const double odd = n - 2 * vfloor(n / 2), sign = 2 * odd - 1;
  // Terms (x + k)^-(n + 1), k = 0, 1, ... For x < 0 they are on both sides of 0. So they are the
  // terms of two zetas, of the distance q to the next pole and of 1 - q, without those after x + k
  // = 1 - x (25.11.3).
  double from = x, other = 0;
  if (x <= 0) {
    const double r = x - vround(x), q = vabs(r);
    if (!(q > 0)) return r == 0 ? sign * __builtin_inf() : r;
    from = r > 0 ? q : 1 - q, other = r > 0 ? 1 - q : q;
  }
  const FactorialOverPower term(n);
  double sum = 0;
  for (int i = 0; i < (x > 0 ? 1 : 3); ++i) {
    const double part = hurwitz_zeta(term, i == 0 ? from : i == 1 ? other : 1 - x);
    sum += i == 0 ? part : i == 1 ? sign * part : -sign * part;
  }
  return sign * sum;
}

template <class V> RAMET_INLINE V vlgamma(V x) {
  return in_double([](double v) { return lgamma_of(v); }, x);
}
template <class V> RAMET_INLINE V vdigamma(V x) {
  return in_double([](double v) { return digamma_of(v); }, x);
}
template <class V> RAMET_INLINE V vpolygamma(V n, V x) {
  return in_double([](double m, double v) { return polygamma_of(m, v); }, n, x);
}

}  // namespace ramet::kernels::RAMET_VARIANT
