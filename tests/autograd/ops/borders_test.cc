// Where a number is compared with a tensor of fewer bits, right at the border. The number is
// rounded to the tensor's dtype first, as LibTorch does. And functions at the ends of their dtypes.
#include <gtest/gtest.h>

#include <array>
#include <cfloat>
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

/// Neighbours of k as a value of the dtype, and multiples of it, with both signs. For
/// floating-point dtypes also 0, 1, infinities and NaN, for the others also -3 to 5.
Tensor around(double k, ScalarType dtype) {
  const double v = tensor(k, kDouble).to(dtype).item<double>();
  const double step = dtype == kFloat  ? std::ldexp(1, -23)
                      : dtype == kHalf ? std::ldexp(1, -10)
                                       : std::ldexp(1, -7);
  std::vector<double> all;
  const bool whole = !is_floating(dtype);
  const double e = whole ? 0.5 : step;
  for (double f : {1 - 2 * e, 1 - e, 1 - e / 2, 1., 1 + e, 1 + 2 * e, 2., 0.5, 3., 0.25})
    for (double s : {1., -1.}) all.push_back(whole ? std::trunc(s * v * f) : s * v * f);
  if (whole)
    for (int i = -3; i < 6; ++i) all.push_back(i);
  else all.insert(all.end(), {0, 1, INFINITY, -INFINITY, NAN});
  return tensor(ArrayRef<double>(all), kDouble).to(dtype);
}

std::string bits(const Tensor& t) {
  std::string text;
  for (const double v : values(t.to(kDouble))) text += v != 0 ? '1' : '0';
  return text;
}

TEST(Borders, AsInLibTorch) {  // texts made by LibTorch 2.15
  using Call = Tensor (*)(const Tensor& x, double k, const Tensor& same);
  const auto slope = [](const Tensor& x, double k, const Tensor&) {
    const Tensor leaf = x.clone().requires_grad_();
    leaf.clamp(k, 2 * k).sum().backward();
    return leaf.grad();
  };
#define F(value)                                                                        \
  [](const Tensor& x, [[maybe_unused]] double k, [[maybe_unused]] const Tensor& same) { \
    return value;                                                                       \
  }
  const struct {
    const char* name;
    Call f;
    const char* dtypes;       // float32, half, bfloat16
    const char* expected[3];  // for 0.1, 0.3 and 0.7, or one text for all of them
    const char* whole = "";   // int32 and 1.1
  } rows[] = {
      {"==", F(eq(x, k)), "fhb", {"0000001000000000000000000"}},
      {"<", F(lt(x, k)), "fhb", {"1111110101010111011110010"}},
      {"<=", F(le(x, k)), "fhb", {"1111111101010111011110010"}},
      {">=", F(ge(x, k)), "fhb", {"0000001010101000100001100"}},
      {"== 0-dim", F(eq(x, tensor(k, kDouble))), "fhb", {"0000001000000000000000000"}},
      {"clamp gradient",
       slope,
       "fhb",
       {"0000000010100000000000000", "0000000010100000000000000", "0000000010100000000001000"}},
      {"close to 0",
       F(isclose(x, zeros_like(x), 0, k)),
       "fhb",
       {"1111111100000011001110000"},
       "11111111110000110011001110000"},
      {"close to others",
       F(isclose(x, x.flip(0), k, 0)),
       "fhb",
       {"0000000000001000000000000", "0000000000001000000000000", "0000000110011011000000000"},
       "11111101000110111111010100000"},
      {"close to k",
       F(isclose(x, same, k, k, true)),
       "fhb",
       {"1010101010101010001010000", "1010101010101010001110000", "1010101010101011001111000"},
       "11111111111010111011001111100"},
      {"close by default",
       F(isclose(x, same)),
       "f",
       {"1010101010100000000000000"},
       "00000010100000000000000010000"},
      {"close by default", F(isclose(x, same)), "hb", {"0000001000000000000000000"}},
      {"close to 2k",
       F(isclose(x, full_like(x, 2 * k), 0.5, 0)),
       "fb",
       {"0000001010101000000000000", "0000001010101000100000000", "0000001010101000100001000"},
       "00000010101010001000000011100"},
      {"close to 2k",
       F(isclose(x, full_like(x, 2 * k), 0.5, 0)),
       "h",
       {"0000001010101000100000000", "0000001010101000000000000", "0000001010101000000001000"}},
      {"k close",
       F(isclose(same, x, k, 3 * k)),
       "fhb",
       {"1111111111111111101110000", "1111111111111111101111000", "1111111111111111111111000"},
       "11111111111111111111111111111"},
  };
#undef F
  for (const auto& row : rows) {
    const auto check = [&](ScalarType t, double k, const char* expected) {
      const Tensor x = around(k, t);
      EXPECT_EQ(bits(row.f(x, k, full_like(x, k))), expected)
          << name_of(t) << ' ' << k << ' ' << row.name;
    };
    for (const char* t = row.dtypes; *t; ++t)
      for (size_t i = 0; i < 3; ++i)
        check(*t == 'f'   ? kFloat
              : *t == 'h' ? kHalf
                          : kBFloat16,
              std::array{0.1, 0.3, 0.7}[i], row.expected[row.expected[i] ? i : 0]);
    if (*row.whole) check(kInt, 1.1, row.whole);
  }
}

