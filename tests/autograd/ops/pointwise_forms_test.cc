// The forms of the pointwise operations: promotion, in-place and out forms, edges, rounding,
// errors.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/activation.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/power.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Tensors = std::vector<Tensor>;

// ---- promotion ----------------------------------------------------------------------------------

TEST(PointwiseFronts, ResultTypes) {  // what LibTorch gives
  auto t = [](ScalarType type, IntArrayRef sizes = {2}) { return ones(sizes, type); };
  EXPECT_EQ(add(t(kInt), t(kFloat)).scalar_type(), kFloat);
  EXPECT_EQ(add(t(kLong), t(kHalf)).scalar_type(), kHalf);
  EXPECT_EQ(add(t(kByte), t(kChar)).scalar_type(), kShort);
  EXPECT_EQ(add(t(kHalf), t(kBFloat16)).scalar_type(), kFloat);
  EXPECT_EQ(add(t(kFloat), t(kDouble, {})).scalar_type(), kFloat);
  EXPECT_EQ(add(t(kInt), t(kDouble, {})).scalar_type(), kDouble);
  EXPECT_EQ(add(t(kInt), 2.5).scalar_type(), kFloat);
  EXPECT_EQ(add(t(kHalf), 2.5).scalar_type(), kHalf);
  EXPECT_EQ(add(t(kBool), 1).scalar_type(), kLong);
  EXPECT_EQ(add(t(kByte), 1).scalar_type(), kByte);
  EXPECT_EQ(add(t(kBool), t(kBool)).scalar_type(), kBool);
  EXPECT_EQ(div(t(kInt), t(kInt)).scalar_type(), kFloat);
  EXPECT_EQ(div(t(kInt), t(kInt), "floor").scalar_type(), kInt);
  EXPECT_EQ(sqrt(t(kLong)).scalar_type(), kFloat);
  EXPECT_EQ(exp(t(kBool)).scalar_type(), kFloat);
  EXPECT_EQ(abs(t(kShort)).scalar_type(), kShort);
  EXPECT_EQ(pow(t(kInt), 2).scalar_type(), kInt);
  EXPECT_EQ(pow(t(kInt), 0.5).scalar_type(), kFloat);
  EXPECT_EQ(pow(Scalar(2), t(kInt)).scalar_type(), kInt);
  EXPECT_EQ(pow(Scalar(2.5), t(kInt)).scalar_type(), kFloat);
  EXPECT_EQ(where(t(kBool), t(kInt), 2.5).scalar_type(), kFloat);
  EXPECT_EQ(where(t(kBool), 1, 2).scalar_type(), kLong);
  EXPECT_EQ(where(t(kBool), 1., 2.).scalar_type(), kFloat);
  EXPECT_EQ(clamp(t(kInt), 0.5).scalar_type(), kFloat);
  EXPECT_EQ(clamp(t(kInt), 0, 1).scalar_type(), kInt);
  EXPECT_EQ(maximum(t(kInt), t(kFloat)).scalar_type(), kFloat);
  EXPECT_EQ(eq(t(kInt), t(kFloat)).scalar_type(), kBool);
  EXPECT_EQ(addcmul(t(kInt), t(kFloat), t(kDouble, {})).scalar_type(), kFloat);
}

TEST(PointwiseFronts, GradientsComeBackInTheInputsType) {
  const Tensor x = ones({3}, kFloat).requires_grad_(), y = ones({2, 1}, kDouble).requires_grad_();
  for (const auto& f : std::vector<std::function<Tensor()>>{
           [&] { return x + y; }, [&] { return x * y; }, [&] { return x / y; },
           [&] { return maximum(x, y); }, [&] { return pow(x, y); },
           [&] { return addcmul(x, y, x); }, [&] { return where(y > 0, x, y); }}) {
    const Tensor out = f();
    EXPECT_EQ(out.scalar_type(), kDouble);
    const auto g = autograd::grad({out}, {x, y}, {ones_like(out)}, std::nullopt, false, true);
    EXPECT_EQ(g[0].scalar_type(), kFloat);
    EXPECT_EQ(g[0].sizes(), x.sizes());
    EXPECT_TRUE(!g[1].defined() || g[1].sizes() == y.sizes());
  }
}

