// Activations where they have corners or are next to their limits.
#include "nn/layers/basic/activation.h"

#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/activation_composed.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/reduce/reduce.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Where two pieces of a function meet: values and gradients there, from PyTorch 2.15. Elsewhere:
// tests/nn/goldens and tests/autograd/table.
TEST(Activations, Corners) {
  const struct {
    const char* name;
    Tensor (*f)(const Tensor&);
    std::vector<double> x, values, slopes;
  } rows[] = {
      {"relu6", [](const Tensor& x) { return F::relu6(x); }, {0, 6}, {0, 6}, {0, 0}},
      {"hardtanh", [](const Tensor& x) { return F::hardtanh(x); }, {-1, 1}, {-1, 1}, {0, 0}},
      {"hardshrink",
       [](const Tensor& x) { return F::hardshrink(x); },
       {-.5, 0, .5},
       {0, 0, 0},
       {0, 0, 0}},
      {"softshrink",
       [](const Tensor& x) { return F::softshrink(x); },
       {-.5, 0, .5},
       {0, 0, 0},
       {0, 0, 0}},
      {"threshold",
       [](const Tensor& x) {
         return F::threshold(x, {.5, -2});
       },
       {.5},
       {-2},
       {0}},
      {"leaky_relu", [](const Tensor& x) { return F::leaky_relu(x); }, {0}, {0}, {.01}},
      {"prelu", [](const Tensor& x) { return F::prelu(x, doubles({.3})); }, {0}, {0}, {.3}},
      {"rrelu", [](const Tensor& x) { return F::rrelu(x); }, {0}, {0}, {11. / 48}},
      {"elu",
       [](const Tensor& x) { return F::elu(x, F::ELUFuncOptions().alpha(.3)); },
       {0},
       {0},
       {.3}},
      {"selu", [](const Tensor& x) { return F::selu(x); }, {0}, {0}, {1.758099340847376}},
      {"celu",
       [](const Tensor& x) { return F::celu(x, F::CELUFuncOptions().alpha(2.5)); },
       {0},
       {0},
       {1}},
      {"softsign", [](const Tensor& x) { return F::softsign(x); }, {0}, {0}, {1}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Tensor x = doubles(row.x).requires_grad_(), y = row.f(x);
    y.sum().backward();
    expect_values(y, row.values, 0);
    expect_values(x.grad(), row.slopes);
  }
}

// Where the value is next to its limit the derivatives are still right, to their last digits.
TEST(Activations, ExponentialUnitsFarBelowZero) {
  const double a = 1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
  struct Unit {
    Tensor (*f)(const Tensor&);
    double scale, slope;
  };
  const auto in_place = [](const Tensor& x) {
    Tensor y = x.mul(1);
    return elu_(y);
  };
  for (const Unit& unit :
       {Unit{[](const Tensor& x) { return elu(x, 1.5, 1.1, 0.7); }, 1.65, 0.7},
        Unit{in_place, 1, 1}, Unit{[](const Tensor& x) { return selu(x); }, a, 1},
        Unit{[](const Tensor& x) { return celu(x, 2.5); }, 2.5, 0.4}}) {
    for (const double at : {-50., -300.}) {
      const Tensor x = doubles({at}).requires_grad_(), y = unit.f(x);
      double expected = unit.scale * std::exp(unit.slope * at);
      Tensor g = y;
      for (int order = 1; order <= 3; ++order) {
        g = autograd::grad({g.sum()}, {x}, {}, true, true)[0];
        expected *= unit.slope;
        EXPECT_NEAR(g.item<double>(), expected, 1e-13 * expected) << at << " order " << order;
      }
    }
  }
}

TEST(Activations, FarFromZero) {
  const double s = 1.0507009873554805, sa = 1.7580993408473766;
  const struct {
    const char* name;
    Tensor (*f)(const Tensor&);
    std::vector<double> values, slopes;  // at -inf, -10000, 10000, inf
  } far[] = {
      {"elu", [](const Tensor& x) { return F::elu(x); }, {-1, -1, 1e4, kInfinity}, {0, 0, 1, 1}},
      {"selu",
       [](const Tensor& x) { return F::selu(x); },
       {-sa, -sa, s * 1e4, kInfinity},
       {0, 0, s, s}},
      {"celu", [](const Tensor& x) { return F::celu(x); }, {-1, -1, 1e4, kInfinity}, {0, 0, 1, 1}},
      {"logsigmoid",
       [](const Tensor& x) { return F::logsigmoid(x); },
       {-kInfinity, -1e4, 0, 0},
       {1, 1, 0, 0}},
      {"tanhshrink",
       [](const Tensor& x) { return F::tanhshrink(x); },
       {-kInfinity, -9999, 9999, kInfinity},
       {1, 1, 1, 1}},
      {"hardshrink",
       [](const Tensor& x) { return F::hardshrink(x); },
       {-kInfinity, -1e4, 1e4, kInfinity},
       {1, 1, 1, 1}},
      {"softshrink",
       [](const Tensor& x) { return F::softshrink(x); },
       {-kInfinity, -9999.5, 9999.5, kInfinity},
       {1, 1, 1, 1}},
      {"hardtanh", [](const Tensor& x) { return F::hardtanh(x); }, {-1, -1, 1, 1}, {0, 0, 0, 0}},
      {"relu6", [](const Tensor& x) { return F::relu6(x); }, {0, 0, 6, 6}, {0, 0, 0, 0}},
      {"threshold",
       [](const Tensor& x) { return F::threshold(x, F::ThresholdFuncOptions(0, 1)); },
       {1, 1, 1e4, kInfinity},
       {0, 0, 1, 1}},
      {"prelu",
       [](const Tensor& x) { return F::prelu(x, doubles({0.25})); },
       {-kInfinity, -2500, 1e4, kInfinity},
       {0.25, 0.25, 1, 1}},
  };
  for (const auto& row : far) {
    SCOPED_TRACE(row.name);
    const Tensor x = doubles({-kInfinity, -1e4, 1e4, kInfinity}).requires_grad_();
    const Tensor y = row.f(x);
    y.sum().backward();
    for (size_t i = 0; i < 4; ++i) {
      const double want = row.values[i], got = values(y)[i];
      if (std::isinf(want)) EXPECT_EQ(got, want);
      else EXPECT_NEAR(got, want, 1e-12 * std::fabs(want));
    }
    expect_values(x.grad(), row.slopes);
    EXPECT_TRUE(std::isnan(values(row.f(doubles({std::nan("")})))[0]));
  }
  // To the last digits where the plain formula has none.
  expect_values(F::logsigmoid(doubles({50, -50, 39, -39})).mul(1e20),
                {-1.9287498479639178e-2, -5e21, -1.1548224173015786e3, -39e20}, 1e-13);
}

}  // namespace
}  // namespace ramet::nn
