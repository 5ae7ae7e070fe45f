// The fronts of the pointwise operations beyond the operation table. Numbers that take a formula of
// their own, many dimensions, mixed layouts, and derivatives at the ends of functions.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/activation.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/pair.h"
#include "autograd/ops/pointwise/power.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/check.h"
#include "tests/kernels/pointwise/references.h"

namespace ramet {
namespace {

using Tensors = std::vector<Tensor>;

double series(const char* name, double a, double order = 0) {
  return static_cast<double>(references::reference(name).f(a, 0, 0, order, 0));
}

// Numbers that the operation table does not give: each may take a kernel or a formula of its own.
TEST(PointwiseFronts, FormsWithOtherNumbers) {
  struct Front {
    const char* name;
    Tensor (*f)(const Tensor&);
    double (*reference)(double);
  };
#define F(value) [](const Tensor& x) -> Tensor { return value; }
#define R(value) [](double a) -> double { return value; }
  const Front fronts[] = {
      {"number / x", F(2 / x), R(2 / a)},
      {"number * x", F(3 * x), R(3 * a)},
      {"number - x", F(rsub(x, 2.5, 2)), R(2.5 - 2 * a)},
      {"add", F(add(x, 2, 3)), R(a + 6)},
      {"-x", F(-x), R(-a)},
      {"pow 2", F(pow(x, 2)), R(a * a)},
      {"pow half", F(pow(x, 0.5)), R(std::sqrt(a))},
      {"pow -half", F(pow(x, -0.5)), R(1 / std::sqrt(a))},
      {"pow -1", F(pow(x, -1)), R(1 / a)},
      {"pow 2.7", F(pow(x, 2.7)), R(std::pow(a, 2.7))},
      {"pow 0", F(pow(x, 0)), R(0 * a + 1)},
      {"number pow", F(pow(Scalar(1.7), x)), R(std::pow(1.7, a))},
      {"polygamma 0", F(x.polygamma(0)), R(series("digamma", a))},
      {"polygamma 1", F(polygamma(1, x)), R(series("polygamma", a, 1))},
      {"polygamma 4", F(x.polygamma(4)), R(series("polygamma", a, 4))},
      {"remainder", F(remainder(x, 0.3)), R(a - 0.3 * std::floor(a / 0.3))},
      {"fmod", F(fmod(x, 0.3)), R(std::fmod(a, 0.3))},
      {"where", F(where(x.detach() > 0.9, x, 0.5)), R(a > 0.9 ? a : 0.5)},
  };
#undef F
#undef R
  for (const Front& front : fronts) {
    SCOPED_TRACE(front.name);
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{2, 3}, std::vector<int64_t>{2000}}) {
      const Tensor x = varied(sizes).abs().add(0.2);
      std::vector<double> want;
      for (const double v : values(x)) want.push_back(front.reference(v));
      expect_values(front.f(x), want);
    }
    const Tensors x = {varied({2, 3}).abs().add(0.2).detach().requires_grad_()};
    const auto f = [&](const Tensors& in) { return Tensors{front.f(in[0])}; };
    EXPECT_NO_THROW(autograd::gradcheck(f, x));
    EXPECT_NO_THROW(autograd::gradgradcheck(f, x));
  }
}