TEST(Borders, ATenthIsWithinATenth) {
  const Tensor x = tensor({0.1f});
  EXPECT_TRUE(allclose(x, zeros({1}), 0, 0.1));
  EXPECT_TRUE(x.allclose(zeros({1}), 0, 0.1));
  EXPECT_FALSE(allclose(x.to(kDouble), zeros({1}, kDouble), 0, 0.1));  // 0.1f is a little more
  EXPECT_FALSE(allclose(tensor({std::nextafter(0.1f, 1.f)}), zeros({1}), 0, 0.1));
  EXPECT_TRUE(isclose(tensor({INFINITY}), tensor({INFINITY})).item<bool>());
  EXPECT_FALSE(isclose(tensor({INFINITY}), tensor({-INFINITY}), 0, 1e9).item<bool>());
  EXPECT_FALSE(isclose(tensor({NAN}), tensor({NAN})).item<bool>());
  EXPECT_TRUE(isclose(tensor({NAN}), tensor({NAN}), 0, 0, true).item<bool>());
  EXPECT_TRUE(isclose(tensor({true}), tensor({false}), 0, 1).item<bool>());
  // As float32, where they are one number.
  EXPECT_TRUE(isclose(tensor({16777217}), tensor({16777216}), 0, 0.5).item<bool>());
  EXPECT_FALSE(isclose(tensor({16777217}), tensor({16777216}), 0, 0).item<bool>());
}

// |a - b| against atol + |rtol b|, step by step in float.
TEST(Borders, RandomNumbersNearTheBorder) {
  const Generator g(Device(kCPU, 0), 5);
  const int64_t n = 4000;
  const float rtol = 1e-3f, atol = 1e-4f;
  const Tensor b = zeros({n}).normal_(0, 1, g), u = zeros({n}).uniform_(-4, 4, g);
  const Tensor a = b + (b.abs() * rtol + atol) * (u.round() * std::ldexp(1, -12) + 1);
  const Tensor got = isclose(a, b, rtol, atol);
  int64_t close = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float x = a.data_ptr<float>()[i], y = b.data_ptr<float>()[i];
    const float away = std::fabs(x - y), share = std::fabs(rtol * y), allowed = atol + share;
    ASSERT_EQ(got.data_ptr<bool>()[i], away <= allowed) << x << ' ' << y;
    close += away <= allowed;
  }
  EXPECT_GT(close, n / 4);
  EXPECT_LT(close, n * 3 / 4);
}

// The same in every form: in place, into a tensor, with a tensor of another dtype, remainders.
TEST(Borders, SixteenBitsInEveryForm) {
  for (const ScalarType t : {kHalf, kBFloat16}) {
    const Tensor x = full({2}, 0.1, t), wide = tensor(0.1, kDouble);
    Tensor out = empty({0}, kBool);
    EXPECT_EQ(bits(x.clone().eq_(0.1)), "11");
    EXPECT_EQ(bits(eq_out(out, x, 0.1)), "11");
    EXPECT_EQ(bits(eq_out(out, x, wide)), "11");
    EXPECT_EQ(bits(eq(wide, x)), "11");
    EXPECT_EQ(bits(x.ne(wide)), "00");
    EXPECT_EQ(bits(x.lt(1e300)), "11");
    EXPECT_EQ(bits(remainder(x, 0.1)), "00");
    EXPECT_EQ(bits(remainder(x, wide)), "00");
    EXPECT_EQ(bits(fmod(x, 0.1)), "00");
    EXPECT_EQ(bits(fmod(x, wide)), "00");
    const Tensor whole = tensor({2049, 257});  // neither is a value of the type
    EXPECT_EQ(bits(eq(whole, whole.to(t))), "11");
    // What ties shares the gradient.
    const Tensor leaf = x.clone().requires_grad_();
    maximum(leaf, wide).sum().backward();
    EXPECT_EQ(values(leaf.grad().to(kDouble)), (std::vector<double>{0.5, 0.5}));
  }
}