TEST(PointwiseFronts, RoundedDivisionAndComparisonsHaveNoGradient) {
  const Tensor x = varied_leaf({3});
  EXPECT_FALSE((x > 0).requires_grad());
  EXPECT_FALSE(isnan(x).requires_grad());
  const Tensor y = div(x, 0.3, "floor") + x;
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1, 1}));
}

// ---- in place, out ------------------------------------------------------------------------------

TEST(PointwiseFronts, InPlaceOperatorsAndTransposedViews) {
  using Form = void (*)(Tensor&, const Tensor&);
  using Plain = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<Plain, Form> forms[] = {
      {[](const Tensor& a, const Tensor& b) { return a + b; },
       [](Tensor& a, const Tensor& b) { a += b; }},
      {[](const Tensor& a, const Tensor& b) { return a - b; },
       [](Tensor& a, const Tensor& b) { a -= b; }},
      {[](const Tensor& a, const Tensor& b) { return a * b; },
       [](Tensor& a, const Tensor& b) { a *= b; }},
      {[](const Tensor& a, const Tensor& b) { return a / b; },
       [](Tensor& a, const Tensor& b) { a /= b; }},
      {[](const Tensor& a, const Tensor&) { return a * 3; },
       [](Tensor& a, const Tensor&) { a *= 3; }},
      {[](const Tensor& a, const Tensor&) { return exp(a); },
       [](Tensor& a, const Tensor&) { a.exp_(); }},
      {[](const Tensor& a, const Tensor& b) { return a.lerp(b, 0.3); },
       [](Tensor& a, const Tensor& b) { a.lerp_(b, 0.3); }}};
  for (const auto& [plain, in_place] : forms) {
    Tensor base = varied({3, 2}, 4), view = base.t();
    const Tensor b = varied({3}, 5), expected = plain(view.clone(), b);
    const uint32_t version = base.version();
    in_place(view, b);
    EXPECT_GT(base.version(), version);
    EXPECT_EQ(values(base.t()), values(expected));
  }
  Tensor small = ones({3});
  EXPECT_ERROR_TEXT(small.add_(ones({2, 3})), "doesn't match the broadcast shape");
  Tensor whole = ones({3}, kLong);
  EXPECT_ERROR_TEXT(whole.mul_(1.5), "can't be cast");
  EXPECT_ERROR_TEXT(whole.exp_(), "can't be cast");
}

TEST(PointwiseFronts, OverlappingMemoryIsReadBeforeItIsWritten) {
  Tensor x = arange(6, kDouble);
  x.narrow(0, 1, 5).add_(x.narrow(0, 0, 5));
  EXPECT_EQ(values(x), (std::vector<double>{0, 1, 3, 5, 7, 9}));
  Tensor m = arange(4, kDouble).view({2, 2});
  m.mul_(m.t());
  EXPECT_EQ(values(m), (std::vector<double>{0, 2, 2, 9}));
}

TEST(PointwiseFronts, OutFormsRefuse) {
  Tensor out = empty({0}, kDouble), whole = empty({2, 3}, kLong);
  const Tensor a = varied({2, 3}, 1), b = varied({3}, 2);
  EXPECT_ERROR_TEXT(mul_out(out, a.clone().requires_grad_(), b),
                    "don't support automatic differentiation");
  EXPECT_ERROR_TEXT(add_out(whole, a, b), "can't be cast");
}

// ---- edges --------------------------------------------------------------------------------------

