// What ./tools/compare_torch found: where LibTorch was right.
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

// d/dt of the loss is (p - 1) softplus(-x) - x. The derivative of that in x at 0 is -(p - 1) / 2 -
// 1. The two parts of the stable formula have no derivative there, one by one.
TEST(TorchFindings, SecondDerivativeOfBinaryCrossEntropyAtZero) {
  const Tensor x = leaf({0}), t = leaf({.25}), p = constant({3});
  const Tensor loss = binary_cross_entropy_with_logits(x, t, {}, p, Reduction::Sum);
  const Tensor dt = autograd::grad({loss}, {t}, {}, true, true)[0];
  expect_values(autograd::grad({dt}, {x})[0], {-2});
}

// An infinite bound that was given is one: what lies on it has no gradient. No bound has no such
// element.
TEST(TorchFindings, AnInfiniteBoundOfClampIsABound) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto gradient = [&](std::optional<Scalar> low, std::optional<Scalar> high) {
    const Tensor x = leaf({-inf, 1, 5, inf, nan});
    return autograd::grad({x.clamp(low, high)}, {x}, {full({5}, 2, kDouble)})[0];
  };
  expect_values(gradient(-inf, 5), {0, 2, 0, 0, 0});
  expect_values(gradient(std::nullopt, 5), {2, 2, 0, 0, 0});
  expect_values(gradient(0, inf), {0, 2, 2, 0, 0});
  expect_values(gradient(0, std::nullopt), {0, 2, 2, 2, 0});
  expect_values(gradient(-inf, inf), {0, 2, 2, 0, 0});
  expect_values(gradient(nan, 5), {0, 0, 0, 0, 0});
}

TEST(TorchFindings, SqueezeRefusesADimensionTwice) {
  const Tensor x = zeros({1, 1, 2});
  EXPECT_THROW(x.squeeze(IntArrayRef({0, 0})), Error);
  EXPECT_THROW(x.squeeze(IntArrayRef({0, -3})), Error);
  EXPECT_EQ(x.squeeze(IntArrayRef({0, 1})).sizes(), IntArrayRef({2}));
}

// Sizes at which int64 arithmetic wraps; tests/autograd/fuzz/fuzz_sizes.h draws more of them.
TEST(TorchFindings, SizesDoNotWrap) {
  const int64_t most = INT64_MAX;
  const Tensor x = varied({2, 3, 4});
  const Tensor last = x.slice(2, 1, most, most);
  EXPECT_EQ(last.sizes(), IntArrayRef({2, 3, 1}));
  EXPECT_EQ(last.numel(), 6);
  EXPECT_EQ(values(last), values(x.narrow(2, 1, 1)));
  EXPECT_EQ(x.slice(0, 1, most, most).sizes(), IntArrayRef({1, 3, 4}));
  EXPECT_ERROR_TEXT(split_with_sizes(x, {most, most, 6}, 2), "[split_with_sizes]");
  EXPECT_ERROR_TEXT(split(x, {most, 5 - most}, 2), "[split_with_sizes]");
  const std::vector<Tensor> pieces = chunk(x, most, 2);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(values(pieces[3]), values(x.select(2, 3)));
  EXPECT_ERROR_TEXT(zeros({0}).chunk(most), "[chunk] parts: got 9223372036854775807");
  EXPECT_ERROR_TEXT(zeros({1}).expand({most}).unbind(), "[unbind] parts");
  const std::vector<Tensor> halves = zeros({1}).expand({most}).split(int64_t{1} << 62);
  ASSERT_EQ(halves.size(), 2u);
  EXPECT_EQ(halves[1].size(0), (int64_t{1} << 62) - 1);
  const Tensor half = zeros({1}).expand({int64_t{1} << 62});
  EXPECT_ERROR_TEXT(cat({half, half}), "[cat] sizes of the joined dimension");
  EXPECT_ERROR_TEXT(x.repeat({1, 1, most}), "[repeat] size");
  EXPECT_EQ(eye(0, most).sizes(), IntArrayRef({0, most}));
  EXPECT_ERROR_TEXT(arange(most, most - 1, most), "inconsistent with step sign");
  EXPECT_ERROR_TEXT(one_hot(zeros({2}, kLong), INT64_MIN), "[one_hot] num_classes");
  EXPECT_ERROR_TEXT(zeros({2}).random_(INT64_MIN, INT64_MIN), "[random_]");
  float memory[1] = {};
  EXPECT_ERROR_TEXT(from_blob(memory, {3, 3}, {most, most}), "[from_blob]");
  // Ranks above 64, and dimensions of a tensor that has none, read past their ends.
  Tensor deep = zeros({1});
  while (deep.dim() < 64) deep = deep.unsqueeze(0);
  EXPECT_ERROR_TEXT(deep.unsqueeze(0), "rank: got 65");
  EXPECT_ERROR_TEXT(zeros({}).unflatten(0, {1}), "[unflatten]");
}

