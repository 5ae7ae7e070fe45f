// Random fills, draws and dropout through their fronts: the generator, shapes, layouts, errors,
// gradients. The numbers themselves are the subject of tests/kernels/random/random_test.cc.
#include "autograd/ops/random/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/autograd.h"
#include "autograd/graph/node.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using V = std::vector<double>;

TEST(RandomFronts, ASeedRepeatsAndOperationsDiffer) {
  manual_seed(7);
  const V a = values(rand({100})), b = values(rand({100})), n = values(randn({100}));
  manual_seed(7);
  EXPECT_EQ(values(rand({100})), a);
  EXPECT_EQ(values(rand({100})), b);
  EXPECT_EQ(values(randn({100})), n);
  EXPECT_NE(a, b);
  manual_seed(8);
  EXPECT_NE(values(rand({100})), a);
}

TEST(RandomFronts, AGeneratorOfOnesOwnLeavesTheDefaultAlone) {
  manual_seed(1);
  const V want = values(rand({10}));
  manual_seed(1);
  Generator g(Device(kCPU, 0), 5), same(Device(kCPU, 0), 5);
  const V own = values(rand({10}, g));
  EXPECT_EQ(values(rand({10}, same)), own);
  EXPECT_NE(own, want);
  EXPECT_EQ(values(rand({10})), want);
  EXPECT_EQ(values(randperm(10, Generator(Device(kCPU, 0), 3))),
            values(randperm(10, Generator(Device(kCPU, 0), 3))));
}

TEST(RandomFronts, TheNumbersDoNotDependOnTheDevice) {
  manual_seed(3);
  const V a = values(randn({50}));
  manual_seed(3);
  EXPECT_EQ(values(randn({50}, Device(kCPU, 1))), a);
}

TEST(RandomFronts, ElementsAreNumberedRowMajorWhateverTheLayout) {
  manual_seed(4);
  const Tensor dense = empty({3, 4}, kDouble).uniform_(-1, 1);
  manual_seed(4);
  const Tensor turned = empty({4, 3}, kDouble).t().uniform_(-1, 1);
  EXPECT_EQ(values(turned), values(dense));
  manual_seed(4);
  Tensor wide = zeros({3, 8}, kDouble);
  wide.slice(1, 0, 8, 2).uniform_(-1, 1);
  EXPECT_EQ(values(wide.slice(1, 0, 8, 2)), values(dense));
  EXPECT_EQ(values(wide.slice(1, 1, 8, 2)), V(12, 0));
}

TEST(RandomFronts, Types) {
  EXPECT_EQ(randint(4, {3}).scalar_type(), kLong);
  EXPECT_EQ(randint(4, {3}, kFloat).scalar_type(), kFloat);
  EXPECT_EQ(rand({2}, requires_grad()).requires_grad(), true);
  EXPECT_EQ(randint_like(zeros({2, 3}), 5).scalar_type(), kFloat);
}

