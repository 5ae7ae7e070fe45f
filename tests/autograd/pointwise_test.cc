// The fronts of the pointwise operations: values against formulas in double, shapes, layouts,
// promotion, derivatives of first and second order, in-place and out forms, errors.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/comparison.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/power.h"
#include "autograd/ops/unary.h"
#include "autograd/ops/view.h"
#include "autograd/ops/where.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Tensors = std::vector<Tensor>;

struct Front {
  const char* name;
  int operands;
  Tensor (*f)(const Tensors&);
  double (*reference)(double a, double b, double c);
  bool positive = false;  // only for positive first operands
  bool differentiable = true;
};
#define F [](const Tensors& x) -> Tensor { return
#define R [](double a, double b, double c) -> double { (void)a, (void)b, (void)c; return
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double phi(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
double cdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

const Front kFronts[] = {{"add", 2, F add(x[0], x[1], 1.5);
}
, R a + 1.5 * b;
}
}
, { "add_number", 1, F add(x[0], 2, 3); }
, R a + 6;
}
}
, { "sub", 2, F sub(x[0], x[1]); }
, R a - b;
}
}
, { "rsub", 1, F rsub(x[0], 2.5, 2); }
, R 2.5 - 2 * a;
}
}
, { "mul", 2, F x[0] * x[1]; }
, R a* b;
}
}
, { "mul_number", 1, F 3 * x[0]; }
, R 3 * a;
}
}
, { "div", 2, F div(x[0], x[1]); }
, R a / b;
}
}
, { "number_div", 1, F 2 / x[0]; }
, R 2 / a;
}
}
, { "div_floor", 2, F div(x[0], x[1], "floor"); }
, R std::floor(a / b);
}
, false, false
}
, { "div_trunc", 2, F div(x[0], x[1], "trunc"); }
, R std::trunc(a / b);
}
, false, false
}
, { "neg", 1, F - x[0]; }
, R - a;
}
}
, { "abs", 1, F abs(x[0]); }
, R std::fabs(a);
}
}
, { "sign", 1, F sign(x[0]); }
, R a > 0 ? 1 : a < 0 ? -1 : 0;
}
}
, { "square", 1, F square(x[0]); }
, R a* a;
}
}
, { "exp", 1, F exp(x[0]); }
, R std::exp(a);
}
}
, { "expm1", 1, F expm1(x[0]); }
, R std::expm1(a);
}
}
, { "log", 1, F log(x[0]); }
, R std::log(a);
}
, true
}
, { "log1p", 1, F log1p(x[0]); }
, R std::log1p(a);
}
, true
}
, { "log2", 1, F log2(x[0]); }
, R std::log2(a);
}
, true
}
, { "log10", 1, F log10(x[0]); }
, R std::log10(a);
}
, true
}
, { "sqrt", 1, F sqrt(x[0]); }
, R std::sqrt(a);
}
, true
}
, { "rsqrt", 1, F rsqrt(x[0]); }
, R 1 / std::sqrt(a);
}
, true
}
, { "reciprocal", 1, F reciprocal(x[0]); }
, R 1 / a;
}
}
, { "sin", 1, F sin(x[0]); }
, R std::sin(a);
}
}
, { "cos", 1, F cos(x[0]); }
, R std::cos(a);
}
}
, { "tan", 1, F tan(x[0]); }
, R std::tan(a);
}
}
, { "tanh", 1, F tanh(x[0]); }
, R std::tanh(a);
}
}
, { "sigmoid", 1, F sigmoid(x[0]); }
, R sigmoid_of(a);
}
}
, { "erf", 1, F erf(x[0]); }
, R std::erf(a);
}
}
, { "relu", 1, F relu(x[0]); }
, R a > 0 ? a : 0;
}
}
, { "floor", 1, F floor(x[0] * 4); }
, R std::floor(4 * a);
}
}
, { "ceil", 1, F ceil(x[0] * 4); }
, R std::ceil(4 * a);
}
}
, { "round", 1, F round(x[0] * 4); }
, R std::nearbyint(4 * a);
}
}
, { "trunc", 1, F trunc(x[0] * 4); }
, R std::trunc(4 * a);
}
}
, { "tanh_backward", 2, F tanh_backward(x[0], x[1]); }
, R a*(1 - b * b);
}
}
, { "sigmoid_backward", 2, F sigmoid_backward(x[0], x[1]); }
, R a* b*(1 - b);
}
}
, { "threshold_backward", 2, F threshold_backward(x[0], x[1].detach(), 0.25); }
, R b > 0.25 ? a : 0;
}
}
, { "gelu", 1, F gelu(x[0]); }
, R a* cdf(a);
}
}
, { "gelu_tanh", 1, F gelu(x[0], "tanh"); }
, R 0.5 * a*(1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
}
}
, { "gelu_backward", 2, F gelu_backward(x[0], x[1]); }
, R a*(cdf(b) + b * phi(b));
}
}
, { "leaky_relu", 1, F leaky_relu(x[0], 0.2); }
, R a > 0 ? a : 0.2 * a;
}
}
, { "softplus", 1, F softplus(x[0], 2, 1.5); }
, R 2 * a > 1.5 ? a : std::log1p(std::exp(2 * a)) / 2;
}
}
, { "silu", 1, F silu(x[0]); }
, R a* sigmoid_of(a);
}
}
, { "pow", 2, F pow(x[0], x[1]); }
, R std::pow(a, b);
}
, true
}
, { "pow_2", 1, F pow(x[0], 2); }
, R a* a;
}
}
, { "pow_3", 1, F x[0].pow(3); }
, R a* a* a;
}
}
, { "pow_half", 1, F pow(x[0], 0.5); }
, R std::sqrt(a);
}
, true
}
, { "pow_minus_half", 1, F pow(x[0], -0.5); }
, R 1 / std::sqrt(a);
}
, true
}
, { "pow_minus_1", 1, F pow(x[0], -1); }
, R 1 / a;
}
}
, { "pow_2.7", 1, F pow(x[0], 2.7); }
, R std::pow(a, 2.7);
}
, true
}
, { "pow_0", 1, F pow(x[0], 0); }
, R 1;
}
}
, { "number_pow", 1, F pow(Scalar(1.7), x[0]); }
, R std::pow(1.7, a);
}
}
, { "remainder", 2, F remainder(x[0], x[1]); }
, R a - b* std::floor(a / b);
}
}
, { "remainder_number", 1, F remainder(x[0], 0.3); }
, R a - 0.3 * std::floor(a / 0.3);
}
}
, { "fmod", 2, F fmod(x[0], x[1]); }
, R std::fmod(a, b);
}
}
, { "fmod_number", 1, F fmod(x[0], 0.3); }
, R std::fmod(a, 0.3);
}
}
, { "addcmul", 3, F addcmul(x[0], x[1], x[2], 0.5); }
, R a + 0.5 * b* c;
}
}
, { "addcdiv", 3, F addcdiv(x[0], x[1], x[2], 0.5); }
, R a + 0.5 * b / c;
}
}
, { "lerp", 2, F lerp(x[0], x[1], 0.3); }
, R a + 0.3 * (b - a);
}
}
, { "lerp_tensor", 3, F lerp(x[0], x[1], x[2]); }
, R a + c*(b - a);
}
}
, { "where", 3, F where(x[2].detach() > 0, x[0], x[1]); }
, R c > 0 ? a : b;
}
}
, { "where_numbers", 1, F where(x[0].detach() > 0, x[0], 0.5); }
, R a > 0 ? a : 0.5;
}
}
, { "maximum", 2, F maximum(x[0], x[1]); }
, R a > b ? a : b;
}
}
, { "minimum", 2, F min(x[0], x[1]); }
, R a < b ? a : b;
}
}
, { "clamp", 1, F clamp(x[0], -0.5, 0.7); }
, R a<-0.5 ? -0.5 : a> 0.7 ? 0.7 : a;
}
}
, { "clamp_min", 1, F clamp_min(x[0], 0.1); }
, R a < 0.1 ? 0.1 : a;
}
}
, { "clamp_max", 1, F clamp_max(x[0], 0.1); }
, R a > 0.1 ? 0.1 : a;
}
}
, { "clamp_tensor", 3, F clamp(x[0], x[1], x[2]); }
, R std::fmin(std::fmax(a, b), c);
}
}
, { "eq", 2, F eq(x[0], x[1]); }
, R a == b;
}
, false, false
}
, { "ne", 2, F x[0] != x[1]; }
, R a != b;
}
, false, false
}
, { "lt", 2, F lt(x[0], x[1]); }
, R a < b;
}
, false, false
}
, { "le", 1, F x[0] <= 0.25; }
, R a <= 0.25;
}
, false, false
}
, { "gt", 2, F gt(x[0], x[1]); }
, R a > b;
}
, false, false
}
, { "ge", 1, F 0.25 >= x[0]; }
, R 0.25 >= a;
}
, false, false
}
, { "logical_and", 2, F logical_and(floor(x[0] + 1), floor(x[1] + 1)); }
, R std::floor(a + 1) != 0 && std::floor(b + 1) != 0;
}
, false, false
}
, { "logical_or", 2, F logical_or(floor(x[0] + 1), floor(x[1] + 1)); }
, R std::floor(a + 1) != 0 || std::floor(b + 1) != 0;
}
, false, false
}
, { "logical_xor", 2, F logical_xor(floor(x[0] + 1), floor(x[1] + 1)); }
, R(std::floor(a + 1) != 0) != (std::floor(b + 1) != 0);
}
, false, false
}
, { "logical_not", 1, F !floor(x[0] + 1); }
, R std::floor(a + 1) == 0;
}
, false, false
}
, { "isnan", 1, F isnan(x[0]); }
, R 0;
}
, false, false
}
, { "isinf", 1, F isinf(x[0]); }
, R 0;
}
, false, false
}
, { "isfinite", 1, F isfinite(x[0]); }
, R 1;
}
, false, false
}
,
}
;
#undef F
#undef R

