#include "nn/init.h"

#include "autograd/ops/make/factory.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/sequence/embedding.h"
#include "runtime/devices/generator.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

struct Statistics {
  double mean = 0, std = 0, lowest = 1e300, highest = -1e300;
};
Statistics of(const Tensor& t) {
  Statistics s;
  const std::vector<double> v = values(t);
  const double n = static_cast<double>(v.size());
  for (double x : v) {
    s.mean += x / n;
    s.lowest = std::min(s.lowest, x), s.highest = std::max(s.highest, x);
  }
  for (double x : v) s.std += (x - s.mean) * (x - s.mean) / n;
  s.std = std::sqrt(s.std);
  return s;
}
// Uniform in +-bound: 20,000 draws or more come within half a percent of the bounds, and their
// moments within a few.
void expect_uniform(const Tensor& t, double bound) {
  const Statistics s = of(t);
  EXPECT_NEAR(s.mean, 0, 0.03 * bound);
  EXPECT_NEAR(s.std, bound / std::sqrt(3.0), 0.02 * bound);
  EXPECT_LE(s.highest, bound);
  EXPECT_GE(s.lowest, -bound);
  EXPECT_GT(s.highest, 0.995 * bound);
  EXPECT_LT(s.lowest, -0.995 * bound);
}
void expect_normal(const Tensor& t, double mean, double std) {
  const Statistics s = of(t);
  EXPECT_NEAR(s.mean, mean, 0.03 * std);
  EXPECT_NEAR(s.std, std, 0.03 * std);
  EXPECT_GT(s.highest, mean + 3 * std);
}

class Init : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(7); }
};

