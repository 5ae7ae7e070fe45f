// Activations against numbers from PyTorch 2.15 in float64.
#include "nn/layers/basic/activation.h"

#include <limits>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/activation_composed.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

constexpr double kInf = std::numeric_limits<double>::infinity();

// With the corners of every function below.
Tensor points() { return doubles({-3, -1.5, -0.5, -0.1, 0, 0.25, 0.5, 1, 2.5, 7}); }
// i / 4 - 1 from i = 1 on
Tensor weights(int64_t n) { return arange(1, n + 1, kDouble).div(4).sub(1); }

struct Row {
  const char* name;
  Tensor (*f)(const Tensor&);
  std::vector<double> values;    // at points()
  std::vector<double> gradient;  // of their sum with weights()
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"relu6",
       [](const Tensor& x) { return F::relu6(x); },
       {0, 0, 0, 0, 0, 0.25, 0.5, 1, 2.5, 6},
       {0, 0, 0, 0, 0, 0.5, 0.75, 1, 1.25, 0}},
      {"leaky_relu",
       [](const Tensor& x) {
         return F::leaky_relu(x, F::LeakyReLUFuncOptions().negative_slope(0.2));
       },
       {-0.6, -0.3, -0.1, -0.02, 0, 0.25, 0.5, 1, 2.5, 7},
       {-0.15, -0.1, -0.05, 0, 0.05, 0.5, 0.75, 1, 1.25, 1.5}},
      {"elu",
       [](const Tensor& x) { return F::elu(x); },
       {-0.950212931632136, -0.77686983985157, -0.393469340287367, -0.0951625819640404, 0, 0.25,
        0.5, 1, 2.5, 7},
       {-0.037340301275898, -0.111565080074215, -0.151632664928158, 0, 0.25, 0.5, 0.75, 1, 1.25,
        1.5}},
      {"elu, alpha",
       [](const Tensor& x) { return F::elu(x, F::ELUFuncOptions().alpha(0.3)); },
       {-0.285063879489641, -0.233060951955471, -0.11804080208621, -0.0285487745892121, 0, 0.25,
        0.5, 1, 2.5, 7},
       {-0.0112020903827694, -0.0334695240222645, -0.0454897994784475, 0, 0.075, 0.5, 0.75, 1, 1.25,
        1.5}},
      {"selu",
       [](const Tensor& x) { return F::selu(x); },
       {-1.67056872876711, -1.36581435336725, -0.691758187802871, -0.167305272624314, 0,
        0.26267524683887, 0.52535049367774, 1.05070098735548, 2.6267524683887, 7.35490691148836},
       {-0.0656479590601987, -0.196142493740062, -0.266585288261126, 0, 0.439524835211844,
        0.52535049367774, 0.78802574051661, 1.05070098735548, 1.31337623419435, 1.57605148103322}},
      {"celu",
       [](const Tensor& x) { return F::celu(x); },
       {-0.950212931632136, -0.77686983985157, -0.393469340287367, -0.0951625819640404, 0, 0.25,
        0.5, 1, 2.5, 7},
       {-0.037340301275898, -0.111565080074215, -0.151632664928158, 0, 0.25, 0.5, 0.75, 1, 1.25,
        1.5}},
      {"celu, alpha",
       [](const Tensor& x) { return F::celu(x, F::CELUFuncOptions().alpha(2.5)); },
       {-1.74701447021949, -1.12797090976493, -0.453173117305045, -0.098026402119192, 0, 0.25, 0.5,
        1, 2.5, 7},
       {-0.225895658934152, -0.274405818047013, -0.204682688269495, 0, 0.25, 0.5, 0.75, 1, 1.25,
        1.5}},
      {"silu",
       [](const Tensor& x) { return F::silu(x); },
       {-0.1422776195327, -0.273638285709535, -0.188770334399073, -0.047502081252106, 0,
        0.14054412522145, 0.311229665600927, 0.731058578630005, 2.31035454994689, 6.9936226416392},
       {0.0660780795113772, 0.0206470771495715, -0.065009703174337, 0, 0.125, 0.311855010785099,
        0.554970890476989, 0.927670511871487, 1.37425138917691, 1.50819074559968}},
      {"mish",
       [](const Tensor& x) { return F::mish(x); },
       {-0.145647461275625, -0.298099742166807, -0.22074377465173, -0.0567885752128447, 0,
        0.169572409663818, 0.375245211304895, 0.86509838826731, 2.47139230455788, 6.99998837980974},
       {0.0700448358992406, 0.0320489079461293, -0.0723776694783781, 0, 0.15, 0.377086333860296,
        0.664818281518295, 1.04903622009979, 1.30141191266419, 1.50003233874133}},
      {"softplus",
       [](const Tensor& x) {
         return F::softplus(x, F::SoftplusFuncOptions().beta(2).threshold(3));
       },
       {0.00123784256886522, 0.024293675786871, 0.156630843759111, 0.299069434690796,
        0.346573590279973, 0.487038492090053, 0.656630843759111, 1.06346400552149, 2.5, 7},
       {-0.00185446736747608, -0.0237129365887834, -0.0672353553424988, 0, 0.125, 0.311229665600927,
        0.548293933972504, 0.880797077977882, 1.25, 1.5}},
      {"logsigmoid",
       [](const Tensor& x) { return F::logsigmoid(x); },
       {-3.04858735157374, -1.70141327798275, -0.974076984180107, -0.744396660073571,
        -0.693147180559945, -0.575939419878844, -0.474076984180107, -0.313261687518223,
        -0.0788897342925496, -0.000911466453774245},
       {-0.714430595116825, -0.408787238096822, -0.155614832800464, 0, 0.125, 0.218911749557101,
        0.283155501598609, 0.268941421369995, 0.0948227250265544, 0.00136657679160097}},
      {"softsign",
       [](const Tensor& x) { return F::softsign(x); },
       {-0.75, -0.6, -0.333333333333333, -0.0909090909090909, 0, 0.2, 0.333333333333333, 0.5,
        0.714285714285714, 0.875},
       {-0.046875, -0.08, -0.111111111111111, 0, 0.25, 0.32, 0.333333333333333, 0.25,
        0.102040816326531, 0.0234375}},
      {"tanhshrink",
       [](const Tensor& x) { return F::tanhshrink(x); },
       {-2.00494524631327, -0.594851746355134, -0.0378828427399903, -0.000332005375044186, 0,
        0.00508133759629087, 0.0378828427399903, 0.238405844044235, 1.51338570184857,
        6.00000166305606},
       {-0.74260047212592, -0.409646680538176, -0.0533880667585181, 0, 0, 0.029992575596811,
        0.160164200275554, 0.580025658385974, 1.21675971664605, 1.49999501083598}},
      {"hardshrink",
       [](const Tensor& x) { return F::hardshrink(x); },
       {-3, -1.5, 0, 0, 0, 0, 0, 1, 2.5, 7},
       {-0.75, -0.5, 0, 0, 0, 0, 0, 1, 1.25, 1.5}},
      {"hardshrink, 1",
       [](const Tensor& x) { return F::hardshrink(x, 1); },
       {-3, -1.5, 0, 0, 0, 0, 0, 0, 2.5, 7},
       {-0.75, -0.5, 0, 0, 0, 0, 0, 0, 1.25, 1.5}},
      {"softshrink",
       [](const Tensor& x) { return F::softshrink(x); },
       {-2.5, -1, 0, 0, 0, 0, 0, 0.5, 2, 6.5},
       {-0.75, -0.5, 0, 0, 0, 0, 0, 1, 1.25, 1.5}},
      {"softshrink, 1",
       [](const Tensor& x) { return F::softshrink(x, 1); },
       {-2, -0.5, 0, 0, 0, 0, 0, 0, 1.5, 6},
       {-0.75, -0.5, 0, 0, 0, 0, 0, 0, 1.25, 1.5}},
      {"hardtanh",
       [](const Tensor& x) { return F::hardtanh(x); },
       {-1, -1, -0.5, -0.1, 0, 0.25, 0.5, 1, 1, 1},
       {0, 0, -0.25, 0, 0.25, 0.5, 0.75, 0, 0, 0}},
      {"hardtanh, bounds",
       [](const Tensor& x) {
         return F::hardtanh(x, F::HardtanhFuncOptions().min_val(-0.5).max_val(2.5));
       },
       {-0.5, -0.5, -0.5, -0.1, 0, 0.25, 0.5, 1, 2.5, 2.5},
       {0, 0, 0, 0, 0.25, 0.5, 0.75, 1, 0, 0}},
      {"threshold",
       [](const Tensor& x) { return F::threshold(x, F::ThresholdFuncOptions(0.5, -2)); },
       {-2, -2, -2, -2, -2, -2, -2, 1, 2.5, 7},
       {0, 0, 0, 0, 0, 0, 0, 1, 1.25, 1.5}},
      {"prelu",
       [](const Tensor& x) { return F::prelu(x, doubles({0.3})); },
       {-0.9, -0.45, -0.15, -0.03, 0, 0.25, 0.5, 1, 2.5, 7},
       {-0.225, -0.15, -0.075, 0, 0.075, 0.5, 0.75, 1, 1.25, 1.5}},
      {"rrelu",
       [](const Tensor& x) { return F::rrelu(x, F::RReLUFuncOptions().lower(0.1).upper(0.4)); },
       {-0.75, -0.375, -0.125, -0.025, 0, 0.25, 0.5, 1, 2.5, 7},
       {-0.1875, -0.125, -0.0625, 0, 0.0625, 0.5, 0.75, 1, 1.25, 1.5}},
      {"glu",
       [](const Tensor& x) { return F::glu(x); },
       {-1.68652950265739, -0.933688996802782, -0.365529289315002, -0.0924141819978757, 0},
       {-0.421632375664349, -0.311229665600927, -0.182764644657501, 0, 0.2497722372014,
        0.553801686159596, 0.176252784151196, 0.0245764916551852, -0, 0}},
      {"glu, rows",
       [](const Tensor& x) { return F::glu(x.view({2, 5}), 0); },
       {-1.68652950265739, -0.933688996802782, -0.365529289315002, -0.0924141819978757, 0},
       {-0.421632375664349, -0.311229665600927, -0.182764644657501, 0, 0.2497722372014,
        0.553801686159596, 0.176252784151196, 0.0245764916551852, -0, 0}},
      {"softmin",
       [](const Tensor& x) { return F::softmin(x, 0); },
       {0.666025129634812, 0.148610293838294, 0.0546706718495555, 0.0366468472709934,
        0.0331594386638438, 0.0258245967976098, 0.0201122162084818, 0.0121986757652136,
        0.00272189247709088, 3.02374941054703e-05},
       {0.14282313193242, -0.00528442515859238, -0.0156116993366442, -0.0196265468357822,
        -0.026048693629812, -0.0267428921962871, -0.025855439436183, -0.0187317856796915,
        -0.00486009945784835, -6.15502015791182e-05}},
      {"softmin, rows",
       [](const Tensor& x) { return F::softmin(x.view({2, 5}), -1); },
       {0.709207058630177, 0.158245484570548, 0.0582152604317174, 0.0390228560525655,
        0.0353093403149923, 0.424135437236001, 0.33031701064773, 0.200347394382473,
        0.0447035461938817, 0.000496611539914987},
       {0.0944986375797896, -0.0184758750056502, -0.0213507096801613, -0.0240675227088407,
        -0.0306045301851373, 0.0919429014279673, -0.0109740490319746, -0.0567429457947005,
        -0.0238369491309356, -0.000388957470356569}},
  };
  return all;
}