TEST(Borders, WholeNumbers) {
  // A fraction is true.
  const Tensor none = zeros({2}, kBool), mask = tensor({true, false});
  EXPECT_EQ(bits(none.masked_fill(mask, tensor(0.1))), "10");
  EXPECT_EQ(bits(none.clone().masked_fill_(mask, tensor(0.1, kDouble))), "10");
  // Both ends are values of the dtype.
  EXPECT_EQ(values(linspace(0, 2.6, 7, kInt).to(kDouble)),
            (std::vector<double>{0, 0, 0, 1, 1, 1, 2}));
}

TEST(Borders, NormsTakeFloatsAndNothingIsNotDivided) {
  EXPECT_THROW(norm(tensor({3, 4}), Scalar(2), kFloat), Error);  // as in LibTorch
  EXPECT_EQ(norm(tensor({3.f, 4.f}), Scalar(2), kDouble).item<double>(), 5);
  EXPECT_EQ(remainder(zeros({0}, kLong), 0).numel(), 0);
  EXPECT_THROW(remainder(zeros({1}, kLong), 0), Error);
}

TEST(Borders, EqualOfTwoTypes) {
  EXPECT_TRUE(equal(tensor({1.5f}), tensor({1.5}, kDouble)));
  EXPECT_FALSE(equal(tensor({0.1f}), tensor({0.1}, kDouble)));
  EXPECT_TRUE(equal(tensor({16777217}), tensor({16777216.f})));  // as float32
  EXPECT_FALSE(equal(tensor({300}), tensor({44}, kByte)));
  EXPECT_FALSE(equal(tensor({-1}, kChar), tensor({255}, kByte)));
  EXPECT_TRUE(tensor({true}).equal(tensor({1.f})));
  EXPECT_FALSE(equal(zeros({2}), zeros({3}, kLong)));
  EXPECT_TRUE(equal(zeros({0}), zeros({0}, kLong)));
  EXPECT_FALSE(equal(tensor({NAN}), tensor({NAN}, kDouble)));
}

// ---- ends of dtypes -----------------------------------------------------------------------------

using Numbers = std::vector<double>;

TEST(Borders, MinusesAndParts) {
  for (const ScalarType dtype : {kDouble, kFloat, kHalf, kBFloat16}) {
    const Tensor x = copysign(tensor({0., 0., kNaN, kNaN, kInf, kInf, 1.}, kDouble),
                              tensor({1., -1., 1., -1., 1., -1., -1.}, kDouble))
                         .to(dtype);
    EXPECT_EQ(values(signbit(x)), (Numbers{0, 1, 0, 1, 0, 1, 1}));
    EXPECT_EQ(values(isposinf(x)), (Numbers{0, 0, 0, 0, 1, 0, 0}));
    EXPECT_EQ(values(isneginf(x)), (Numbers{0, 0, 0, 0, 0, 1, 0}));
    const int least = dtype == kDouble  ? -1074
                      : dtype == kFloat ? -149
                      : dtype == kHalf  ? -24
                                        : -133;
    const int most = dtype == kHalf ? 15 : dtype == kDouble ? 1023 : 127;
    Numbers all = {0., -0.0, kInf, -kInf, kNaN, 1, -3, 0.75};
    for (const int e : {least, least + 1, least + 9, -14, most})
      for (const double m : {1., -1.}) all.push_back(m * std::ldexp(1, e));
    const Tensor numbers = tensor(ArrayRef<double>(all), kDouble).to(dtype);
    const auto [mantissa, exponent] = frexp(numbers);
    EXPECT_EQ(exponent.scalar_type(), kInt);
    const Numbers m = values(mantissa.to(kDouble)), e = values(exponent.to(kDouble));
    for (size_t i = 0; i < all.size(); ++i) {
      int want = 0;
      const double part = std::isfinite(all[i]) ? std::frexp(all[i], &want) : all[i];
      EXPECT_TRUE(m[i] == part || std::isnan(part)) << all[i] << ": " << m[i];
      EXPECT_EQ(e[i], want) << all[i];
    }
    EXPECT_TRUE(equal(ldexp(mantissa, exponent).nan_to_num(7), numbers.nan_to_num(7)));
  }
  EXPECT_EQ(values(signbit(tensor({-1, 0, 2}))), (Numbers{1, 0, 0}));
  EXPECT_EQ(values(signbit(tensor({200}).to(kByte))), (Numbers{0}));
}