TEST(PointwiseFronts, IntegersDividedByZeroAreAnError) {
  const Tensor a = tensor({5, 6}), b = tensor({1, 0});
  for (const auto& f : std::vector<std::function<Tensor()>>{
           [&] { return floor_divide(a, b); }, [&] { return remainder(a, b); },
           [&] { return fmod(a, b); }, [&] { return remainder(a, 0); }, [&] { return fmod(a, 0); },
           [&] { return floor_divide(a, 0); }})
    EXPECT_ERROR_TEXT(f(), "ZeroDivisionError");
  EXPECT_EQ(values(remainder(tensor({-7, 7}), tensor({3, -3}))), (std::vector<double>{2, -2}));
  EXPECT_EQ(values(fmod(tensor({-7, 7}), 3)), (std::vector<double>{-1, 1}));
  EXPECT_EQ(values(floor_divide(tensor({-7, 7}), 2)), (std::vector<double>{-4, 3}));
  EXPECT_ERROR_TEXT(pow(a, -1), "Integers to negative integer powers are not allowed");
}

TEST(PointwiseFronts, Ties) {
  const Tensor a = leaf({1, 2, NAN}), b = leaf({1, 3, 1});
  maximum(a, b).sum().backward();
  EXPECT_EQ(values(a.grad()), (std::vector<double>{0.5, 0, 1}));
  EXPECT_EQ(values(b.grad()), (std::vector<double>{0.5, 1, 1}));
  const Tensor x = leaf({1, 1.5, 2, NAN});
  clamp(x, 1, 2).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 1, 0, 0}));
  // (value, low, high) -> the three gradients of torch.clamp in PyTorch 2.15
  const double kCases[][6] = {{2, 3, 2, 0, 0, 1},     {4, 3, 2, 0, 0, 1}, {1, 1, 2, 0.5, 0.5, 0},
                              {2, 1, 2, 0.5, 0, 0.5}, {0, 1, 1, 0, 1, 0}, {1, 1, 1, 1, 0, 0},
                              {5, 6, 6, 0, 1, 0},     {3, 2, 2, 0, 0, 1}, {NAN, 1, 2, 1, 0, 0}};
  for (const auto& c : kCases) {
    const Tensor v = leaf({c[0]}), low = leaf({c[1]}), high = leaf({c[2]});
    clamp(v, low, high).sum().backward();
    EXPECT_EQ(values(v.grad())[0], c[3]) << c[0] << ' ' << c[1] << ' ' << c[2];
    EXPECT_EQ(values(low.grad())[0], c[4]) << c[0] << ' ' << c[1] << ' ' << c[2];
    EXPECT_EQ(values(high.grad())[0], c[5]) << c[0] << ' ' << c[1] << ' ' << c[2];
  }
  const Tensor base = leaf({0, 0}), power = leaf({0, 2});
  pow(base, power).sum().backward();
  EXPECT_EQ(values(base.grad()), (std::vector<double>{0, 0}));
  EXPECT_EQ(values(power.grad()), (std::vector<double>{0, 0}));
  const Tensor negative = leaf({-8, 4});
  pow(negative, 3.0).sum().backward();
  EXPECT_EQ(values(negative.grad()), (std::vector<double>{192, 48}));
}

TEST(PointwiseFronts, CrossedBounds) {
  EXPECT_EQ(values(clamp(constant({5, -5}), 3, 2)), (std::vector<double>{2, 2}));
}