// Rows of no columns, more than a loop could go through.
TEST(TorchFindings, AdaptivePoolsOfNothing) {
  const Tensor x = varied_leaf({1, 1, 2, 2});
  const Tensor y = adaptive_avg_pool2d(x, {int64_t{1} << 45, 0});
  EXPECT_EQ(y.sizes(), IntArrayRef({1, 1, int64_t{1} << 45, 0}));
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 0, 0, 0}));
}

TEST(TorchFindings, AccessorsKnowTheirRank) {
  const Tensor x = varied({2, 3});
  const auto a = x.accessor<double, 2>();
  EXPECT_EQ(a.size(1) * a.stride(0), 9);
  EXPECT_THROW(a.size(2), Error);
  EXPECT_THROW(a[0].stride(1), Error);
}

TEST(TorchFindings, ToTakesOptionsThatRequireNoGradient) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x.to(x.options().requires_grad(false).dtype(kFloat));
  EXPECT_TRUE(y.requires_grad() && y.scalar_type() == kFloat);
  EXPECT_TRUE(x.to(TensorOptions().requires_grad(false)).is_same(x));
  EXPECT_ERROR_TEXT(x.to(TensorOptions().requires_grad(true)),
                    "to(options) expects unset requires_grad flag");
}

TEST(TorchFindings, GradOfNothingIsRefused) {
  const Tensor x = leaf({1, 2});
  EXPECT_ERROR_TEXT(autograd::grad({x.sum()}, {}), "requires non-empty inputs");
  EXPECT_THROW(autograd::grad({}, {x}), Error);
  EXPECT_THROW(autograd::backward({}), Error);
}

TEST(TorchFindings, GradGivesATensorThatRetainsItsGradientOne) {
  const Tensor p = leaf({1, 2, 3}), x = p * 1;
  x.retain_grad();
  autograd::grad({x.sum()}, {p}, {}, true);
  EXPECT_TRUE(x.grad().defined() && !p.grad().defined());
}

TEST(TorchFindings, HooksThatAreNotThereCannotBeRemoved) {
  const Tensor x = leaf({1, 2});
  int calls = 0, steps = 0;
  const auto refused = [](const Tensor& t, unsigned id) {
    return error_of([&] { t.remove_hook(id); }).find("handle: got") != std::string::npos;
  };
  EXPECT_TRUE(refused(x, 0) && refused(constant({1}), 0) && refused(Tensor(), 0));
  const unsigned hook = x.register_hook([&](const Tensor&) { ++calls; });
  const unsigned post = x.register_post_accumulate_grad_hook([&](const Tensor&) { ++steps; });
  EXPECT_NE(hook, post);
  EXPECT_TRUE(refused(x, post + 1));
  x.sum().backward();
  x.remove_hook(hook);
  x.sum().backward();
  x.remove_hook(post);
  x.sum().backward();
  EXPECT_TRUE(calls == 1 && steps == 2);
  EXPECT_TRUE(refused(x, hook) && refused(x, post));
}