// Long vectors of both signs, of which the operation table has few; derivatives of quotients there.
TEST(PointwiseFronts, FormulasOfBothSigns) {
  struct Front {
    const char* name;
    Tensor (*f)(const Tensors&);
    double (*reference)(double, double, double);
    bool differentiable = true;
  };
#define F(value) [](const Tensors& x) -> Tensor { return value; }
#define R(value) [](double a, double b, [[maybe_unused]] double c) -> double { return value; }
  const Front fronts[] = {
      {"add", F(add(x[0], x[1], 1.5)), R(a + 1.5 * b)},
      {"mul", F(x[0] * x[1]), R(a * b)},
      {"div", F(div(x[0], x[1])), R(a / b)},
      {"div floor", F(div(x[0], x[1], "floor")), R(std::floor(a / b)), false},
      {"div trunc", F(div(x[0], x[1], "trunc")), R(std::trunc(a / b)), false},
      {"remainder", F(remainder(x[0], x[1])), R(a - b * std::floor(a / b))},
      {"fmod", F(fmod(x[0], x[1])), R(std::fmod(a, b))},
      {"lt", F(lt(x[0], x[1])), R(a < b), false},
      {"addcmul", F(addcmul(x[0], x[1], x[2], 0.5)), R(a + 0.5 * b * c)},
      {"addcdiv", F(addcdiv(x[0], x[1], x[2], 0.5)), R(a + 0.5 * b / c)},
      {"lerp", F(lerp(x[0], x[1], x[2])), R(a + c * (b - a))},
      {"where", F(where(x[2].detach() > 0, x[0], x[1])), R(c > 0 ? a : b)},
      {"clamp", F(clamp(x[0], x[1], x[2])), R(std::fmin(std::fmax(a, b), c))},
  };
#undef F
#undef R
  const Tensors x = {varied({2000}, 1), varied({2000}, 2), varied({2000}, 3)};
  const std::vector<double> a = values(x[0]), b = values(x[1]), c = values(x[2]);
  for (const Front& front : fronts) {
    SCOPED_TRACE(front.name);
    std::vector<double> want;
    for (size_t i = 0; i < a.size(); ++i) want.push_back(front.reference(a[i], b[i], c[i]));
    expect_values(front.f(x), want);
    if (!front.differentiable) continue;
    const auto f = [&](const Tensors& in) { return Tensors{front.f(in)}; };
    const Tensors small = {varied_leaf({2, 3}, 1), varied_leaf({3}, 2), varied_leaf({2, 1}, 3)};
    EXPECT_NO_THROW(autograd::gradcheck(f, small));
    EXPECT_NO_THROW(autograd::gradgradcheck(f, small));
  }
}

