// What the pointwise operations compute: a formula for each in long double (or exact integers),
// independent of the library. Tests of kernels, of fronts and the operation table compare with it.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace ramet::references {

using R = long double;
inline bool rounds_to_float = false;  // the references that need the rounded quotient ask
inline R rounded(R x) { return rounds_to_float ? static_cast<float>(x) : static_cast<double>(x); }

/// Floating-point values of integers and bool; their own type; not of bool; int64 of bool; none.
enum Integers : uint8_t { kFloats, kSame, kNotBool, kAtLeastInt64, kNone };

struct Reference {
  std::function<R(R a, R b, R c, R s, R t)> f;
  double ulps = 0;  // allowed error in units of the last place of the result
  // or in units of the last place of the largest operand (formulas with cancellation)
  double scaled = 0;
  double s = 1, t = 0;
  // 1 / (1 + infinity) is 0 where the exact value is denormal, as in LibTorch
  bool underflows = false;
  // Of a function of one tensor: the range that is tested, and what LibTorch gives for integers.
  double low = -2, high = 2;
  Integers integers = kFloats;
  bool flat = false;  // its derivative is 0 everywhere

  Reference on(double from, double to) && { return low = from, high = to, std::move(*this); }
  Reference of(Integers given) && { return integers = given, std::move(*this); }
  Reference steps() && { return flat = true, std::move(*this); }
};
inline R sigmoid_of(R x) { return 1 / (1 + std::exp(-x)); }
inline R phi(R x) { return std::exp(-x * x / 2) * 0.398942280401432677939946L; }
inline R cdf(R x) { return std::erfc(-x * 0.707106781186547524400844L) / 2; }
inline R gelu_u(R x) { return 0.797884560802865355879892L * (x + 0.044715L * x * x * x); }
inline R gelu_tanh_slope(R x) {
  const R th = std::tanh(gelu_u(x)),
          inner = 0.797884560802865355879892L * (1 + 3 * 0.044715L * x * x);
  return (1 + th) / 2 + x * (1 - th * th) * inner / 2;
}
inline R huber_of(R d, R bend, R limit) {
  return std::fabs(d) < bend ? d * d * limit / bend / 2 : (std::fabs(d) - bend / 2) * limit;
}
inline R huber_slope(R d, R bend, R limit) {
  return std::fabs(d) < bend ? d * limit / bend : std::isnan(d) ? d : std::copysign(limit, d);
}
inline R larger(R a, R b) { return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b; }
inline R smaller(R a, R b) { return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b; }
// log_base(base^a + base^b), where `scale` is log_base(e).
inline R logaddexp_of(R a, R b, R scale) {
  if (a == b) return a + 0.693147180559945309417232121458L * scale;
  return larger(a, b) + std::log1p(std::exp(-std::fabs(a - b) / scale)) * scale;
}
inline R python_mod(R a, R b) {
  const R m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
inline R python_floor_div(R a, R b) {
  if (b == 0) return a / b;
  if (std::isinf(b) && std::isfinite(a)) return a != 0 && (a < 0) != (b < 0) ? -1 : 0;
  if (std::isinf(a)) return NAN;
  return std::rint((a - python_mod(a, b)) / b);
}
// By Boost.Math (gamma_references.cc).
R lgamma_of(R x);
R digamma_of(R x);
R polygamma_of(R n, R x);
R erfinv_of(R x);
inline int64_t bits(R x) { return static_cast<int64_t>(x); }
// sin(pi x) and cos(pi x): periods and halves of them are left out exactly.
inline R sin_pi(R x) {
  x = std::remainder(x, R(2));
  return std::sin(3.14159265358979323846264338328L *
                  (std::fabs(x) > 0.5L ? std::copysign(1 - std::fabs(x), x) : x));
}
inline R cos_pi(R x) { return sin_pi(0.5L - std::fabs(std::remainder(x, R(2)))); }
inline R sinc_of(R x) { return x == 0 ? 1 : sin_pi(x) / (3.14159265358979323846264338328L * x); }
// The second derivative: of the quotient, next to 0 its series.
inline R sinc_bend(R x) {
  const R pi = 3.14159265358979323846264338328L;
  if (std::fabs(x) > 0.5L)
    return (-pi * sin_pi(x) - 2 * (cos_pi(x) - sinc_of(x)) / x) / x;
  R sum = 0, term = -pi * pi;
  for (int j = 0; j < 30; j += 2, term *= -pi * pi * x * x / (j * (j - 1))) sum += term / (j + 3);
  return sum;
}
inline R logit_of(R x) { return std::log1p((2 * x - 1) / (1 - x)); }
inline R ldexp_of(R a, R b) {
  if (b != std::rint(b) || std::isinf(b)) return a * std::exp2(b);
  return std::ldexp(a, static_cast<int>(std::fmax(std::fmin(b, R(20000)), R(-20000))));
}
inline R exponent_of(R x) {
  int e = 0;
  if (std::isfinite(x)) std::frexp(x, &e);
  return e;
}

/// By the name of the operation: its kernel's, or its function's where it has none.
inline const std::map<std::string, Reference>& references() {
#define F(value)                                 \
  [](R a, R b, R c, R s, R t) -> R {             \
    (void)a, (void)b, (void)c, (void)s, (void)t; \
    return static_cast<R>(value);                \
  }
  // clang-format off
  static const std::map<std::string, Reference> table = {
      {"add", {F(a + s * b), 0.5, 1.0, -1.5}},
      {"sub", {F(a - s * b), 0.5, 1.0, 0.75}},
      {"mul", {F(a * b), 0.5}},
      {"div", {F(a / b), 0.5}},
      {"div_trunc", {F(std::trunc(rounded(a / b))), 0.5}},
      {"div_floor", {F(python_floor_div(a, b)), 2.5}},
      {"fmod", {F(std::fmod(a, b)), 0}},
      {"remainder", {F(python_mod(a, b)), 0.5, 0.5}},
      {"pow", {F(std::pow(a, b)), 1}},
      {"maximum", {F(larger(a, b))}},
      {"minimum", {F(smaller(a, b))}},
      {"atan2", {F(std::atan2(a, b)), 1}},
      {"hypot", {F(std::hypot(a, b)), 1}},
      {"copysign", {F(std::copysign(a, b))}},
      {"logaddexp", {F(logaddexp_of(a, b, 1)), 2, 1}},
      {"logaddexp2", {F(logaddexp_of(a, b, 1.44269504088896340735992468100L)), 3, 1}},
      {"fmax", {F(std::fmax(a, b))}},
      {"fmin", {F(std::fmin(a, b))}},
      {"xlogy", {F(std::isnan(b) ? b : a == 0 ? 0 : a * std::log(b)), 2}},
      {"heaviside", {F(a == 0 ? b : a > 0)}},
      {"ldexp", {F(ldexp_of(a, b)), 2}},
      {"squared_difference", {F((a - b) * (a - b)), 2.5}},
      {"scaled_product", {F(a * (b * s)), 0.5, 0, 2}},
      {"neg", Reference{F(-a)}.of(kNotBool)},
      {"abs", Reference{F(std::fabs(a))}.of(kNotBool)},
      {"sign", Reference{F((a > 0) - (a < 0))}.of(kSame).steps()},
      {"square", Reference{F(a * a), 0.5}.of(kAtLeastInt64)},
      {"cube", {F(a * a * a), 1.5}},
      {"exp", {F(std::exp(a)), 1.25}},
      {"exp2", {F(std::exp2(a)), 1}},
      {"expm1", {F(std::expm1(a)), 2}},
      {"log", Reference{F(std::log(a)), 1.2}.on(0.3, 4)},
      {"log1p", Reference{F(std::log1p(a)), 2}.on(-0.7, 4)},
      {"log2", Reference{F(std::log2(a)), 2}.on(0.3, 4)},
      {"log10", Reference{F(std::log10(a)), 2}.on(0.3, 4)},
      {"sqrt", Reference{F(std::sqrt(a)), 0.5}.on(0.3, 4)},
      {"rsqrt", Reference{F(1 / std::sqrt(a)), 1.5}.on(0.3, 4)},
      {"reciprocal", Reference{F(1 / a), 0.5}.on(0.3, 4)},
      {"sin", Reference{F(std::sin(a)), 1.5}.on(-4, 4)},
      {"cos", Reference{F(std::cos(a)), 1.5}.on(-4, 4)},
      {"tan", Reference{F(std::tan(a)), 4}.on(-1.2, 1.2)},
      {"asin", Reference{F(std::asin(a)), 1}.on(-0.9, 0.9)},
      {"acos", Reference{F(std::acos(a)), 1}.on(-0.9, 0.9)},
      {"atan", Reference{F(std::atan(a)), 1}.on(-4, 4)},
      {"sinh", Reference{F(std::sinh(a)), 2}.on(-3, 3)},
      {"cosh", Reference{F(std::cosh(a)), 2}.on(-3, 3)},
      {"tanh", Reference{F(std::tanh(a)), 1.5}.on(-3, 3)},
      {"asinh", Reference{F(std::asinh(a)), 2}.on(-4, 4)},
      {"acosh", Reference{F(std::acosh(a)), 2}.on(1.2, 4)},
      {"atanh", Reference{F(std::atanh(a)), 3}.on(-0.9, 0.9)},
      {"sigmoid", Reference{F(sigmoid_of(a)), 2.5, 0, 1, 0, true}.on(-4, 4)},
      {"erf", {F(std::erf(a)), 1.25}},
      {"erfc", {F(std::erfc(a)), 2}},
      {"lgamma", Reference{F(lgamma_of(a)), 3, 1}.on(0.5, 4)},
      {"digamma", Reference{F(digamma_of(a)), 2, 1}.on(0.5, 4)},
      {"polygamma", {F(polygamma_of(s, a)), 3, 0, 3}},
      {"sinc", Reference{F(sinc_of(a)), 2, 1}.on(-3, 3)},
      {"sinc_derivative", {F(sinc_bend(a)), 3, 6, 2}},
      {"erfinv", Reference{F(erfinv_of(a)), 2}.on(-0.9, 0.9)},
      {"logit", {F(logit_of(a < s ? s : a > t ? t : a)), 3, 0, 0.125, 0.75}},
      {"nan_to_num", {F(std::isnan(a) ? 0 : std::isinf(a) ? (a > 0 ? s : t) : a), 0, 0, 2.5, -7}},
      {"frexp_exponent", {F(exponent_of(a))}},
      {"floor", Reference{F(std::floor(a))}.on(-3.4, 3.4).of(kNotBool).steps()},
      {"ceil", Reference{F(std::ceil(a))}.on(-3.4, 3.4).of(kNotBool).steps()},
      {"round", Reference{F(std::nearbyint(a))}.on(-3.4, 3.4).of(kNotBool).steps()},
      {"trunc", Reference{F(std::trunc(a))}.on(-3.4, 3.4).of(kNotBool).steps()},
      {"deg2rad", Reference{F(a * 0.0174532925199432957692369L), 1}.on(-400, 400)},
      {"rad2deg", Reference{F(a * 57.2957795130823208767981L), 1}.on(-7, 7)},
      {"frac", Reference{F(a - std::trunc(a))}.on(-3.4, 3.4).of(kNone)},
      {"relu", Reference{F(std::isnan(a) ? a : a > 0 ? a : 0)}.of(kNotBool)},
      {"leaky_relu", {F(a > 0 ? a : a * s), 0.5, 0, 0.25}},
      {"gelu", {F(a == -INFINITY ? NAN : a * cdf(a)), 2.5, 1}},
      {"gelu_tanh", {F(a == -INFINITY ? NAN : a * (1 + std::tanh(gelu_u(a))) / 2), 4, 2}},
      {"softplus", {F(a * s > t ? a : std::log1p(std::exp(a * s)) / s), 3, 0, 2, 20}},
      {"silu", {F(a * sigmoid_of(a)), 3, 0, 1, 0, true}},
      {"tanh_backward", {F(a * (1 - b * b)), 3, 1}},
      {"sigmoid_backward", {F(a * (1 - b) * b), 3}},
      {"threshold_backward", {F(b <= s ? 0 : a), 0, 0, 0.5}},
      {"leaky_relu_backward", {F(b > 0 ? a : a * s), 0.5, 0, 0.25}},
      {"gelu_backward", {F(std::isinf(b) ? NAN : a * (cdf(b) + b * phi(b))), 6, 3}},
      {"gelu_tanh_backward", {F(std::isinf(b) ? NAN : a * gelu_tanh_slope(b)), 8, 40}},
      {"softplus_backward", {F(b * s > t ? a : a * sigmoid_of(b * s)), 3, 0, 2, 20, true}},
      {"silu_backward", {F(a * (sigmoid_of(b) * (1 + b * (1 - sigmoid_of(b))))), 8, 4, 1, 0, true}},
      {"clamp", {F(smaller(larger(a, s), t)), 0, 0, -0.5, 1.25}},
      {"clamp_backward", {F(b > s && b < t ? a : 0), 0, 0, -0.5, 1.25}},
      {"lerp", {F(std::fabs(c) < 0.5L ? a + c * (b - a) : b - (b - a) * (1 - c)), 2, 4}},
      {"addcmul", {F(a + s * b * c), 1, 1, 0.5}},
      {"addcdiv", {F(a + s * b / c), 2, 1, 0.5}},
      {"mse_backward", {F(s * (b - c) * a), 2, 0, 0.5}},
      {"glu", {F(a * sigmoid_of(b)), 3, 0, 1, 0, true}},
      {"glu_backward", {F(a * b * (sigmoid_of(c) * sigmoid_of(-c))), 6, 0, 1, 0, true}},
      {"huber", {F(huber_of(a - b, s, t)), 4, 0, 0.75, 1.5}},
      {"huber_backward", {F(a * huber_slope(b - c, s, t)), 3, 0, 0.75, 1.5}},
      {"bce_logits", {F((1 - b) * a + std::log1p(std::exp(-std::fabs(a))) + (a < 0 ? -a : 0)), 2, 8}},
      {"bce_logits_backward", {F(a * (sigmoid_of(b) - c)), 3, 8, 1, 0, true}},
      {"where", {F(a != 0 ? b : c)}},
      {"clamp_tensor", {F(smaller(larger(a, b), c))}},
      {"eq", {F(a == b)}},
      {"ne", {F(a != b)}},
      {"lt", {F(a < b)}},
      {"le", {F(a <= b)}},
      {"gt", {F(a > b)}},
      {"ge", {F(a >= b)}},
      {"logical_and", {F(a != 0 && b != 0)}},
      {"logical_or", {F(a != 0 || b != 0)}},
      {"logical_xor", {F((a != 0) != (b != 0))}},
      {"logical_not", Reference{F(a == 0)}.of(kSame)},
      {"isnan", Reference{F(std::isnan(a))}.of(kSame)},
      {"isinf", Reference{F(std::isinf(a))}.of(kSame)},
      {"isfinite", Reference{F(std::isfinite(a))}.of(kSame)},
      {"isposinf", Reference{F(a == INFINITY)}.of(kSame)},
      {"isneginf", Reference{F(a == -INFINITY)}.of(kSame)},
      {"signbit", Reference{F(std::signbit(a))}.of(kSame)},
      // Integers only: values below 2^53 are exact here.
      {"bitwise_and", {F(bits(a) & bits(b))}},
      {"bitwise_or", {F(bits(a) | bits(b))}},
      {"bitwise_xor", {F(bits(a) ^ bits(b))}},
      {"gcd", {F(std::gcd(bits(a), bits(b)))}},
      {"lcm", {F(std::lcm(bits(a), bits(b)))}},
      {"bitwise_left_shift", {F(b < 0 || b > 63 ? 0 : std::ldexp(a, static_cast<int>(b)))}},
      {"bitwise_right_shift",
       {F(b < 0 || b > 63 ? -(a < 0) : std::floor(std::ldexp(a, -static_cast<int>(b))))}},
      {"bitwise_not", Reference{F(~bits(a))}.on(-5, 5).of(kSame)},
  };
// clang-format on
#undef F
  return table;
}
inline const Reference& reference(const std::string& name) { return references().at(name); }

}  // namespace ramet::references