// As the other losses: a difference of truth values is one of their common floating type.
TEST(TorchFindings, BentLossesOfTruthValues) {
  const Tensor truth = constant({1, 0}).to(kBool), x = leaf({.5, 3});
  for (const bool first : {true, false}) {
    const Tensor a = first ? truth : x, b = first ? x : truth;
    const Tensor smooth = smooth_l1_loss(a, b, Reduction::Sum, 1), huber = huber_loss(a, b, 2, 2);
    expect_values(smooth.view({1}), {.125 + 2.5});
    expect_values(huber.view({1}), {.125 + 4});
    expect_values(autograd::grad({smooth}, {x})[0], {-.5, 1});
    expect_values(autograd::grad({huber}, {x})[0], {-.5, 2});
  }
}

// A block may end before the image begins.
TEST(TorchFindings, BlocksOfPaddingAlone) {
  expect_values(im2col(ones({1, 1, 5, 5}), {1, 1}, {1, 1}, {3, 3}, {100, 100}).view({1}), {0});
}

TEST(TorchFindings, BagsOfNothingNameNoRow) {
  Tensor weight = zeros({0, 3}).requires_grad_();
  const Tensor none = zeros({0}, kLong);
  std::get<0>(embedding_bag(weight, none, zeros({2}, kLong), false, 2)).sum().backward();
  EXPECT_EQ(weight.grad().sizes(), IntArrayRef({0, 3}));
}

// A batch of one 1 x 1 matrix: a vector that became a matrix is no batch of vectors.
TEST(TorchFindings, SolvesForOneNumber) {
  const Tensor a = full({1, 1, 1}, 4, kDouble), b = constant({2});
  const Tensor x = linalg_solve(a, b);
  EXPECT_EQ(x.sizes(), IntArrayRef({1, 1}));
  EXPECT_EQ(x.item<double>(), .5);
  EXPECT_EQ(linalg_solve(a, b.view({1, 1})).sizes(), IntArrayRef({1, 1}));
  EXPECT_EQ(linalg_solve(a, b.view({1, 1, 1})).sizes(), IntArrayRef({1, 1, 1}));
  EXPECT_EQ(linalg_solve(a.expand({3, 1, 1}), b).sizes(), IntArrayRef({3, 1}));
}

// Brackets of equal cost: three are multiplied from the left, more from the right.
TEST(TorchFindings, EqualBracketsOfChains) {
  const Tensor large = full({1, 1}, 1e300, kDouble), small = full({1, 1}, 1e-300, kDouble);
  EXPECT_TRUE(std::isinf(chain_matmul({large, large, small}).item<double>()));
  EXPECT_TRUE(std::isinf(linalg_multi_dot({large, large, small}).item<double>()));
  EXPECT_EQ(linalg_multi_dot({large, large, small, small}).item<double>(), 0);
}

// One number of another dtype is cast, whatever its dimensions.
TEST(TorchFindings, IndexPutOfOneNumber) {
  const std::vector<std::optional<Tensor>> at{constant({1, 0, 1}).to(kBool)};
  const Tensor x = leaf({1, 2, 3}), y = ones({1}).mul(5).requires_grad_();
  Tensor z = x.clone();
  index_put_(z, at, tensor({7}));
  expect_values(z, {7, 2, 7});
  const Tensor put = index_put(x, at, y);
  expect_values(put, {5, 2, 5});
  const std::vector<Tensor> g = autograd::grad({put}, {x, y}, {constant({1, 10, 100})});
  expect_values(g[0], {0, 10, 0});
  EXPECT_EQ(g[1].dtype(), kFloat);
  expect_values(g[1].to(kDouble), {101});
  EXPECT_THROW(index_put_(z, at, tensor({7, 8})), Error);
}

// 700 x 100 is more than float16 holds.
TEST(TorchFindings, HistogramOf16Bits) {
  const Tensor counts = histc(constant({0, 700, 1000}).to(kHalf), 100, 0, 1000);
  EXPECT_EQ(counts.dtype(), kHalf);
  EXPECT_TRUE(counts[0].item<float>() == 1 && counts[70].item<float>() == 1 &&
              counts[99].item<float>() == 1);
}

using In = std::vector<Tensor>;

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