TEST(RandomFronts, NormalWithTensors) {
  manual_seed(2);
  const Tensor mean = arange(3, kDouble), std = zeros({2, 1}, kDouble);
  EXPECT_EQ(values(normal(mean, std)), (V{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(values(normal(mean, 0.0)), (V{0, 1, 2}));
  EXPECT_EQ(normal(0.0, ones({4})).sizes(), (IntArrayRef{4}));
  EXPECT_TRUE(normal(mean.clone().requires_grad_(), std).requires_grad());
}

TEST(RandomFronts, ARefusedDrawLeavesTheGenerator) {
  const Tensor x = ones({4}), whole = ones({4}, kLong);
  const auto offset = [] { return default_generator(Device(kCPU, 0)).get_state().offset; };
  const uint64_t before = offset();
  EXPECT_THROW(normal(x, -1.), Error);
  EXPECT_THROW(normal(x, -x), Error);
  EXPECT_THROW(normal(0., -x), Error);
  EXPECT_THROW(normal(x, ones({3})), Error);
  EXPECT_THROW(x.clone().normal_(0, -1), Error);
  EXPECT_THROW(x.clone().uniform_(2, 1), Error);
  EXPECT_THROW(x.clone().exponential_(-1), Error);
  EXPECT_THROW(x.clone().random_(5, 1), Error);
  EXPECT_THROW(x.clone().bernoulli_(x * 2), Error);
  EXPECT_THROW(bernoulli(x, 2.), Error);
  EXPECT_THROW(bernoulli(x * 2), Error);
  EXPECT_THROW(multinomial(x, 9), Error);
  EXPECT_THROW(randint(5, 1, {2}), Error);
  EXPECT_THROW(randperm(-1), Error);
  EXPECT_THROW(dropout(whole, 0.5, true), Error);
  EXPECT_THROW(dropout(x, 2, true), Error);
  EXPECT_EQ(offset(), before);
}

TEST(RandomFronts, BernoulliFollowsItsProbabilities) {
  manual_seed(5);
  const Tensor p = tensor({0., 1., 0.5}).expand({1000, 3});
  const V v = values(bernoulli(p));
  double sum[3] = {};
  for (size_t i = 0; i < v.size(); ++i) sum[i % 3] += v[i];
  EXPECT_EQ(sum[0], 0);
  EXPECT_EQ(sum[1], 1000);
  EXPECT_NEAR(sum[2], 500, 80);
  EXPECT_EQ(values(bernoulli(zeros({3}), 1.0)), V(3, 1));
  EXPECT_EQ(values(zeros({2, 3}, kLong).bernoulli_(tensor({1., 0., 1.}))), (V{1, 0, 1, 1, 0, 1}));
}

TEST(RandomFronts, Randperm) {
  manual_seed(6);
  EXPECT_NE(values(randperm(1000)), values(randperm(1000)));
  int first[3] = {};  // every element comes first equally often
  for (int i = 0; i < 3000; ++i) ++first[static_cast<int>(values(randperm(3))[0])];
  for (int f : first) EXPECT_NEAR(f, 1000, 150);
  EXPECT_ERROR_TEXT(randperm(300, kByte), "too large");
  EXPECT_ERROR_TEXT(randperm(-1), "non-negative");
}

TEST(RandomFronts, Multinomial) {
  manual_seed(9);
  const Tensor weights = tensor({0., 3., 1., 0., 6.});
  const V drawn = values(multinomial(weights, 5000, true));
  double count[5] = {};
  for (double d : drawn) ++count[static_cast<int>(d)];
  EXPECT_EQ(count[0] + count[3], 0);
  EXPECT_NEAR(count[1] / 5000, 0.3, 0.035);
  EXPECT_NEAR(count[4] / 5000, 0.6, 0.035);
  double first = 0;
  for (int i = 0; i < 2000; ++i) {
    V once = values(multinomial(weights, 3));
    first += once[0] == 4;
    std::sort(once.begin(), once.end());
    ASSERT_EQ(once, (V{1, 2, 4}));
  }
  EXPECT_NEAR(first / 2000, 0.6, 0.055);
  EXPECT_EQ(values(multinomial(tensor({-0., 1.}), 1)), (V{1})) << "-0 is no probability either";
  for (int i = 0; i < 20; ++i)  // -log(1 - u) / 1e-310 is infinite: it is chosen before a 0
    EXPECT_EQ(values(multinomial(full({2}, 1e-310, kDouble).mul(tensor({0., 1.}).to(kDouble)), 1)),
              (V{1}));
  EXPECT_EQ(multinomial(ones({3, 4}), 2).sizes(), (IntArrayRef{3, 2}));
  EXPECT_ERROR_TEXT(multinomial(weights, 4), "not enough non-negative category");
  EXPECT_ERROR_TEXT(multinomial(weights, 6), "without replacement");
  EXPECT_ERROR_TEXT(multinomial(-weights, 1), "element < 0");
  EXPECT_ERROR_TEXT(multinomial(zeros({3}), 1), "sum of probabilities <= 0");
  EXPECT_ERROR_TEXT(multinomial(ones({3}, kLong), 1), "floating-point");
}

// PyTorch's: gradients of zeros, or an Error in the backward where it has none.
TEST(RandomFronts, WhatIsDrawnHasLibTorchsHistory) {
  const Tensor x = full({3, 4}, .5).requires_grad_(), row = full({4}, .25).requires_grad_();
  const auto zeros_of = [&](const char* node, const Tensor& drawn) {
    EXPECT_TRUE(drawn.requires_grad());
    EXPECT_EQ(drawn.grad_fn()->name(), std::string(node));
    EXPECT_FALSE(drawn.is_leaf());
    x.mutable_grad() = row.mutable_grad() = Tensor();
    (drawn * 3 + x * 0 + row * 0).sum().backward();
    EXPECT_EQ(values(x.grad()), V(12));
    EXPECT_EQ(values(row.grad()), V(4));
    EXPECT_EQ(row.grad().sizes(), row.sizes());
  };
  zeros_of("BernoulliBackward0", bernoulli(x));
  zeros_of("NormalBackward1", normal(x, 2.));
  zeros_of("NormalBackward2", normal(2., x));
  zeros_of("NormalBackward3", normal(x, row));
  zeros_of("NormalBackward3", normal(row, x.detach().expand({2, 3, 4})));
  zeros_of("PoissonBackward0", poisson(x));
  Tensor filled = x * 1;
  EXPECT_EQ(filled.bernoulli_(.5).grad_fn()->name(), std::string("BernoulliBackward2"));
  for (const Tensor& drawn :
       {bernoulli(x, .5), binomial(full({3, 4}, 5.), x), _sample_dirichlet(x)}) {
    EXPECT_EQ(drawn.grad_fn()->name(), std::string("NotImplemented"));
    EXPECT_ERROR_TEXT(drawn.sum().backward(), "is not implemented");
  }
  const NoGradGuard off;
  EXPECT_FALSE(bernoulli(x).requires_grad());
  EXPECT_FALSE(bernoulli(x, .5).requires_grad());
  EXPECT_FALSE(normal(x, row).requires_grad());
}

// Shares: their sum, their means and variances by the distribution's formulas.
TEST(RandomFronts, Dirichlet) {
  manual_seed(21);
  const std::vector<double> alpha{0.3, 1, 4.7};
  const double whole = 6;
  const int64_t n = 40000;
  for (const ScalarType t : {kFloat, kDouble}) {
    const Tensor rows = _sample_dirichlet(tensor(alpha).to(t).expand({n, 3}));
    EXPECT_EQ(rows.scalar_type(), t);
    EXPECT_EQ(rows.sizes().vec(), (std::vector<int64_t>{n, 3}));
    EXPECT_LT((rows.to(kDouble).sum(1) - 1).abs().max().item<double>(), 1e-6);
    EXPECT_GE(rows.min().item<double>(), 0);
    const Tensor wide = rows.to(kDouble), mean = wide.mean(0), variance = wide.var(0);
    for (int64_t i = 0; i < 3; ++i) {
      const double share = alpha[static_cast<size_t>(i)] / whole,
                   spread = share * (1 - share) / (whole + 1);
      EXPECT_NEAR(mean[i].item<double>(), share, 5 * std::sqrt(spread / double(n)));
      EXPECT_NEAR(variance[i].item<double>() / spread, 1, 0.05);
    }
  }
  // All of it goes to one of them where concentrations are small, and no share is NaN.
  for (const double tiny : {1e-3, 1e-30}) {
    const Tensor one = _sample_dirichlet(full({500, 4}, tiny));
    EXPECT_LT((one.sum(1) - 1).abs().max().item<double>(), 1e-6);
    EXPECT_GT(std::get<0>(one.max(1)).median().item<double>(), 0.99);
    const Tensor which = std::get<1>(one.max(1));
    for (int64_t k = 0; k < 4; ++k) EXPECT_NEAR(which.eq(k).sum().item<double>() / 500, .25, .08);
  }
  EXPECT_LT((_sample_dirichlet(full({1000}, 1e30)) * 1000 - 1).abs().max().item<double>(), 1e-4);
  EXPECT_EQ(values(_sample_dirichlet(tensor(0.5))), (std::vector<double>{1}));
  EXPECT_EQ(_sample_dirichlet(empty({0})).numel(), 0);
  EXPECT_EQ(_sample_dirichlet(empty({2, 0})).sizes().vec(), (std::vector<int64_t>{2, 0}));
  EXPECT_NEAR(_sample_dirichlet(ones({8}, kHalf)).sum().item<double>(), 1, 4e-3);
  Generator a(Device(kCPU, 0), 5), b(Device(kCPU, 0), 5);
  EXPECT_EQ(values(_sample_dirichlet(ones({9}), a)), values(_sample_dirichlet(ones({9}), b)));
  // Refused before anything is drawn.
  const GeneratorState before = default_generator(Device(kCPU, 0)).get_state();
  for (const double bad : {0.0, -1.0, double(NAN), HUGE_VAL})
    EXPECT_ERROR_TEXT(_sample_dirichlet(tensor({1.0, bad})),
                      "[_sample_dirichlet] expected every concentration to be above 0");
  EXPECT_ERROR_TEXT(_sample_dirichlet(ones({2}, kLong)), "[_sample_dirichlet]");
  EXPECT_TRUE(default_generator(Device(kCPU, 0)).get_state() == before);
}

TEST(RandomFronts, InPlaceFillsCountAsWritesAndCutHistory) {
  const Tensor x = varied_leaf({4});
  EXPECT_ERROR_TEXT(x.normal_(), "leaf Variable that requires grad");
  Tensor h = x * 2;
  const uint32_t version = h.version();
  h.uniform_();
  EXPECT_GT(h.version(), version);
  (h + x).sum().backward();
  EXPECT_EQ(values(x.grad()), V(4, 1));
  EXPECT_ERROR_TEXT(zeros({2}, kLong).uniform_(), "[uniform_]");
  EXPECT_ERROR_TEXT(zeros({2}).uniform_(1, 0), "from=1");
  EXPECT_ERROR_TEXT(zeros({2}).normal_(0, -1), "std");
  EXPECT_ERROR_TEXT(zeros({2}).bernoulli_(1.5), "p=1.5");
  EXPECT_ERROR_TEXT(zeros({2}).random_(3, 3), "'from' to be less than 'to'");
  EXPECT_ERROR_TEXT(zeros({2}, kByte).random_(0, 300), "uint8");
}

TEST(RandomFronts, Dropout) {
  manual_seed(20);
  const Tensor x = (varied({100, 50}) + 3).requires_grad_();
  const Tensor y = dropout(x, 0.25, true);
  const V in = values(x), out = values(y);
  size_t kept = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    ASSERT_TRUE(out[i] == 0 || std::fabs(out[i] - in[i] / 0.75) < 1e-12);
    kept += out[i] != 0;
  }
  EXPECT_NEAR(static_cast<double>(kept) / 5000, 0.75, 0.03);
  y.sum().backward();
  const V g = values(x.grad());
  for (size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(g[i], out[i] != 0 ? 1 / 0.75 : 0, 1e-12);
  EXPECT_TRUE(dropout(x, 0.25, false).is_same(x));
  EXPECT_TRUE(dropout(x, 0, true).is_same(x));
  EXPECT_EQ(values(dropout(x, 1, true)), V(5000, 0));
  EXPECT_ERROR_TEXT(dropout(x, 1.5, true), "between 0 and 1");
  EXPECT_ERROR_TEXT(dropout(ones({2}, kLong), 0.5, true), "[dropout]");

  const Tensor small = varied_leaf({3, 4});
  manual_seed(22);
  const V want = values(dropout(small, 0.5, true));
  manual_seed(22);
  Tensor h = small * 1;
  dropout_(h, 0.5, true);
  EXPECT_EQ(values(h), want);
  manual_seed(22);
  // by row-major index
  EXPECT_EQ(values(dropout(small.detach().t().contiguous().t(), 0.5, true)), want);
}

TEST(RandomFronts, FeatureDropoutDropsWholeChannels) {
  manual_seed(23);
  const Tensor x = ones({20, 10, 3, 2}, kDouble).requires_grad_();
  const Tensor y = feature_dropout(x, 0.4, true);
  const V v = values(y);
  double kept = 0;
  for (size_t c = 0; c < 200; ++c) {
    for (size_t i = 1; i < 6; ++i) ASSERT_EQ(v[c * 6 + i], v[c * 6]);
    ASSERT_TRUE(v[c * 6] == 0 || std::fabs(v[c * 6] - 1 / 0.6) < 1e-12);
    kept += v[c * 6] != 0;
  }
  EXPECT_NEAR(kept / 200, 0.6, 0.13);
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), v);
  EXPECT_ERROR_TEXT(feature_dropout(ones({3}), 0.5, true), "at least 2 dimensions");
}

TEST(RandomFronts, AReplicaDrawsItsPartOfTheBatch) {  // Note [Random numbers]
  auto draws = [](const std::vector<std::pair<int64_t, int64_t>>& shards) {
    manual_seed(30);
    V all, masks;
    RandomRegion region(Device(kCPU, 0));
    for (size_t s = 0; s < shards.size(); ++s) {
      ReplicaRandomGuard guard(
          region.shard(static_cast<int64_t>(s), shards[s].first, shards[s].second));
      const V noise = values(randn({shards[s].second, 5}, kDouble)),
              kept = values(dropout(ones({shards[s].second, 7}, kDouble), 0.5, true));
      all.insert(all.end(), noise.begin(), noise.end());
      masks.insert(masks.end(), kept.begin(), kept.end());
    }
    region.close();
    all.insert(all.end(), masks.begin(), masks.end());
    const V after = values(rand({3}, kDouble));
    all.insert(all.end(), after.begin(), after.end());
    return all;
  };
  const V one = draws({{0, 8}});
  EXPECT_EQ(draws({{0, 4}, {4, 4}}), one);
  EXPECT_EQ(draws({{0, 3}, {3, 3}, {6, 2}}), one);
}

}  // namespace
}  // namespace ramet