Tensor operand(const Front& front, int i, IntArrayRef sizes) {
  Tensor t = varied(sizes, i + 1);
  if (i == 0 && front.positive) {
    double* p = t.data_ptr<double>();
    for (int64_t j = 0; j < t.numel(); ++j) p[j] = std::fabs(p[j]) + 0.2;
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
    Tensors x;  // transposed, with steps, behind an offset
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
    const std::string name = front.name;  // gradients that are zeros depend on nothing
    if (name == "sign" || name == "floor" || name == "ceil" || name == "round" || name == "trunc")
      continue;
    EXPECT_TRUE(autograd::gradgradcheck(f, x)) << front.name;
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

// ---- in place, out ------------------------------------------------------------------------------

TEST(PointwiseFronts, InPlaceFormsHaveTheValuesAndGradientsOfTheOthers) {
  struct Form {
    const char* name;
    Tensor (*plain)(const Tensor&, const Tensor&);
    void (*in_place)(Tensor&, const Tensor&);
  };
  // clang-format off
  const Form kForms[] = {
      {"add_", [](const Tensor& a, const Tensor& b) { return a.add(b, 2); }, [](Tensor& a, const Tensor& b) { a.add_(b, 2); }},
      {"sub_", [](const Tensor& a, const Tensor& b) { return a - b; }, [](Tensor& a, const Tensor& b) { a -= b; }},
      {"mul_", [](const Tensor& a, const Tensor& b) { return a * b; }, [](Tensor& a, const Tensor& b) { a *= b; }},
      {"div_", [](const Tensor& a, const Tensor& b) { return a / b; }, [](Tensor& a, const Tensor& b) { a /= b; }},
      {"mul_number", [](const Tensor& a, const Tensor&) { return a * 3; }, [](Tensor& a, const Tensor&) { a *= 3; }},
      {"exp_", [](const Tensor& a, const Tensor&) { return a.exp(); }, [](Tensor& a, const Tensor&) { a.exp_(); }},
      {"sin_", [](const Tensor& a, const Tensor&) { return a.sin(); }, [](Tensor& a, const Tensor&) { a.sin_(); }},
      {"square_", [](const Tensor& a, const Tensor&) { return a.square(); }, [](Tensor& a, const Tensor&) { a.square_(); }},
      {"relu_", [](const Tensor& a, const Tensor&) { return a.relu(); }, [](Tensor& a, const Tensor&) { a.relu_(); }},
      {"tanh_", [](const Tensor& a, const Tensor&) { return a.tanh(); }, [](Tensor& a, const Tensor&) { a.tanh_(); }},
      {"neg_", [](const Tensor& a, const Tensor&) { return -a; }, [](Tensor& a, const Tensor&) { a.neg_(); }},
      {"pow_", [](const Tensor& a, const Tensor&) { return a.pow(3); }, [](Tensor& a, const Tensor&) { a.pow_(3); }},
      {"pow_tensor", [](const Tensor& a, const Tensor& b) { return a.square().pow(b); }, [](Tensor& a, const Tensor& b) { a.square_().pow_(b); }},
      {"clamp_", [](const Tensor& a, const Tensor&) { return a.clamp(-0.4, 0.4); }, [](Tensor& a, const Tensor&) { a.clamp_(-0.4, 0.4); }},
      {"clamp_min_", [](const Tensor& a, const Tensor&) { return a.clamp_min(0.1); }, [](Tensor& a, const Tensor&) { a.clamp_min_(0.1); }},
      {"addcmul_", [](const Tensor& a, const Tensor& b) { return a.addcmul(b, b, 0.5); }, [](Tensor& a, const Tensor& b) { a.addcmul_(b, b, 0.5); }},
      {"addcdiv_", [](const Tensor& a, const Tensor& b) { return a.addcdiv(b, b + 3, 0.5); }, [](Tensor& a, const Tensor& b) { a.addcdiv_(b, b + 3, 0.5); }},
      {"lerp_", [](const Tensor& a, const Tensor& b) { return a.lerp(b, 0.3); }, [](Tensor& a, const Tensor& b) { a.lerp_(b, 0.3); }},
      {"leaky_relu_", [](const Tensor& a, const Tensor&) { return leaky_relu(a, 0.1); }, [](Tensor& a, const Tensor&) { leaky_relu_(a, 0.1); }},
  };
  // clang-format on
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    const Tensor x = varied_leaf({2, 3}, 4), b = varied_leaf({3}, 5);
    const Tensor want = form.plain(x * 1, b);
    const auto wanted =
        autograd::grad({want.square().sum()}, {x, b}, {}, std::nullopt, false, true);
    Tensor got = x * 1;
    const uint32_t version = got.version();
    form.in_place(got, b);
    EXPECT_GT(got.version(), version);
    EXPECT_EQ(values(got), values(want));
    const auto gradients =
        autograd::grad({got.square().sum()}, {x, b}, {}, std::nullopt, false, true);
    EXPECT_EQ(values(gradients[0]), values(wanted[0]));
    EXPECT_EQ(gradients[1].defined(), wanted[1].defined());
    if (wanted[1].defined()) { EXPECT_EQ(values(gradients[1]), values(wanted[1])); }
    Tensor base = varied({3, 2}, 4), view = base.t();  // through a transposed view, without history
    const Tensor expected = form.plain(view.clone(), b.detach());
    form.in_place(view, b.detach());
    EXPECT_EQ(values(base.t()), values(expected));
  }
  Tensor small = ones({3});
  EXPECT_NE(error_of([&] {
              small.add_(ones({2, 3}));
            }).find("doesn't match the broadcast shape"),
            std::string::npos);
  Tensor whole = ones({3}, kLong);
  EXPECT_NE(error_of([&] { whole.mul_(1.5); }).find("can't be cast"), std::string::npos);
  EXPECT_NE(error_of([&] { whole.exp_(); }).find("can't be cast"), std::string::npos);
}

TEST(PointwiseFronts, OverlappingMemoryIsReadBeforeItIsWritten) {
  Tensor x = arange(6, kDouble);
  x.narrow(0, 1, 5).add_(x.narrow(0, 0, 5));
  EXPECT_EQ(values(x), (std::vector<double>{0, 1, 3, 5, 7, 9}));
  Tensor m = arange(4, kDouble).view({2, 2});
  m.mul_(m.t());
  EXPECT_EQ(values(m), (std::vector<double>{0, 2, 2, 9}));
}

TEST(PointwiseFronts, OutForms) {
  Tensor out = empty({0}, kDouble);
  const Tensor a = varied({2, 3}, 1), b = varied({3}, 2);
  EXPECT_TRUE(add_out(out, a, b).is_same(out));
  EXPECT_EQ(values(out), values(a + b));
  maximum_out(out, a, b);
  EXPECT_EQ(values(out), values(maximum(a, b)));
  where_out(out, a > 0, a, b);
  EXPECT_EQ(values(out), values(where(a > 0, a, b)));
  clamp_out(out, a, 0.1, 0.2);
  EXPECT_EQ(values(out), values(clamp(a, 0.1, 0.2)));
  pow_out(out, a.abs(), b);
  EXPECT_EQ(values(out), values(pow(a.abs(), b)));
  addcmul_out(out, a, b, b, 2);
  EXPECT_EQ(values(out), values(addcmul(a, b, b, 2)));
  addcdiv_out(out, a, b, b + 3);
  EXPECT_EQ(values(out), values(addcdiv(a, b, b + 3)));
  Tensor truth = empty({0}, kBool);
  lt_out(truth, a, b);
  EXPECT_EQ(values(truth), values(a < b));
  EXPECT_NE(error_of([&] {
              mul_out(out, a.clone().requires_grad_(), b);
            }).find("don't support automatic differentiation"),
            std::string::npos);
  Tensor whole = empty({2, 3}, kLong);
  EXPECT_NE(error_of([&] { add_out(whole, a, b); }).find("can't be cast"), std::string::npos);
}

// ---- edges --------------------------------------------------------------------------------------

TEST(PointwiseFronts, IntegersDividedByZeroAreAnError) {
  const Tensor a = tensor({5, 6}), b = tensor({1, 0});
  for (const auto& f : std::vector<std::function<Tensor()>>{
           [&] { return floor_divide(a, b); }, [&] { return remainder(a, b); },
           [&] { return fmod(a, b); }, [&] { return remainder(a, 0); }, [&] { return fmod(a, 0); },
           [&] { return floor_divide(a, 0); }})
    EXPECT_NE(error_of(f).find("ZeroDivisionError"), std::string::npos);
  EXPECT_EQ(values(remainder(tensor({-7, 7}), tensor({3, -3}))), (std::vector<double>{2, -2}));
  EXPECT_EQ(values(fmod(tensor({-7, 7}), 3)), (std::vector<double>{-1, 1}));
  EXPECT_EQ(values(floor_divide(tensor({-7, 7}), 2)), (std::vector<double>{-4, 3}));
  EXPECT_NE(
      error_of([&] { pow(a, -1); }).find("Integers to negative integer powers are not allowed"),
      std::string::npos);
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

TEST(PointwiseFronts, SpecialValues) {
  const double inf = INFINITY;
  const Tensor x = constant({NAN, inf, -inf, -0.0});
  EXPECT_EQ(values(isnan(x)), (std::vector<double>{1, 0, 0, 0}));
  EXPECT_EQ(values(isinf(x)), (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(values(isfinite(x)), (std::vector<double>{0, 0, 0, 1}));
  EXPECT_TRUE(std::isnan(values(relu(x))[0]));
  EXPECT_TRUE(std::isnan(values(clamp(x, 0, 1))[0]));
  EXPECT_EQ(values(clamp(constant({5, -5}), 3, 2)), (std::vector<double>{2, 2}));
  EXPECT_EQ(values(sign(x)), (std::vector<double>{0, 1, -1, 0}));
  EXPECT_EQ(values(eq(x, x)), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_TRUE(std::isnan(values(maximum(x, constant({1, 1, 1, 1})))[0]));
}

TEST(PointwiseFronts, ErrorsNameTheOperation) {
  const Tensor a = ones({2, 3}), b = ones({4});
  const std::string shapes = error_of([&] { maximum(a, b); });
  EXPECT_NE(shapes.find("[maximum]"), std::string::npos) << shapes;
  EXPECT_NE(shapes.find("[4]"), std::string::npos) << shapes;
  EXPECT_NE(error_of([&] { where(a, a, a); }).find("condition to be a boolean tensor"),
            std::string::npos);
  EXPECT_NE(error_of([&] { clamp(a); }).find("At least one of 'min' or 'max'"), std::string::npos);
  EXPECT_NE(
      error_of([&] { gelu(a, "exact"); }).find("approximate argument must be either none or tanh"),
      std::string::npos);
  EXPECT_NE(error_of([&] { gelu(ones({2}, kLong)); }).find("[gelu]"), std::string::npos);
  EXPECT_NE(error_of([&] {
              lerp(a, ones({2, 3}, kDouble), 0.5);
            }).find("[lerp]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              maximum(a, ones({2, 3}, Device(kCPU, 1)));
            }).find("same device"),
            std::string::npos);
  EXPECT_NE(error_of([&] { pow(Tensor(), 2); }).find("undefined tensor"), std::string::npos);
  EXPECT_NE(error_of([&] { add(ones({2}, kLong), ones({2}, kLong), 1.5); }).find("alpha"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              addcdiv(ones({2}, kLong), ones({2}, kLong), ones({2}, kLong));
            }).find("addcdiv"),
            std::string::npos);
}

TEST(PointwiseFronts, AZeroDimTensorOfAnotherCpuDeviceIsTaken) {
  const Tensor a = ones({2, 3}, Device(kCPU, 1)), half = full({}, 0.5);
  const Tensor y = a * half;
  EXPECT_EQ(y.device(), Device(kCPU, 1));
  EXPECT_EQ(values(y), std::vector<double>(6, 0.5));
}

}  // namespace
}  // namespace ramet
