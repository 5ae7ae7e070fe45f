// More of what ./tools/compare_torch found where LibTorch, or the formula, was right.
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor first(const Tensor& y, const Tensor& x) { return autograd::grad({y}, {x})[0]; }

TEST(Compared, WrittenPermutationToSecondOrder) {
  // y = x^T and x are doubled in place: gx = 2 (c0^T + c1), so <gx, v> has the slopes 2 v^T, 2 v.
  const Tensor memory = arange(10, kDouble).view({5, 2});
  const Tensor x = memory.detach().t().requires_grad_();
  ASSERT_EQ(x.strides(), IntArrayRef({1, 2}));
  const Tensor base = x.clone(), y = base.permute({1, 0});
  y.mul_(2);
  const Tensor c0 = arange(10, kDouble).view({5, 2}).detach().requires_grad_();
  const Tensor c1 = arange(10, kDouble).view({2, 5}).add(.5).detach().requires_grad_();
  const Tensor g = autograd::grad({y, base}, {x}, {c0, c1}, true, true)[0];
  const Tensor v = arange(10, kDouble).view({2, 5}).mul(.25);
  const In second = autograd::grad({g}, {c0, c1}, {v});
  EXPECT_TRUE(g.allclose(c0.t().add(c1).mul(2)));
  EXPECT_TRUE(second[0].allclose(v.t().mul(2)));
  EXPECT_TRUE(second[1].allclose(v.mul(2)));
}

// The slope at an infinite difference is that of the linear branch; at 0 the curvature is 1 / beta.
TEST(Compared, BentLossesAtInfiniteAndNoDifference) {
  for (const double bend : {.5, 2.}) {
    const Tensor t = leaf({0, 0, 0, 1, .25, 7});
    const Tensor x = leaf({kInf, -kInf, kNaN, 1, .5, -7});
    expect_values(first(smooth_l1_loss(x, t, Reduction::Sum, bend), x),
                  {1, -1, kNaN, 0, .25 / bend, -1});
    expect_values(first(huber_loss(x, t, Reduction::Sum, bend), x),
                  {bend, -bend, kNaN, 0, .25, -bend});
    expect_values(first(huber_loss(x, t, Reduction::Sum, bend), t),
                  {-bend, bend, kNaN, 0, -.25, bend});
  }
  const Tensor x = leaf({1, 0, 5}), t = constant({1, .25, 1});
  const Tensor g = autograd::grad({huber_loss(x, t, Reduction::Sum, 2)}, {x}, {}, true, true)[0];
  expect_values(first(g.sum(), x), {1, 1, 0});
}

// L = 1/4 sum l(x_i - t): the target's gradient is a quarter of the sum of the slopes.
TEST(Compared, MeanLossOfABroadcastTarget) {
  const Tensor x = constant({3, 1.5, .75, -1}), t = leaf({1}).sum().detach().requires_grad_();
  expect_values(first(huber_loss(x, t, Reduction::Mean, 1), t), {-(1 + .5 - .25 - 1) / 4});
  expect_values(first(smooth_l1_loss(x, t, Reduction::Mean, 1), t), {-(1 + .5 - .25 - 1) / 4});
  expect_values(first(mse_loss(x, t, Reduction::Mean), t), {-2 * (2 + .5 - .25 - 2) / 4});
}

TEST(Compared, CrossEntropyWithLogitsAtInfinity) {
  // (1 - t) x + softplus(-x): infinite unless the target agrees.
  const Tensor x = constant({kInf, kInf}), t = constant({.5, 0});
  expect_values(binary_cross_entropy_with_logits(x, t, {}, {}, Reduction::None), {kInf, kInf});
}

TEST(Compared, NormOfNothingAndOfZerosToSecondOrder) {
  for (const double p : {1., 1.5, 2., 3.}) {
    for (const int64_t n : {0, 3}) {
      const Tensor x = zeros({n}, kDouble).requires_grad_();
      const Tensor c = constant({2}).sum().detach().requires_grad_();
      const Tensor g = autograd::grad({x.norm(p)}, {x}, {c}, true, true)[0];
      const Tensor second = autograd::grad({g}, {c}, {ones({n}, kDouble)})[0];
      expect_values(second, {0});
    }
  }
}