TEST(PointwiseFronts, OperatorsOfTruth) {
  const Tensor x = tensor({0., 0.25, 1.}), y = tensor({0., 1., 0.5});
  EXPECT_EQ(values(x != y), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(values(x <= 0.25), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(values(0.25 >= x), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(values(!x), (std::vector<double>{1, 0, 0}));
}

// More dimensions than a kernel takes, and operands that lie in memory in different ways.
TEST(PointwiseFronts, ManyDimensionsAndMixedLayouts) {
  using Function = Tensor (*)(const Tensors&);
  const Function functions[] = {[](const Tensors& x) { return exp(x[0]); },
                                [](const Tensors& x) { return add(x[0], x[1], 1.5); },
                                [](const Tensors& x) { return x[0] / x[1]; },
                                [](const Tensors& x) { return lt(x[0], x[1]); },
                                [](const Tensors& x) { return addcmul(x[0], x[1], x[2], 0.5); },
                                [](const Tensors& x) { return addcdiv(x[0], x[1], x[2], 0.5); },
                                [](const Tensors& x) { return lerp(x[0], x[1], x[2]); },
                                [](const Tensors& x) { return where(x[2] > 0, x[0], x[1]); },
                                [](const Tensors& x) { return clamp(x[0], x[1], x[2]); }};
  const Tensors cases[] = {
      {varied({1, 2, 1, 2, 1, 2, 1, 2, 2}, 1), varied({2, 2, 1}, 2), varied({2}, 3)},
      {varied({4, 5}, 1).t(), varied({5, 8}, 2).slice(1, 0, 8, 2),
       varied({7, 4}, 3).narrow(0, 2, 5)},
      {varied({4, 5}, 1).t(), varied({4, 5}, 2).t(), varied({4, 5}, 3).t()}};
  for (const Tensors& x : cases) {
    const Tensor whole = x[0] + x[1] + x[2];
    Tensors dense;
    for (const Tensor& t : x) dense.push_back(t.expand(whole.sizes()).contiguous());
    for (size_t k = 0; k < std::size(functions); ++k)
      EXPECT_EQ(values(functions[k](x).expand(whole.sizes())), values(functions[k](dense)))
          << "function " << k;
  }
}

TEST(PointwiseFronts, NothingMayBeDividedByZero) {  // as LibTorch, which never checks
  const Tensor zero = zeros({1}, kBool), some = ones({2}, kLong);
  for (const Tensor& none : {zeros({0}, kByte), zeros({2, 0}, kLong)}) {
    for (const Tensor& y :
         {div(none, zero, "floor"), div(none, zero, "trunc"), div(none, 0, "floor"),
          floor_divide(none, zero), floor_divide(none, 0), remainder(none, zero),
          remainder(none, 0), fmod(none, zero), fmod(none, 0)})
      EXPECT_EQ(y.sizes(), none.sizes());
  }
  for (const std::function<Tensor()>& wrong : std::vector<std::function<Tensor()>>{
           [&] { return div(some, zero, "floor"); }, [&] { return div(some, 0, "trunc"); },
           [&] { return remainder(some, zero); }, [&] { return remainder(some, 0); },
           [&] { return fmod(some, zero); }, [&] { return fmod(some, 0); }})
    EXPECT_ERROR_TEXT(wrong(), "ZeroDivisionError");
}

TEST(PointwiseFronts, TrueIsAFactorOfTruthValuesOnly) {  // plain float32 takes a path of its own
  for (const ScalarType t : {kFloat, kDouble, kLong}) {
    const Tensor x = ones({3}, t);
    for (const std::function<Tensor()>& wrong : std::vector<std::function<Tensor()>>{
             [&] { return add(x, x, true); }, [&] { return sub(x, x, true); },
             [&] { return rsub(x, x, true); }, [&] { return rsub(x, 1, true); },
             [&] { return add(x, 1, true); }, [&] { return x.clone().add_(x, true); },
             [&] { return x.clone().sub_(x, true); }})
      EXPECT_ERROR_TEXT(wrong(), "Boolean alpha only supported for Boolean results");
  }
  EXPECT_EQ(values(add(ones({1}, kBool), zeros({1}, kBool), true)), std::vector<double>{1});
}

// Derivatives at places that random values do not hit: PyTorch 2.15's.
TEST(PointwiseFronts, DerivativesOfPairsAtBorders) {
  const auto slopes = [](Tensor (*f)(const Tensor&, const Tensor&), const Tensor& x,
                         const Tensor& y) {
    const Tensor a = x.detach().requires_grad_(is_floating(x.scalar_type())),
                 b = y.detach().requires_grad_(true);
    f(a, b).sum().backward();
    std::vector<double> both = values(b.grad());
    if (a.grad().defined()) {
      const std::vector<double> first = values(a.grad());
      both.insert(both.begin(), first.begin(), first.end());
    }
    return both;
  };
  using V = std::vector<double>;
  const Tensor zero = tensor({0.}), one = tensor({1.}), nan = tensor({NAN});
  EXPECT_EQ(slopes(ramet::atan2, zero, zero), (V{0, 0}));
  // 100 / 20000, where 100^2 is more than an int8 holds.
  EXPECT_NEAR(slopes(ramet::atan2, tensor({100}).to(kChar), tensor({100.}))[0], -0.005, 1e-9);
  EXPECT_EQ(slopes(ramet::copysign, zero, one), (V{0, 0}));
  EXPECT_EQ(slopes(ramet::fmax, one, one), (V{.5, .5}));
  EXPECT_EQ(slopes(ramet::fmin, one, one), (V{.5, .5}));
  EXPECT_EQ(slopes(ramet::fmax, one, nan), (V{1, 0}));
  EXPECT_EQ(slopes(ramet::fmin, nan, one), (V{0, 1}));
}

// Derivatives of f at one number, as many as are asked for.
std::vector<double> derivatives(const std::function<Tensor(const Tensor&)>& f, double at, int n) {
  const Tensor x = tensor({at}, kDouble).requires_grad_();
  std::vector<double> out;
  for (Tensor y = f(x); n > 0; --n) {
    y = autograd::grad({y.sum()}, {x}, {}, true, true)[0];
    out.push_back(y.item<double>());
  }
  return out;
}
using Numbers = std::vector<double>;

TEST(PointwiseFronts, SincIsSmoothAtZero) {  // its series: sum of (-1)^k (pi x)^2k / (2k + 1)!
  const double square = M_PI * M_PI;
  for (const double x : {0., 1e-300, -1e-9, 1e-5}) {
    const Numbers d = derivatives(sinc, x, 4);
    EXPECT_NEAR(d[0], -square / 3 * x, 1e-9 * std::fabs(x));
    EXPECT_NEAR(d[1], -square / 3, 1e-8);
    EXPECT_NEAR(d[2], square * square / 5 * x, 1e-8 * std::fabs(x));
    EXPECT_NEAR(d[3], square * square / 5, 1e-7);
  }
  // sin(pi x) is 0 at whole numbers, exactly; the slopes there are (-1)^x / x.
  for (const double x : {1., -1., -2., 3., 1e10}) {
    const double zero = sinc(tensor({x}, kDouble)).item<double>();
    EXPECT_EQ(zero, 0);
    EXPECT_FALSE(std::signbit(zero)) << x;  // sin(pi x) is a zero of x's sign (C23's sinpi)
    EXPECT_DOUBLE_EQ(derivatives(sinc, x, 1)[0], std::cos(M_PI * std::fmod(x, 2)) / x);
  }
  EXPECT_TRUE(std::isnan(sinc(tensor({kInf}, kDouble)).item<double>()));
}

TEST(PointwiseFronts, DerivativesOfXlogyAreZeroWhereItIsAlwaysZero) {
  const auto slopes = [](double a, double b) {
    const Tensor x = tensor({a}, kDouble).requires_grad_(),
                 y = tensor({b}, kDouble).requires_grad_();
    const std::vector<Tensor> first = autograd::grad({xlogy(x, y)}, {x, y}, {}, true, true);
    Numbers out = {first[0].item<double>(), first[1].item<double>()};
    for (const Tensor& g : autograd::grad({first[0] + first[1]}, {x, y}))
      out.push_back(g.item<double>());
    return out;
  };
  for (const double b : {0., -0.0, -3., -kInf}) EXPECT_EQ(slopes(0, b), (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(slopes(0, 2), (Numbers{std::log(2), 0, 0.5, 0.5}));
  EXPECT_EQ(slopes(2, 1), (Numbers{0, 2, 1, 1 - 2}));
  EXPECT_EQ(slopes(1, 0)[0], -kInf);
  EXPECT_EQ(values(xlogy(tensor({0., 0., 0., 0., 1.}), tensor({0., kInf, -1., kNaN, 0.})).isnan()),
            (Numbers{0, 0, 0, 1, 0}));
  EXPECT_EQ(values(xlogy(0, tensor({0., kInf, -1.}))), (Numbers{0, 0, 0}));
}

TEST(PointwiseFronts, LogitAtItsEnds) {
  const auto bounded = [](const Tensor& x) { return logit(x, 0.1); };
  const auto whole = [](const Tensor& x) { return logit(x); };
  for (const double x : {0., -2., 1., kInf}) EXPECT_EQ(derivatives(bounded, x, 2), (Numbers{0, 0}));
  EXPECT_NEAR(derivatives(bounded, 0.1, 1)[0], 1 / 0.09, 1e-12);  // an end passes its gradient
  for (const double zero : {0., -0.0})
    EXPECT_EQ(derivatives(whole, zero, 2), (Numbers{kInf, -kInf}));
  EXPECT_EQ(derivatives(whole, 1, 2), (Numbers{kInf, kInf}));
  for (const double d : derivatives(whole, 1.5, 3)) EXPECT_TRUE(std::isnan(d));
  // eps above 1/2 crosses over; below 0 it is none (PyTorch's numbers).
  const Tensor x = tensor({0., 0.3, 0.9}, kDouble);
  const Numbers crossed = values(logit(x, 0.6));
  EXPECT_NEAR(crossed[0], 0.4054651081081642, 1e-15);
  EXPECT_NEAR(crossed[1], 0.4054651081081642, 1e-15);
  EXPECT_NEAR(crossed[2], -0.4054651081081642, 1e-15);
  EXPECT_TRUE(equal(logit(x, -1), logit(x)));
  // Next to 1/2, where it is 4 (x - 1/2).
  EXPECT_DOUBLE_EQ(logit(tensor({0.5 + 0x1p-40}, kDouble)).item<double>(), 0x1p-38);
}

// First and second derivative of what bends everywhere.
TEST(PointwiseFronts, DerivativesAtANaNAreNaN) {
  const std::set<std::string> straight = {"neg",   "abs",   "square", "relu", "floor",   "ceil",
                                          "round", "trunc", "frac",   "sign", "deg2rad", "rad2deg"};
  const auto expect_nan = [](const char* name, const std::function<Tensor(const Tensor&)>& f) {
    for (const double d : derivatives(f, kNaN, 2)) EXPECT_TRUE(std::isnan(d)) << name;
  };
#define RAMET_X(name, Row) \
  if (!straight.count(#name)) expect_nan(#name, [](const Tensor& x) { return name(x); });
  RAMET_UNARY_FUNCTIONS(RAMET_X)
  RAMET_UNARY_METHODS(RAMET_X)
  RAMET_UNARY_COMPOSED(RAMET_X)
#undef RAMET_X
  expect_nan("logit", [](const Tensor& x) { return logit(x); });
  expect_nan("logit, bounded", [](const Tensor& x) { return logit(x, 0.1); });
  expect_nan("polygamma", [](const Tensor& x) { return polygamma(1, x); });
  expect_nan("gelu", [](const Tensor& x) { return gelu(x); });
  expect_nan("gelu, tanh", [](const Tensor& x) { return gelu(x, "tanh"); });
  expect_nan("silu", silu);
  expect_nan("softplus", [](const Tensor& x) { return softplus(x); });
}

TEST(PointwiseFronts, WhatIsNoNumberIsReplaced) {
  for (const auto& [dtype, most] : {std::pair(kDouble, std::numeric_limits<double>::max()),
                                    {kFloat, std::numeric_limits<float>::max()},
                                    {kHalf, 65504},
                                    {kBFloat16, 0x1.FEp127}}) {
    const Tensor x = tensor({kNaN, kInf, -kInf, 1.5}, kDouble).to(dtype);
    EXPECT_EQ(values(nan_to_num(x).to(kDouble)), (Numbers{0, most, -most, 1.5}));
    EXPECT_EQ(values(nan_to_num(x, 2, 3, 4).to(kDouble)), (Numbers{2, 3, 4, 1.5}));
    // The replacement is not replaced again.
    EXPECT_EQ(values(nan_to_num(x, kInf, -kInf, kInf).to(kDouble)),
              (Numbers{kInf, -kInf, kInf, 1.5}));
    EXPECT_EQ(nan_to_num(x, std::nullopt, 1e300)[1].item<double>(),
              dtype == kDouble ? 1e300 : kInf);
  }
  const Tensor x = tensor({kNaN, kInf, 2.}, kDouble).requires_grad_();
  nan_to_num(x).backward(tensor({kNaN, 5., 7.}, kDouble));
  EXPECT_EQ(values(x.grad()), (Numbers{0, 0, 7}));
  Tensor out = empty({0}, kDouble);
  EXPECT_ERROR_TEXT(nan_to_num_out(out, ones({1})), "nan_to_num_out");
}

TEST(PointwiseFronts, PowersInFloat64) {
  EXPECT_EQ(values(float_power(2, tensor({1, -1}))), (Numbers{2, 0.5}));
  EXPECT_ERROR_TEXT(ones({1}).float_power_(2), "requires dtype");
  Tensor out = empty({0});
  EXPECT_ERROR_TEXT(float_power_out(out, ones({1}), 2), "float_power_out");
  const auto zeroth = [](const Tensor& x) { return float_power(x, 0); };
  EXPECT_EQ(derivatives(zeroth, 0, 1), (Numbers{0}));
  const auto squared = [](const Tensor& x) { return float_power(x, tensor({2.}, kDouble)); };
  EXPECT_EQ(derivatives(squared, 0, 2), (Numbers{0, 2}));
}

TEST(PointwiseFronts, EndsOfErfinvAndMvlgamma) {
  EXPECT_EQ(values(erfinv(tensor({1., -1.}))), (Numbers{kInf, -kInf}));
  EXPECT_EQ(derivatives(erfinv, 1, 2), (Numbers{kInf, kInf}));
  EXPECT_EQ(derivatives(erfinv, -1, 2), (Numbers{kInf, -kInf}));
  EXPECT_TRUE(std::isnan(erfinv(tensor({1.25})).item<float>()));
  EXPECT_EQ(values(mvlgamma(tensor({1.}), 3)), (Numbers{kInf}));
  EXPECT_ERROR_TEXT(mvlgamma(ones({1}), 0), "greater than or equal to 1");
  EXPECT_THROW(mvlgamma(ones({1}), INT64_MAX), Error);
  EXPECT_THROW(mvlgamma(ones({1 << 12}), int64_t{1} << 52), Error);
}

}  // namespace
}  // namespace ramet