TEST(Activations, ValuesAndGradients) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    const Tensor x = points().requires_grad_();
    const Tensor y = row.f(x);
    ASSERT_EQ(y.numel(), static_cast<int64_t>(row.values.size()));
    expect_values(y, row.values);
    y.flatten().mul(weights(y.numel())).sum().backward();
    ASSERT_EQ(x.grad().numel(), static_cast<int64_t>(row.gradient.size()));
    expect_values(x.grad(), row.gradient);
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

TEST(Activations, AreDifferentiableTwice) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    const Tensor x =
        doubles({-2.9, -1.4, -0.6, -0.13, 0.07, 0.26, 0.4, 1.2, 2.2, 6.4}).requires_grad_();
    const auto f = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{row.f(in[0])}; };
    EXPECT_TRUE(autograd::gradcheck(f, {x}));
    EXPECT_TRUE(autograd::gradgradcheck(f, {x}));
  }
}

TEST(Activations, KeepDtypeAndShape) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    for (const ScalarType dtype : {kFloat, kHalf, kBFloat16}) {
      if (contains(row.name, "prelu")) continue;  // its weight is float64 here
      const Tensor y = row.f(points().to(dtype));
      EXPECT_EQ(y.scalar_type(), dtype);
      expect_values(y, row.values, dtype == kFloat ? 2e-6 : dtype == kHalf ? 4e-3 : 3e-2);
    }
    if (contains(row.name, "rows")) continue;
    // Of what does not lie one after the other.
    const Tensor strided = stack({points(), points().neg()}, 1).select(1, 0);
    expect_values(row.f(strided), row.values);
    EXPECT_EQ(row.f(empty({0}, kDouble)).numel(), 0);
    if (!contains(row.name, "glu") && !contains(row.name, "softmin")) {
      EXPECT_EQ(row.f(doubles({1}).view(IntArrayRef())).dim(), 0);
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
      {"elu", [](const Tensor& x) { return F::elu(x); }, {-1, -1, 1e4, kInf}, {0, 0, 1, 1}},
      {"selu", [](const Tensor& x) { return F::selu(x); }, {-sa, -sa, s * 1e4, kInf}, {0, 0, s, s}},
      {"celu", [](const Tensor& x) { return F::celu(x); }, {-1, -1, 1e4, kInf}, {0, 0, 1, 1}},
      {"logsigmoid",
       [](const Tensor& x) { return F::logsigmoid(x); },
       {-kInf, -1e4, 0, 0},
       {1, 1, 0, 0}},
      {"tanhshrink",
       [](const Tensor& x) { return F::tanhshrink(x); },
       {-kInf, -9999, 9999, kInf},
       {1, 1, 1, 1}},
      {"hardshrink",
       [](const Tensor& x) { return F::hardshrink(x); },
       {-kInf, -1e4, 1e4, kInf},
       {1, 1, 1, 1}},
      {"softshrink",
       [](const Tensor& x) { return F::softshrink(x); },
       {-kInf, -9999.5, 9999.5, kInf},
       {1, 1, 1, 1}},
      {"hardtanh", [](const Tensor& x) { return F::hardtanh(x); }, {-1, -1, 1, 1}, {0, 0, 0, 0}},
      {"relu6", [](const Tensor& x) { return F::relu6(x); }, {0, 0, 6, 6}, {0, 0, 0, 0}},
      {"threshold",
       [](const Tensor& x) { return F::threshold(x, F::ThresholdFuncOptions(0, 1)); },
       {1, 1, 1e4, kInf},
       {0, 0, 1, 1}},
      {"prelu",
       [](const Tensor& x) { return F::prelu(x, doubles({0.25})); },
       {-kInf, -2500, 1e4, kInf},
       {0.25, 0.25, 1, 1}},
  };
  for (const auto& row : far) {
    SCOPED_TRACE(row.name);
    const Tensor x = doubles({-kInf, -1e4, 1e4, kInf}).requires_grad_();
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