// The divisor is max(0, n - correction), in the variance and in its gradient.
TEST(Compared, VarianceOfTooFewElements) {
  const Tensor x = leaf({3}).sum().detach().requires_grad_();
  for (const int correction : {1, 2, 3})
    expect_values(first(var(x, std::nullopt, Scalar(correction), false), x), {kNaN});
  const Tensor two = leaf({1, 2});
  expect_values(first(var(two, std::nullopt, Scalar(3), false), two), {-kInf, kInf});
  expect_values(var(zeros({0}, kDouble), std::nullopt, Scalar(-1), false), {kNaN});
  expect_values(var(zeros({2, 0}, kDouble), IntArrayRef({1}), Scalar(-1), false), {kNaN, kNaN});
}

TEST(Compared, ClampOfNaNBetweenCrossedBounds) {
  const Tensor x = leaf({kNaN, kNaN, 5}), low = constant({0, 2, 2}), high = constant({1, -1, -1});
  expect_values(first(x.clamp(low, high).sum(), x), {1, 1, 0});
}

TEST(Compared, ScatterOfNothingFromALongerSource) {
  const Tensor x = leaf({1, 2, 3}), source = leaf({5}), none = zeros({0}, kLong);
  for (const Tensor& y : {x.scatter_add(0, none, source), x.scatter(0, none, source)}) {
    expect_values(y, {1, 2, 3});
    const In g = autograd::grad({y.sum()}, {x, source});
    expect_values(g[0], {1, 1, 1});
    expect_values(g[1], {0});
  }
}

TEST(Compared, MaskedFillOfBoolByAFraction) {
  const Tensor x = zeros({2}, kBool), mask = constant({1, 0}).to(kBool);
  EXPECT_TRUE(x.masked_fill(mask, .97).equal(mask));
  EXPECT_FALSE(ones({2}, kBool).masked_fill(mask, 0.)[0].item<bool>());
  EXPECT_TRUE(x.clone().masked_fill_(mask, -.25).equal(mask));
}

// An in-place result keeps its dtype, whatever the other operand's is; so does its gradient.
TEST(Compared, GradientsOfInPlaceProductsKeepTheirDtype) {
  const Tensor x = constant({4, 9}).to(kFloat).requires_grad_(), w = leaf({.5, 2});
  for (int op = 0; op < 3; ++op) {
    const Tensor y = x.clone();
    if (op == 0) y.mul_(w);
    else if (op == 1) y.div_(w);
    else y.pow_(w);
    const In g = autograd::grad({y.sum()}, {x, w});
    EXPECT_EQ(g[0].scalar_type(), kFloat) << op;
    EXPECT_EQ(g[1].scalar_type(), kDouble) << op;
    expect_values(g[0].to(kDouble), op == 0   ? std::vector<double>{.5, 2}
                                    : op == 1 ? std::vector<double>{2, .5}
                                              : std::vector<double>{.25, 18});
  }
}

TEST(Compared, PowerOfWholeNumbersIsAsPreciseAsItsExponent) {
  const Tensor x = constant({3, 5}).to(kChar), p = leaf({1.5, -.75});
  expect_values(first(pow(x, p).sum(), p),
                {std::pow(3, 1.5) * std::log(3), std::pow(5, -.75) * std::log(5)});
}

// Derivatives of 1, x, x^2 and x^3 at 0: of x^0 no infinity comes in.
TEST(Compared, PowersOfZeroAnyNumberOfTimes) {
  for (const bool in_place : {false, true}) {
    const Tensor x = leaf({0, 0, 0, 0}), p = constant({0, 1, 2, 3});
    Tensor y = in_place ? (x * 1).pow_(p) : pow(x, p);
    for (const std::vector<double>& want :
         {std::vector<double>{0, 1, 0, 0}, {0, 0, 2, 0}, {0, 0, 0, 6}}) {
      y = autograd::grad({y.sum()}, {x}, {}, true, true)[0];
      expect_values(y, want);
    }
  }
}

TEST(Compared, CopyIntoWholeNumbersIsAConstant) {
  const Tensor x = leaf({1.5, 2}), y = zeros({2}, kInt);
  y.copy_(x);
  EXPECT_FALSE(y.requires_grad());
}

TEST(Compared, AlphaOfSums) {
  const Tensor b = zeros({2}, kBool), i = zeros({2}, kLong);
  Tensor out = zeros({2}, kFloat);
  EXPECT_THROW(add_out(out, b, b, .5), Error);
  EXPECT_THROW(sub_out(out, i, i, .5), Error);
  EXPECT_THROW(i.clone().add_(1, .5), Error);
  EXPECT_THROW(i.clone().sub_(i, .5), Error);
}

}  // namespace
}  // namespace ramet