TEST(PointwiseFronts, ErrorsNameTheOperation) {
  const Tensor a = ones({2, 3}), b = ones({4});
  const std::string shapes = error_of([&] { maximum(a, b); });
  expect_part(shapes, "[maximum]");
  expect_part(shapes, "[4]");
  EXPECT_ERROR_TEXT(where(a, a, a), "condition to be a boolean tensor");
  EXPECT_ERROR_TEXT(clamp(a), "At least one of 'min' or 'max'");
  EXPECT_ERROR_TEXT(gelu(a, "exact"), "approximate argument must be either none or tanh");
  EXPECT_ERROR_TEXT(gelu(ones({2}, kLong)), "[gelu]");
  EXPECT_ERROR_TEXT(lerp(a, ones({2, 3}, kDouble), 0.5), "[lerp]");
  EXPECT_ERROR_TEXT(maximum(a, ones({2, 3}, Device(kCPU, 1))), "same device");
  EXPECT_ERROR_TEXT(pow(Tensor(), 2), "undefined tensor");
  EXPECT_ERROR_TEXT(add(ones({2}, kLong), ones({2}, kLong), 1.5), "alpha");
  EXPECT_ERROR_TEXT(addcdiv(ones({2}, kLong), ones({2}, kLong), ones({2}, kLong)), "addcdiv");
}

TEST(PointwiseFronts, AZeroDimTensorOfAnotherCpuDeviceIsTaken) {
  const Tensor a = ones({2, 3}, Device(kCPU, 1)), half = full({}, 0.5);
  EXPECT_NE(error_of([&] { a* half.to("cpu:2"); }).find("cpu:1 and cpu:2"), std::string::npos)
      << "only a number on cpu:0 may meet other devices";
  const Tensor y = a * half;
  EXPECT_EQ(y.device(), Device(kCPU, 1));
  EXPECT_EQ(values(y), std::vector<double>(6, 0.5));
}

TEST(PointwiseFronts, RoundsToDecimals) {  // PyTorch's numbers
  const auto check = [](const Tensor& x, int64_t decimals, const std::vector<double>& want) {
    const Tensor y = round(x, decimals).to(kDouble);
    for (size_t i = 0; i < want.size(); ++i) {
      const double got = y[static_cast<int64_t>(i)].item<double>();
      EXPECT_TRUE(got == want[i] || (std::isnan(got) && std::isnan(want[i])))
          << got << " for " << want[i] << " with " << decimals;
    }
  };
  const double inf = INFINITY, nan = NAN;
  const Tensor x = tensor({1.23456, -2.5, 1250., 1350., nan, inf, 1e38, 0.15, -0.0}),
               d = tensor({0.285, 1.005, 2.675, 5.015, -1.115, 1e300, 5e-324}, kDouble),
               h = tensor({1.2345, 2.675, 1000.5, 60000., 0.00123}, kHalf);
  check(x.to(kDouble), 2, {1.23, -2.5, 1250, 1350, nan, inf, 1e38f, 0.15, 0});
  check(x, 1, {1.2f, -2.5, 1250, 1350, nan, inf, inf, 0.2f, 0});
  check(x, -1, {0, 0, 1250, 1350, nan, inf, 1e38f, 0, 0});
  check(x, -2, {0, 0, 1200, 1400, nan, inf, 1e38f, 0, 0});
  for (const int64_t far : {int64_t{39}, int64_t{-39}, INT64_MAX, INT64_MIN})
    check(x, far, std::vector<double>(9, nan));
  check(d, 2, {0.28, 1.0, 2.68, 5.01, -1.12, 1e300, 0});
  check(d, 300, {0.285, 1.005, 2.675, 5.015, -1.115, inf, 0});
  check(d, 308, {0.285, 1.005, inf, inf, -1.115, inf, 0});
  check(d, -300, {0, 0, 0, 0, 0, 1e300, 0});
  check(d, 309, std::vector<double>(7, nan));
  check(h, 2, {1.23046875, 2.6796875, 1000.5, 60000, 0});
  check(h, 5, {1.234375, 2.67578125, 1000.5, 60000, 0.0012302398681640625});
  EXPECT_TRUE(std::signbit(round(tensor({-0.4}), -1).item<float>()));
  const Tensor leaf = tensor({1.25, nan}).requires_grad_();
  EXPECT_TRUE(equal(autograd::grad({round(leaf, 50).sum()}, {leaf})[0], zeros({2})));
  EXPECT_THROW(round(tensor({1, 2}), 1), Error);
}

}  // namespace
}  // namespace ramet
