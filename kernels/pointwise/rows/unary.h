// Rows of functions of one tensor (kernels/pointwise/row.h).
#pragma once
#include "kernels/pointwise/row.h"

namespace RAMET_ROWS {

using kernels::Integers, kernels::Saves;

/// -x; not of bool.
struct Neg : kernels::Row {
  static constexpr Integers kIntegers = Integers::kNumbers;
  RAMET_FORMULA value(V x) { return vmul(x, cst<V>(-1)); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T&) { return neg(g); }
};
/// |x|; not of bool. The derivative at 0 is 0.
struct Abs : kernels::Row {
  static constexpr Integers kIntegers = Integers::kNumbers;
  static constexpr Saves kSaves = Saves::kInput;
  RAMET_FORMULA value(V x) { return vabs(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return mul(g, sign(x)); }
};
/// -1, 0 or 1; 0 for NaN, as LibTorch.
struct Sign : kernels::Steps {
  RAMET_FORMULA value(V x) {
    return vsub(keep(lt(cst<V>(0), x), cst<V>(1)), keep(lt(x, cst<V>(0)), cst<V>(1)));
  }
};
/// x^2. It is a power, so it gives int64 for bool.
struct Square : kernels::Row {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  static constexpr Integers kIntegers = Integers::kCounted;
  static constexpr Saves kSaves = Saves::kInput;
  static constexpr const char* kNode = "PowBackward0";
  RAMET_FORMULA value(V x) { return vmul(x, x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return mul(mul(g, x), 2); }
};
/// x^3, for pow, which has the gradient.
struct Cube : kernels::Row {
  RAMET_FORMULA value(V x) { return vmul(vmul(x, x), x); }
};
/// e^x
struct Exp : kernels::FunctionByResult {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return vexp(x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) { return mul(g, y); }
};
/// 2^x
struct Exp2 : kernels::FunctionByResult {
  RAMET_FORMULA value(V x) { return vexp2(x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) {
    return mul(mul(g, y), 0.6931471805599453);
  }
};
/// e^x - 1, accurate near 0.
struct Expm1 : kernels::FunctionByResult {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return vexpm1(x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) { return mul(g, add(y, 1)); }
};
/// The natural logarithm: -inf at 0, NaN below.
struct Log : kernels::Function {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return vlog(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return div(g, x); }
};
/// log(1 + x), accurate near 0.
struct Log1P : kernels::Function {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return vlog1p(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return div(g, add(x, 1)); }
};
/// The logarithm to base 2.
struct Log2 : kernels::Function {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return vlog2(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) {
    return div(g, mul(x, 0.6931471805599453));
  }
};
/// The square root; NaN below 0.
struct Sqrt : kernels::FunctionByResult {
  RAMET_FORMULA value(V x) { return sqrt(x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) { return div(g, mul(y, 2)); }
};
/// 1 / sqrt(x)
struct Rsqrt : kernels::FunctionByResult {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return cst<V>(1) / sqrt(x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) {
    return mul(mul(g, mul(mul(y, y), y)), -0.5);
  }
};
/// 1 / x
struct Reciprocal : kernels::FunctionByResult {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return cst<V>(1) / x; }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) { return mul(neg(g), mul(y, y)); }
};
/// sin x
struct Sin : kernels::Function {
  RAMET_FORMULA value(V x) { return vsin(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return mul(g, cos(x)); }
};
/// cos x
struct Cos : kernels::Function {
  RAMET_FORMULA value(V x) { return vcos(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return mul(neg(g), sin(x)); }
};
/// The inverse of sin, in [-pi / 2, pi / 2]; NaN outside [-1, 1].
struct Asin : kernels::Function {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return vasin(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) {
    return mul(g, rsqrt(rsub(square(x), 1)));
  }
};
/// The inverse of cos, in [0, pi]; NaN outside [-1, 1].
struct Acos : kernels::Function {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return vacos(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T& y) {
    return Asin::gradient(neg(g), x, y);
  }
};
/// The inverse of tan, in [-pi / 2, pi / 2].
struct Atan : kernels::Function {
  RAMET_FORMULA value(V x) { return vatan(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return div(g, add(square(x), 1)); }
};
/// (e^x - e^-x) / 2
struct Sinh : kernels::Function {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return vsinh(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return mul(g, cosh(x)); }
};
/// (e^x + e^-x) / 2
struct Cosh : kernels::Function {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return vcosh(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return mul(g, sinh(x)); }
};
/// tanh x
struct Tanh : kernels::FunctionByResult {
  RAMET_FORMULA value(V x) { return vtanh(x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) { return tanh_backward(g, y); }
};
/// The inverse of sinh.
struct Asinh : kernels::Function {
  RAMET_FORMULA value(V x) { return vasinh(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) {
    return mul(g, rsqrt(add(square(x), 1)));
  }
};
/// The inverse of cosh, at least 0; NaN below 1.
struct Acosh : kernels::Function {
  RAMET_FORMULA value(V x) { return vacosh(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) {
    return mul(g, rsqrt(sub(square(x), 1)));
  }
};
/// The inverse of tanh: infinite at -1 and 1, NaN outside.
struct Atanh : kernels::Function {
  RAMET_FORMULA value(V x) { return cst<V>(0.5) * (vlog1p(x) - vlog1p(cst<V>(0) - x)); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return div(g, rsub(square(x), 1)); }
};
/// 1 / (1 + e^-x)
struct Sigmoid : kernels::FunctionByResult {
  RAMET_FORMULA value(V x) { return vsigmoid(x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) { return sigmoid_backward(g, y); }
};
/// The error function.
struct Erf : kernels::Function {
  RAMET_FORMULA value(V x) { return verf(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) {
    return mul(g, mul(exp(neg(mul(x, x))), 1.1283791670955126));  // 2 / sqrt(pi)
  }
};
/// 1 - erf(x), accurate where the result is small.
struct Erfc : kernels::Function {
  RAMET_FORMULA value(V x) { return verfc(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T& y) {
    return Erf::gradient(neg(g), x, y);
  }
};
/// ln |Gamma(x)|: +inf at the poles 0, -1, -2, ... and at both infinities. simd/gamma.h has its
/// precision and that of the next two.
struct Lgamma : kernels::Function {
  RAMET_FORMULA value(V x) { return vlgamma(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return mul(g, digamma(x)); }
};
/// psi(x), the derivative of ln Gamma(x): at 0 an infinity of the sign of -x, NaN at -1, -2, ...
struct Digamma : kernels::Function {
  RAMET_FORMULA value(V x) { return vdigamma(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) { return mul(g, polygamma(1, x)); }
};
/// The n-th derivative of psi(x): for n > 0 at the poles +inf (odd n) or -inf, NaN at -inf.
struct Polygamma : kernels::Function {
  RAMET_FORMULA value(V x, V n) { return vpolygamma(n, x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, int64_t n) {
    return mul(g, polygamma(n + (n < INT64_MAX), x));
  }
};
/// max(0, x); not of bool. A NaN stays. The derivative at 0 is 0.
struct Relu : kernels::Row {
  static constexpr Integers kIntegers = Integers::kNumbers;
  static constexpr Saves kSaves = Saves::kOutput;
  RAMET_FORMULA value(V x) { return max(cst<V>(0), x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) { return threshold_backward(g, y, 0); }
};
/// The largest whole number that is not above x. Integers stay as they are; not of bool.
struct Floor : kernels::Rounding {
  RAMET_FORMULA value(V x) { return vfloor(x); }
};
/// The smallest whole number that is not below x. Integers stay as they are; not of bool.
struct Ceil : kernels::Rounding {
  RAMET_FORMULA value(V x) { return vceil(x); }
};
/// The nearest whole number, of two the even one. Integers stay as they are; not of bool.
struct Round : kernels::Rounding {
  RAMET_FORMULA value(V x) { return vround(x); }
};
/// The nearest whole number in the direction of 0. Integers stay as they are; not of bool.
struct Trunc : kernels::Rounding {
  RAMET_FORMULA value(V x) { return vtrunc(x); }
};

/// x - trunc(x), with the sign of x; not of integers.
struct Frac : kernels::Row {
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnFloating;
  static constexpr Integers kIntegers = Integers::kRefused;
  RAMET_FORMULA value(V x) { return x - vtrunc(x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T&) { return g; }
};
/// A multiple of x: an angle in another unit.
struct Multiple : kernels::Function {
  static constexpr Saves kSaves = Saves::kNothing;
};
/// sin(pi x) / (pi x), 1 at 0. simd/special.h has its precision and that of its derivatives.
struct Sinc : kernels::Function {
  RAMET_FORMULA value(V x) { return vsinc(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, const T&) {
    return mul(g, sinc_derivative(1, x));
  }
};
/// Its n-th derivative, n = 1, 2, ...
struct SincDerivative : kernels::Function {
  RAMET_FORMULA value(V x, V n) { return vsinc_derivative(n, x); }
  RAMET_GRADIENT gradient(const T& g, const T& x, int64_t n) {
    return mul(g, sinc_derivative(n + 1, x));
  }
};
/// The inverse of erf: infinite at -1 and 1, NaN outside.
struct Erfinv : kernels::FunctionByResult {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x) { return verfinv(x); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T& y) {
    return mul(g, mul(exp(square(y)), 0.8862269254527580));  // sqrt(pi) / 2
  }
};
/// log(x / (1 - x)) for x between low and high; outside, x is clamped to them.
struct Logit : kernels::Function {
  RAMET_FORMULA value(V x, V low, V high) {
    const V one = cst<V>(1), z = pick(lt(x, low), low, pick(lt(high, x), high, x));
    // near 1/2, where it is 0, by the distance from 1/2, which is exact
    return pick(lt(z, cst<V>(0.25)), vlog(z / (one - z)), vlog1p((z + z - one) / (one - z)));
  }
  // 1 / x + 1 / (1 - x). Outside the bounds 0, or NaN without bounds. A NaN stays NaN.
  RAMET_GRADIENT gradient(const T& g, const T& x, double low, double high, bool bounded) {
    const T beyond = logical_or(lt(x, low), gt(x, high));
    // An infinity at one end must not reach other elements. A NaN is added, so that derivatives of
    // any order are NaN. The addition of 0 turns -0 into +0.
    const T z = bounded ? add(where(beyond, 0.5, x), 0)
                        : add(x, where(beyond, __builtin_nan(""), zeros_like(x)));
    const T slope = mul(g, add(reciprocal(z), reciprocal(rsub(z, 1))));
    return bounded ? where(beyond, 0, slope) : slope;
  }
};
/// x, but 0 for NaN, and `up` and `down` for the infinities.
struct NanToNum : kernels::Function {
  RAMET_FORMULA value(V x, V up, V down) {
    const V inf = cst<V>(__builtin_inf()), y = pick(eq(x, inf), up, x);
    return pick(ne(x, x), cst<V>(0), pick(eq(x, cst<V>(0) - inf), down, y));
  }
  RAMET_GRADIENT gradient(const T& g, const T& x) { return where(isfinite(x), g, 0); }
};
/// e with |x| = m 2^e, 1/2 <= m < 1; 0 of 0, infinities and NaN.
struct FrexpExponent : kernels::Function {
  RAMET_FORMULA value(V x) { return vexponent(x); }
};
/// Degrees in radians.
struct Deg2Rad : Multiple {
  RAMET_FORMULA value(V x) { return x * cst<V>(0.017453292519943295); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T&) { return mul(g, 0.017453292519943295); }
};
/// Radians in degrees.
struct Rad2Deg : Multiple {
  RAMET_FORMULA value(V x) { return x * cst<V>(57.29577951308232); }
  RAMET_GRADIENT gradient(const T& g, const T&, const T&) { return mul(g, 57.29577951308232); }
};

}  // namespace RAMET_ROWS