TEST_F(Init, Gains) {
  EXPECT_DOUBLE_EQ(init::calculate_gain(kLinear), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain(kConv2D), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain(kSigmoid), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain(kTanh), 5.0 / 3);
  EXPECT_DOUBLE_EQ(init::calculate_gain(kReLU), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(init::calculate_gain(kLeakyReLU, 0.2), std::sqrt(2 / 1.04));
}

TEST_F(Init, Fans) {
  EXPECT_EQ(init::_calculate_fan_in_and_fan_out(ones({4, 3})), std::make_tuple(3, 4));
  EXPECT_EQ(init::_calculate_fan_in_and_fan_out(ones({4, 3, 5, 2})), std::make_tuple(30, 40));
  EXPECT_ERROR_TEXT(init::xavier_uniform_(ones({4})), "fewer than 2 dimensions");
}

TEST_F(Init, Constants) {
  expect_values(init::constant_(empty({2}), 2.5), {2.5, 2.5});
  expect_values(init::ones_(empty({2})), {1, 1});
  expect_values(init::zeros_(empty({2})), {0, 0});
  expect_values(init::eye_(empty({2, 3})), {1, 0, 0, 0, 1, 0});
  expect_values(init::dirac_(empty({2, 1, 3})), {0, 1, 0, 0, 0, 0});
  expect_values(init::dirac_(empty({2, 2, 1, 3})), {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0});
  EXPECT_ERROR_TEXT(init::eye_(empty({2})), "Only tensors with 2 dimensions are supported");
  Tensor p = ones({2}).requires_grad_();
  EXPECT_TRUE(init::zeros_(p).is_same(p));
  EXPECT_TRUE(p.is_leaf() && p.requires_grad());
}

TEST_F(Init, Distributions) {
  expect_uniform(init::uniform_(empty({200, 100}), -2, 2), 2);
  expect_normal(init::normal_(empty({200, 100}), 1, 0.5), 1, 0.5);
  expect_uniform(init::kaiming_uniform_(empty({200, 100})), std::sqrt(3.0) * std::sqrt(2.0) / 10);
  expect_uniform(init::kaiming_uniform_(empty({200, 100}), 0.2, kFanOut),
                 std::sqrt(3.0) * std::sqrt(2 / 1.04) / std::sqrt(200));
  expect_normal(init::kaiming_normal_(empty({200, 100}), 0, kFanIn, kReLU), 0, std::sqrt(2.0) / 10);
  expect_uniform(init::xavier_uniform_(empty({200, 100}), 2), 2 * std::sqrt(6.0 / 300));
  expect_normal(init::xavier_normal_(empty({200, 100})), 0, std::sqrt(2.0 / 300));
  expect_normal(init::kaiming_normal_(empty({50, 20, 5, 5})), 0, std::sqrt(2.0 / 500));
}

TEST_F(Init, UniformStaysBelowItsEndInSixteenBits) {
  for (const ScalarType t : {kHalf, kBFloat16}) {
    const Tensor end = full({}, 1.01, t), x = init::uniform_(empty({200, 100}, t), 1, 1.01);
    EXPECT_LT(x.max().item<double>(), end.item<double>());
  }
  EXPECT_ERROR_TEXT(init::uniform_(empty({3}, kHalf), 0, 1e5), "to is out of bounds for float16");
}

// As PyTorch's modules; a bias of no inputs is 0 there.
TEST_F(Init, WeightsWithoutElements) {
  EXPECT_EQ(init::kaiming_uniform_(empty({3, 0})).numel(), 0);
  EXPECT_EQ(init::kaiming_normal_(empty({0, 3}), 0, kFanOut).numel(), 0);
  EXPECT_EQ(init::xavier_uniform_(empty({0, 0})).numel(), 0);
  EXPECT_EQ(init::xavier_normal_(empty({0, 0})).numel(), 0);
  expect_values(Linear(0, 3)->bias.detach(), {0, 0, 0}, 0);
}

TEST_F(Init, Orthogonal) {
  for (auto [rows, cols] : {std::pair<int, int>{20, 30}, {30, 20}}) {
    Tensor w = init::orthogonal_(empty({rows, cols}, kDouble), 3);
    const Tensor product = rows < cols ? w.mm(w.t()) : w.t().mm(w);
    expect_values(product, values(eye(20, kDouble) * 9), 1e-12);
  }
  EXPECT_EQ(init::orthogonal_(empty({4, 2, 3})).size(2), 3);
}

TEST_F(Init, Sparse) {
  const Tensor w = init::sparse_(empty({40, 500}, kDouble), 0.3, 2);
  const Tensor zeros_per_column = (w == 0).sum(0);
  for (double v : values(zeros_per_column)) EXPECT_EQ(v, 12);
  EXPECT_NEAR(of(w).std, 2 * std::sqrt(0.7), 0.05);
}

TEST_F(Init, DefaultsOfModulesAreLibTorchs) {
  Linear linear(100, 200);
  expect_uniform(linear->weight, 0.1);
  expect_uniform(Linear(4, 50000)->bias, 0.5);
  Conv2d conv(Conv2dOptions(16, 200, 3).groups(2));
  expect_uniform(conv->weight, 1 / std::sqrt(72.0));
  expect_uniform(Conv2d(1, 30000, 2)->bias, 0.5);
  expect_normal(Embedding(200, 100)->weight, 0, 1);
}

TEST_F(Init, SameSeedSameValues) {
  const Tensor first = Linear(5, 5)->weight;
  manual_seed(7);
  EXPECT_TRUE(same_bits(Linear(5, 5)->weight, first));
  EXPECT_FALSE(same_bits(Linear(5, 5)->weight, first));
}

TEST_F(Init, OfMoreThanMemoryIsAnError) {
  const int64_t side = int64_t{1} << 30;
  const Tensor x = zeros({1, 1}).expand({side, side});
  EXPECT_THROW(init::eye_(x), Error);
  EXPECT_THROW(init::orthogonal_(x), Error);
  EXPECT_THROW(init::sparse_(x, 0.5), Error);
  EXPECT_THROW(init::dirac_(x.unsqueeze(2)), Error);
  EXPECT_EQ(init::sparse_(zeros({side, 0}), 0.5).size(0), side);
}

}  // namespace
}  // namespace ramet::nn