TEST(Borders, ExponentsOfAnySize) {
  EXPECT_DOUBLE_EQ(ldexp(tensor({1e-300}, kDouble), tensor({1500})).item<double>(),
                   std::ldexp(1e-300, 1500));
  EXPECT_EQ(
      ldexp(tensor({0., 1.}).to(kHalf), tensor({70000, -70000})).to(kFloat).sum().item<float>(), 0);
  EXPECT_EQ(values(ldexp(tensor({0., 1., 1.}), tensor({INT64_MAX, INT64_MAX, INT64_MIN}))),
            (Numbers{0, kInf, 0}));
  EXPECT_EQ(ldexp(tensor({0x1p-149}), tensor({276})).item<float>(), 0x1p127f);
  EXPECT_DOUBLE_EQ(ldexp(tensor({1e5}, kDouble), tensor({1008.5}, kDouble)).item<double>(),
                   1e5 * std::exp2(1008.) * std::sqrt(2.));
  // From both ends of the range, halves of an exponent.
  for (const auto& [a, b, want] : {std::tuple(DBL_MAX, -0.5, DBL_MAX * std::sqrt(0.5)),
                                   {-DBL_MAX, -1000.5, -DBL_MAX * 0x1p-1000 * std::sqrt(0.5)},
                                   {0x1p-1074, 100.5, 0x1p-974 * std::sqrt(2.)},
                                   {3 * 0x1p-1074, 1073.5, 1.5 * std::sqrt(2.)}})
    EXPECT_DOUBLE_EQ(ldexp(tensor({a}, kDouble), tensor({b}, kDouble)).item<double>(), want);
  EXPECT_EQ(ldexp(tensor({1 + 0x1p-52}, kDouble), tensor({-1074})).item<double>(), 0x1p-1074);
  const Tensor x = tensor({1e-300}, kDouble).requires_grad_(),
               e = tensor({1030.}, kDouble).requires_grad_();
  const std::vector<Tensor> g = autograd::grad({ldexp(x, e)}, {e});
  EXPECT_NEAR(g[0].item<double>() / std::ldexp(1e-300, 1030), std::log(2), 1e-14);
}

TEST(Borders, HeavisideHandsOnWhatItTakes) {
  const Tensor x = tensor({0., -0.0, 1., -1., kNaN}).requires_grad_();
  const Tensor v = tensor({2., 3., 4., 5., 6.}).requires_grad_();
  const Tensor y = heaviside(x, v);
  EXPECT_EQ(values(y), (Numbers{2, 3, 1, 0, 0}));
  y.backward(tensor({7., 8., 9., 10., 11.}));
  EXPECT_EQ(values(x.grad()), (Numbers{0, 0, 0, 0, 0}));
  EXPECT_EQ(values(v.grad()), (Numbers{7, 8, 0, 0, 0}));
}

TEST(Borders, WholeNumbersAtTheirEnds) {
  const auto numbers = [](const Tensor& x) { return values(x.to(kDouble)); };
  const Tensor low = tensor({-128}).to(kChar);
  EXPECT_EQ(numbers(gcd(low, tensor({6}).to(kChar))), (Numbers{2}));
  EXPECT_EQ(numbers(gcd(low, tensor({0}).to(kChar))), (Numbers{-128}));  // 128, wrapped
  EXPECT_EQ(numbers(lcm(tensor({100}).to(kChar), tensor({99}).to(kChar))), (Numbers{-84}));
  EXPECT_EQ(gcd(tensor({INT64_MIN}), tensor({0})).item<int64_t>(), INT64_MIN);
  const Tensor some = tensor({5, -5});
  EXPECT_EQ(numbers(bitwise_left_shift(some.to(kChar), 7)), (Numbers{-128, -128}));
  for (const int64_t far : {int64_t{8}, int64_t{64}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(numbers(bitwise_left_shift(some.to(kChar), far)), (Numbers{0, 0})) << far;
    EXPECT_EQ(numbers(bitwise_right_shift(some.to(kChar), far)), (Numbers{0, -1})) << far;
  }
  EXPECT_EQ(numbers(bitwise_right_shift(tensor({200}).to(kByte), tensor({1}).to(kByte))),
            (Numbers{100}));
  EXPECT_ERROR_TEXT(bitwise_left_shift(some, 1.5), "not implemented for");
  EXPECT_ERROR_TEXT(gcd(some.to(kBool), some.to(kBool)), "not implemented for");
  EXPECT_ERROR_TEXT(lcm(some, ones({2})), "not implemented for");
}

}  // namespace
}  // namespace ramet
