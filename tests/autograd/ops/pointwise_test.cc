// The fronts of the pointwise operations: values against formulas in double, for any shapes and
// layouts, and derivatives of first and second order.
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

struct Front {
  const char* name;
  int operands;
  Tensor (*f)(const Tensors&);
  std::function<double(double a, double b, double c)> reference;
  bool positive = false;  // only for positive first operands
  bool differentiable = true;
  const references::Reference* domain = nullptr;  // where the operand is to lie
};
#define F(value) [](const Tensors& x) -> Tensor { return value; }
#define R(value)                               \
  [](double a, double b, double c) -> double { \
    (void)a, (void)b, (void)c;                 \
    return value;                              \
  }
// What references.h has by this name.
std::function<double(double, double, double)> same(const char* name, double s = 1, double t = 0) {
  const references::Reference& of = references::reference(name);
  return [&of, s, t](double a, double b, double c) {
    return static_cast<double>(of.f(a, b, c, s, t));
  };
}

// It takes products for declarations.
// clang-format off
const Front kFronts[] = {
    {"add", 2, F(add(x[0], x[1], 1.5)), R(a + 1.5 * b)},
    {"add_number", 1, F(add(x[0], 2, 3)), R(a + 6)},
    {"sub", 2, F(sub(x[0], x[1])), R(a - b)},
    {"rsub", 1, F(rsub(x[0], 2.5, 2)), R(2.5 - 2 * a)},
    {"mul", 2, F(x[0] * x[1]), R(a * b)},
    {"mul_number", 1, F(3 * x[0]), R(3 * a)},
    {"div", 2, F(div(x[0], x[1])), R(a / b)},
    {"number_div", 1, F(2 / x[0]), R(2 / a)},
    {"div_floor", 2, F(div(x[0], x[1], "floor")), R(std::floor(a / b)), false, false},
    {"div_trunc", 2, F(div(x[0], x[1], "trunc")), R(std::trunc(a / b)), false, false},
#define RAMET_X(name, Row) \
    {#name, 1, F(name(x[0])), same(#name), false, true, &references::reference(#name)},
    RAMET_UNARY_FUNCTIONS(RAMET_X) RAMET_UNARY_METHODS(RAMET_X) RAMET_UNARY_COMPOSED(RAMET_X)
#undef RAMET_X
    {"polygamma", 1, F(polygamma(1, x[0])), same("polygamma"), true},
    {"polygamma_0", 1, F(x[0].polygamma(0)), same("digamma"), true},
    {"polygamma_4", 1, F(x[0].polygamma(4)), same("polygamma", 4), true},
    {"minus", 1, F(-x[0]), same("neg")},
    {"tanh_backward", 2, F(tanh_backward(x[0], x[1])), same("tanh_backward")},
    {"sigmoid_backward", 2, F(sigmoid_backward(x[0], x[1])), same("sigmoid_backward")},
    {"threshold_backward", 2, F(threshold_backward(x[0], x[1].detach(), 0.25)), same("threshold_backward", 0.25)},
    {"gelu", 1, F(gelu(x[0])), same("gelu")},
    {"gelu_tanh", 1, F(gelu(x[0], "tanh")), same("gelu_tanh")},
    {"gelu_backward", 2, F(gelu_backward(x[0], x[1])), same("gelu_backward")},
    {"leaky_relu", 1, F(leaky_relu(x[0], 0.2)), same("leaky_relu", 0.2)},
    {"softplus", 1, F(softplus(x[0], 2, 1.5)), same("softplus", 2, 1.5)},
    {"silu", 1, F(silu(x[0])), same("silu")},
    {"gelu_tanh_backward", 2, F(gelu_backward(x[0], x[1], "tanh")), same("gelu_tanh_backward")},
    {"leaky_relu_backward", 2, F(leaky_relu_backward(x[0], x[1].detach(), 0.2, false)),
     same("leaky_relu_backward", 0.2)},
    {"softplus_backward", 2, F(softplus_backward(x[0], x[1], 2, 1.5)),
     same("softplus_backward", 2, 1.5)},
    {"silu_backward", 2, F(silu_backward(x[0], x[1])), same("silu_backward")},
    {"pow", 2, F(pow(x[0], x[1])), R(std::pow(a, b)), true},
    {"pow_2", 1, F(pow(x[0], 2)), R(a * a)},
    {"pow_3", 1, F(x[0].pow(3)), R(a * a * a)},
    {"pow_half", 1, F(pow(x[0], 0.5)), R(std::sqrt(a)), true},
    {"pow_minus_half", 1, F(pow(x[0], -0.5)), R(1 / std::sqrt(a)), true},
    {"pow_minus_1", 1, F(pow(x[0], -1)), R(1 / a)},
    {"pow_2.7", 1, F(pow(x[0], 2.7)), R(std::pow(a, 2.7)), true},
    {"pow_0", 1, F(pow(x[0], 0)), R(1)},
    {"number_pow", 1, F(pow(Scalar(1.7), x[0])), R(std::pow(1.7, a))},
    {"remainder", 2, F(remainder(x[0], x[1])), R(a - b * std::floor(a / b))},
    {"remainder_number", 1, F(remainder(x[0], 0.3)), R(a - 0.3 * std::floor(a / 0.3))},
    {"fmod", 2, F(fmod(x[0], x[1])), R(std::fmod(a, b))},
    {"fmod_number", 1, F(fmod(x[0], 0.3)), R(std::fmod(a, 0.3))},
    {"addcmul", 3, F(addcmul(x[0], x[1], x[2], 0.5)), R(a + 0.5 * b * c)},
    {"addcdiv", 3, F(addcdiv(x[0], x[1], x[2], 0.5)), R(a + 0.5 * b / c)},
    {"lerp", 2, F(lerp(x[0], x[1], 0.3)), R(a + 0.3 * (b - a))},
    {"lerp_tensor", 3, F(lerp(x[0], x[1], x[2])), R(a + c * (b - a))},
    {"where", 3, F(where(x[2].detach() > 0, x[0], x[1])), R(c > 0 ? a : b)},
    {"where_numbers", 1, F(where(x[0].detach() > 0, x[0], 0.5)), R(a > 0 ? a : 0.5)},
    {"maximum", 2, F(maximum(x[0], x[1])), R(a > b ? a : b)},
    {"minimum", 2, F(min(x[0], x[1])), R(a < b ? a : b)},
    {"clamp", 1, F(clamp(x[0], -0.5, 0.7)), R(a < -0.5 ? -0.5 : a > 0.7 ? 0.7 : a)},
    {"clamp_min", 1, F(clamp_min(x[0], 0.1)), R(a < 0.1 ? 0.1 : a)},
    {"clamp_max", 1, F(clamp_max(x[0], 0.1)), R(a > 0.1 ? 0.1 : a)},
    {"clamp_tensor", 3, F(clamp(x[0], x[1], x[2])), R(std::fmin(std::fmax(a, b), c))},
    {"eq", 2, F(eq(x[0], x[1])), R(a == b), false, false},
    {"ne", 2, F(x[0] != x[1]), R(a != b), false, false},
    {"lt", 2, F(lt(x[0], x[1])), R(a < b), false, false},
    {"le", 1, F(x[0] <= 0.25), R(a <= 0.25), false, false},
    {"gt", 2, F(gt(x[0], x[1])), R(a > b), false, false},
    {"ge", 1, F(0.25 >= x[0]), R(0.25 >= a), false, false},
    {"logical_and", 2, F(logical_and(floor(x[0] + 1), floor(x[1] + 1))),
     R(std::floor(a + 1) != 0 && std::floor(b + 1) != 0), false, false},
    {"logical_or", 2, F(logical_or(floor(x[0] + 1), floor(x[1] + 1))),
     R(std::floor(a + 1) != 0 || std::floor(b + 1) != 0), false, false},
    {"logical_xor", 2, F(logical_xor(floor(x[0] + 1), floor(x[1] + 1))),
     R((std::floor(a + 1) != 0) != (std::floor(b + 1) != 0)), false, false},
    {"logical_not", 1, F(!floor(x[0] + 1)), R(std::floor(a + 1) == 0), false, false},
    {"isnan", 1, F(isnan(x[0])), R(0), false, false},
    {"isinf", 1, F(isinf(x[0])), R(0), false, false},
    {"isfinite", 1, F(isfinite(x[0])), R(1), false, false},
};
// clang-format on
#undef F
#undef R

Tensor operand(const Front& front, int i, IntArrayRef sizes) {
  Tensor t = varied(sizes, i + 1);
  double* p = t.data_ptr<double>();
  for (int64_t j = 0; j < t.numel(); ++j) {
    if (i == 0 && front.positive) p[j] = std::fabs(p[j]) + 0.2;
    if (front.domain)
      p[j] = front.domain->low + (p[j] / 2.2 + 0.5) * (front.domain->high - front.domain->low);
  }
  return t;
}
// Element `at` (an index tuple of `sizes`) of t, broadcast.
double element(const Tensor& t, const std::vector<double>& v, const std::vector<int64_t>& at) {
  int64_t i = 0;
  for (int64_t d = 0; d < t.dim(); ++d) {
    const int64_t index = at[at.size() - static_cast<size_t>(t.dim() - d)];
    i = i * t.size(d) + (t.size(d) == 1 ? 0 : index);
  }
  return v[static_cast<size_t>(i)];
}
void expect_reference(const Front& front, const Tensors& x, const Tensor& y) {
  std::vector<std::vector<double>> in;
  for (const Tensor& t : x) in.push_back(values(t));
  const std::vector<double> got = values(y);
  std::vector<int64_t> at(static_cast<size_t>(y.dim()), 0);
  for (int64_t i = 0; i < y.numel(); ++i) {
    int64_t rest = i;
    for (size_t d = at.size(); d-- > 0;)
      at[d] = rest % y.size(static_cast<int64_t>(d)), rest /= y.size(static_cast<int64_t>(d));
    double v[3] = {};
    for (size_t k = 0; k < x.size(); ++k) v[k] = element(x[k], in[k], at);
    const double want = front.reference(v[0], v[1], v[2]);
    if (std::isnan(want) && std::isnan(got[static_cast<size_t>(i)])) continue;  // outside
    ASSERT_NEAR(got[static_cast<size_t>(i)], want, 1e-12 * std::fmax(1, std::fabs(want)))
        << front.name << " at element " << i << ": " << v[0] << ' ' << v[1] << ' ' << v[2];
  }
}

TEST(PointwiseFronts, ValuesForShapesLayoutsAndBroadcasts) {
  const std::vector<std::vector<std::vector<int64_t>>> kShapes = {
      {{3, 4}, {3, 4}, {3, 4}},
      {{3, 1}, {4}, {2, 1, 1}},
      {{}, {}, {}},
      {{5}, {}, {1}},
      {{}, {2, 3}, {3}},
      {{0, 3}, {1, 3}, {3}},
      {{1, 2, 1, 2, 1, 2, 1, 2, 2}, {2, 2, 1}, {2}},
      {{2000}, {2000}, {2000}}};
  for (const Front& front : kFronts) {
    SCOPED_TRACE(front.name);
    // gradient and value have one shape
    const bool alike = std::string(front.name).find("_backward") != std::string::npos;
    for (const auto& shapes : kShapes) {
      Tensors x;
      for (int i = 0; i < front.operands; ++i)
        x.push_back(operand(front, i, shapes[alike ? 0 : static_cast<size_t>(i)]));
      expect_reference(front, x, front.f(x));
    }
    Tensors x;  // transposed, with steps, with an offset
    x.push_back(operand(front, 0, {4, 5}).t());
    x.push_back(operand(front, 1, {5, 8}).slice(1, 0, 8, 2));
    x.push_back(operand(front, 2, {7, 4}).narrow(0, 2, 5));
    x.resize(static_cast<size_t>(front.operands));
    expect_reference(front, x, front.f(x));
    Tensors same;  // all transposed alike
    for (int i = 0; i < front.operands; ++i) same.push_back(operand(front, i, {4, 5}).t());
    expect_reference(front, same, front.f(same));
    for (Tensor& t : x) t = t.clone().fill_(0.75);  // ties
    if (std::string(front.name) != "remainder_number") expect_reference(front, x, front.f(x));
  }
}

TEST(PointwiseFronts, FirstAndSecondDerivatives) {
  for (const Front& front : kFronts) {
    if (!front.differentiable) continue;
    SCOPED_TRACE(front.name);
    const std::vector<std::vector<int64_t>> shapes = {{2, 3}, {3}, {2, 1}};
    Tensors x;
    // gradient and value have one shape
    const bool alike = std::string(front.name).find("_backward") != std::string::npos;
    for (int i = 0; i < front.operands; ++i)
      x.push_back(operand(front, i, shapes[alike ? 0 : static_cast<size_t>(i)]).requires_grad_());
    const auto f = [&](const Tensors& in) { return Tensors{front.f(in)}; };
    EXPECT_TRUE(autograd::gradcheck(f, x)) << front.name;
    // gradients that are zeros depend on nothing
    const auto& known = references::references();
    if (const auto of = known.find(front.name); of != known.end() && of->second.flat) continue;
    EXPECT_TRUE(autograd::gradgradcheck(f, x)) << front.name;
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
    expect_part(error_of(wrong), "ZeroDivisionError");
}

TEST(PointwiseFronts, TrueIsAFactorOfTruthValuesOnly) {  // plain float32 takes a path of its own
  for (const ScalarType t : {kFloat, kDouble, kLong}) {
    const Tensor x = ones({3}, t);
    for (const std::function<Tensor()>& wrong : std::vector<std::function<Tensor()>>{
             [&] { return add(x, x, true); }, [&] { return sub(x, x, true); },
             [&] { return rsub(x, x, true); }, [&] { return rsub(x, 1, true); },
             [&] { return add(x, 1, true); }, [&] { return x.clone().add_(x, true); },
             [&] { return x.clone().sub_(x, true); }})
      expect_part(error_of(wrong), "Boolean alpha only supported for Boolean results");
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
constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

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
  expect_part(error_of([&] { return nan_to_num_out(out, ones({1})); }), "nan_to_num_out");
}

TEST(PointwiseFronts, PowersInFloat64) {
  EXPECT_EQ(values(float_power(2, tensor({1, -1}))), (Numbers{2, 0.5}));
  expect_part(error_of([&] { return ones({1}).float_power_(2); }), "requires dtype");
  Tensor out = empty({0});
  expect_part(error_of([&] { return float_power_out(out, ones({1}), 2); }), "float_power_out");
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
  expect_part(error_of([&] { return mvlgamma(ones({1}), 0); }), "greater than or equal to 1");
  EXPECT_THROW(mvlgamma(ones({1}), INT64_MAX), Error);
  EXPECT_THROW(mvlgamma(ones({1 << 12}), int64_t{1} << 52), Error);
}

}  // namespace
}  // namespace ramet
