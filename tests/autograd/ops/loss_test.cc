// Losses against PyTorch 2.15 and differences.
#include "autograd/ops/loss/loss.h"

#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/layers/softmax.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;
using Values = std::vector<double>;

Tensor logits() {
  return constant({1.5, -2.0, 0.25, 0.5, 3.0, -1.0}).view({2, 3}).detach().requires_grad_();
}
Tensor weights() { return constant({0.5, 1, 2}); }

// Weights, smoothing and reductions together; the operation table has them one by one.
TEST(CrossEntropy, OptionsTogetherAsPyTorch) {
  const Tensor x = logits(), t = integers({2, 0}),
               p = constant({.2, .3, .5, .6, .1, .3}).view({2, 3});
  expect_values(cross_entropy_loss(x, t, {}, Reduction::Mean, -100, 0.1), {2.060402295831009});
  expect_values(cross_entropy_loss(x, t, weights(), Reduction::Mean, -100, 0.1),
                {1.7859527157237807});
  expect_values(cross_entropy_loss(x, t, weights(), Reduction::None, -100, 0.2),
                {2.904405480787332, 1.677260408629109});
  expect_values(cross_entropy_loss(x, p, weights(), Reduction::Mean, -100, 0.1),
                {2.9446824479661005});
}

// The same loss and gradient, in the logits' memory.
TEST(CrossEntropyConsuming, AsTheOther) {
  const Tensor target = integers({2, 0});
  for (ScalarType t : {kDouble, kFloat})
    for (const std::optional<Tensor>& weight :
         {std::optional<Tensor>(), std::optional<Tensor>(weights().to(t))})
      for (double smoothing : {0.0, 0.1})
        for (int64_t ignored : {-100, 0})
          for (int64_t reduction : {Reduction::Mean, Reduction::Sum})
            for (double seed : {1.0, 3.0}) {
              const Tensor a = logits().to(t).detach().requires_grad_(),
                           b = a.detach().clone().requires_grad_();
              const Tensor x = b.mul(1);
              const Tensor want =
                               cross_entropy_loss(a, target, weight, reduction, ignored, smoothing),
                           got = cross_entropy_loss_consuming(x, target, weight, reduction, ignored,
                                                              smoothing);
              expect_values(got, values(want.detach()), t == kFloat ? 1e-6 : 1e-13);
              want.mul(seed).backward(), got.mul(seed).backward();
              expect_values(b.grad(), values(a.grad()), t == kFloat ? 1e-6 : 1e-13);
              expect_values(x.detach(), values(a.grad()), t == kFloat ? 1e-6 : 1e-13);
            }
}

TEST(CrossEntropyConsuming, WhatIsGone) {
  const Tensor target = integers({2, 0}), leaf = logits();
  const auto refused = [&](const std::function<void()>& f, const char* part) {
    const std::string text = error_of(f);
    expect_part(text, std::string("[cross_entropy_loss_consuming] ") + part);
  };
  refused([&] { cross_entropy_loss_consuming(leaf, target); }, "input: got a leaf");
  refused(
      [&] {
        cross_entropy_loss_consuming(leaf.view({2, 3}), target);
      },
      "input: got a leaf, a view of one");
  // A view of another result is one.
  const Tensor x1 = logits(), x2 = logits();
  cross_entropy_loss_consuming(x1.mul(1).view({6}).view({2, 3}), target).backward();
  cross_entropy_loss(x2, target).backward();
  expect_values(x1.grad(), values(x2.grad()), 1e-13);
  refused(
      [&] {
        cross_entropy_loss_consuming(leaf.mul(1).t(), integers({0, 1, 0}));
      },
      "input: got ");
  refused([&] { cross_entropy_loss_consuming(leaf.mul(1), target, {}, Reduction::None); },
          "reduction: got Reduction::None");
  refused([&] { cross_entropy_loss_consuming(constant({1, 2}), target); }, "input: got ");
  // A node that saved the logits finds other values there.
  Tensor x = leaf.mul(1);
  const Tensor square = x.mul(x);
  cross_entropy_loss_consuming(x, target);
  EXPECT_ERROR_TEXT(square.sum().backward(), "cross_entropy_loss_consuming");
  // Once, and not twice differentiable.
  x = leaf.mul(1);
  Tensor loss = cross_entropy_loss_consuming(x, target);
  loss.backward({}, true);
  refused([&] { loss.backward({}, true); }, "the gradient of these logits");
  x = leaf.mul(1);
  loss = cross_entropy_loss_consuming(x, target);
  EXPECT_THROW(autograd::grad({loss.mul(leaf.sum())}, {leaf}, {}, true, true), NotImplementedError);
  // Without a gradient nothing is overwritten.
  const Tensor plain = leaf.detach();
  expect_values(cross_entropy_loss_consuming(plain, target), {2.060402295831009});
  expect_values(plain, values(logits().detach()), 0);
}

TEST(CrossEntropy, OfNothing) {
  const Tensor none = constant({}).view({0, 3});
  expect_values(cross_entropy_loss(none, integers({})), {std::numeric_limits<double>::quiet_NaN()});
  expect_values(cross_entropy_loss(none, integers({}), {}, Reduction::Sum), {0});
}

// Pixels side by side, and the same pixels as rows: other kernels on a CPU.
TEST(CrossEntropy, ImagesAreRows) {
  const Tensor target = arange(2 * 18).remainder(4).to(kLong).view({2, 18}),
               w = constant({0.5, 1, 2, 0.25});
  for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum})
    for (double smoothing : {0.0, 0.1})
      for (bool log_probs : {false, true})
        for (const std::optional<Tensor>& weight :
             {std::optional<Tensor>(), std::optional<Tensor>(w)}) {
          const auto loss = [&](const Tensor& x, const Tensor& t) {
            return log_probs ? nll_loss_nd(x, t, weight, reduction, 3)
                             : cross_entropy_loss(x, t, weight, reduction, 3, smoothing);
          };
          const Tensor x = varied({2, 4, 18}).detach().requires_grad_(),
                       same = x.detach().clone().requires_grad_(),
                       rows = same.transpose(1, 2).reshape({36, 4}),
                       want = loss(rows, target.view(-1)), got = loss(x, target);
          expect_values(got.detach(), values(want.detach()), 1e-13);
          const Tensor g = varied({36}, 7).narrow(0, 0, got.numel());
          got.backward(g.reshape(got.sizes())), want.backward(g.reshape(want.sizes()));
          expect_values(x.grad(), values(same.grad()), 1e-13);
          expect_derivatives(OF_X(loss(x[0], target)), {varied_leaf({2, 4, 18})});
        }
}

TEST(CrossEntropy, Errors) {
  const Tensor x = logits();
  EXPECT_ERROR_TEXT(cross_entropy_loss(x, integers({0, 3})),
                    "[cross_entropy_loss] index out of range: got 3 at position 1");
  EXPECT_THROW(nll_loss(x, integers({-1, 0})), IndexError);
  EXPECT_ERROR_TEXT(cross_entropy_loss(x, integers({0})), "got input [2, 3] and target [1]");
  EXPECT_ERROR_TEXT(cross_entropy_loss(x, constant({0, 1})), "expected scalar type Long");
  EXPECT_ERROR_TEXT(cross_entropy_loss(x, integers({0, 1}), constant({1})),
                    "weight tensor should be defined");
  EXPECT_THROW(cross_entropy_loss(x, integers({0, 1}), leaf({1, 1, 1})), NotImplementedError);
  EXPECT_ERROR_TEXT(cross_entropy_loss(x, integers({0, 1}), {}, 7), "reduction: got 7");
  EXPECT_ERROR_TEXT(nll_loss(varied({2, 3, 4}), integers({0})), "1D or 2D");
}

TEST(CrossEntropy, Derivatives) {
  const Tensor x = varied_leaf({4, 3}), t = integers({2, 0, -100, 1});
  for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum})
    for (double smoothing : {0.0, 0.2})
      for (bool weighted : {false, true}) {
        const std::optional<Tensor> w = weighted ? std::optional<Tensor>(weights()) : std::nullopt;
        expect_derivatives(OF_X(cross_entropy_loss(x[0], t, w, reduction, -100, smoothing)), {x});
        if (smoothing == 0) expect_derivatives(OF_X(nll_loss(x[0].square(), t, w, reduction)), {x});
      }
  const Tensor p = varied_leaf({4, 3}, 5);
  expect_derivatives(OF_X(cross_entropy_loss(x[0], x[1], weights(), Reduction::Mean, -100, 0.1)),
                     {x, p});
  expect_derivatives(OF_X(cross_entropy_loss(x[0], integers({1, 0, 2, 2, 1, 0}, {2, 3}))),
                     {varied_leaf({2, 3, 3}, 7)});
  EXPECT_EQ(cross_entropy_loss(x, t).grad_fn()->name(), "CrossEntropyLossBackward0");
  EXPECT_EQ(nll_loss(x, t).grad_fn()->name(), "NllLossBackward0");
}

// LibTorch takes positions in uint8, too, where the input has no more dimensions than [n, classes].
TEST(CrossEntropy, TargetsOfBytes) {
  const Tensor x = logits(), at = integers({2, 0}), bytes = at.to(kByte);
  for (const int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum}) {
    const Tensor a = cross_entropy_loss(x, at, {}, reduction);
    const Tensor b = cross_entropy_loss(x, bytes, {}, reduction);
    EXPECT_EQ(values(b), values(a));
    EXPECT_EQ(values(autograd::grad({b.sum()}, {x})[0]), values(autograd::grad({a.sum()}, {x})[0]));
    EXPECT_EQ(values(nll_loss(x, bytes, {}, reduction)), values(nll_loss(x, at, {}, reduction)));
  }
  EXPECT_EQ(values(nll_loss(x[0], bytes[0])), Values{-.25});
  EXPECT_THROW(nll_loss(x, integers({0, 255}).to(kByte)), IndexError);
  const std::string wrong = error_of([&] {
    cross_entropy_loss(x.view({2, 3, 1}), bytes.view({2, 1}));
  });
  expect_part(wrong, "expected scalar type Long but found Byte");
}

TEST(Loss, SquaresOfTruthValuesTwiceDifferentiated) {
  const Tensor x = leaf({.5, 2}), t = constant({1, 0}).to(kBool), c = leaf({1});
  const Tensor loss = mse_loss(x, t, Reduction::Sum);
  const Tensor dx = autograd::grad({loss}, {x}, {c.view(IntArrayRef())}, true, true)[0];
  EXPECT_EQ(values(dx), (Values{-1, 4}));
  EXPECT_EQ(values(autograd::grad({dx.sum()}, {c})[0]), Values{3});
}

// -p log sigmoid(x) + log(1 - sigmoid(x)): one of the two is infinite, the other 0.
TEST(Loss, SlopeOfATargetBesideInfiniteLogits) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double p : {.5, 1., 2.}) {
    const Tensor x = constant({inf, -inf}), t = leaf({.25, .25});
    const Tensor loss = binary_cross_entropy_with_logits(x, t, {}, constant({p}), Reduction::None);
    EXPECT_EQ(values(autograd::grad({loss}, {t}, {constant({1, 1})})[0]), (Values{-inf, inf})) << p;
  }
}

TEST(CrossEntropy, ChangedTargetIsNoticed) {
  const Tensor x = logits(), t = integers({0, 1}), loss = cross_entropy_loss(x, t);
  t.fill_(2);
  EXPECT_ERROR_TEXT(loss.backward(), "CrossEntropyLossBackward0");
}

TEST(CrossEntropy, LogitsStayReadable) {  // the gradient is never written over them
  const Tensor x = logits();
  const std::vector<double> before = values(x);
  cross_entropy_loss(x * 1.0, integers({0, 1})).backward();
  expect_values(x, before, 0);
}

TEST(Loss, AtTheEdges) {
  const Tensor shares = kl_div(constant({-1, -1, -1}), constant({0, -0.5, 0.5}), Reduction::None);
  EXPECT_TRUE(equal(shares.isnan(), constant({0, 1, 0}).to(kBool)));  // no share is negative
  expect_values(shares.nan_to_num(), {0, 0, 0.15342640972002736});
  expect_values(binary_cross_entropy(constant({0, 1, 1}), constant({0, 1, 0}), {}, Reduction::None),
                {0, 0, 100});
  EXPECT_ERROR_TEXT(binary_cross_entropy(constant({2}), constant({1})), "between 0 and 1");
  EXPECT_ERROR_TEXT(binary_cross_entropy(constant({.1, .7, .4}), constant({1, 0})),
                    "target size [2] must be the same as input size [3]");
}

// The functions, unlike the modules, take a target of another shape: LibTorch leaves out dimensions
// of size 1 on both sides and repeats the target. The gradient has the target's shape.
TEST(Loss, BinaryTargetsOfAnotherShape) {
  const Tensor p = varied_leaf({4, 1}).sigmoid().detach(),
               t = varied_leaf({4}, 3).sigmoid().detach();
  const auto plain = [](const Tensor& x, const Tensor& y) {  // one shape
    return binary_cross_entropy(x, y, {}, Reduction::None);
  };
  const Tensor loss = plain(p, t);
  EXPECT_EQ(loss.sizes(), IntArrayRef({4, 1}));
  EXPECT_TRUE(equal(loss, plain(p, t.view({4, 1}))));
  EXPECT_TRUE(equal(plain(p.view({1, 4}), t.view({4, 1})), loss.view({1, 4})));
  EXPECT_EQ(binary_cross_entropy(full({200, 1}, .5), zeros({200})).dim(), 0);
  const Tensor rows = varied_leaf({3, 4}, 5).sigmoid().detach();
  EXPECT_TRUE(equal(plain(rows, t), plain(rows, t.expand({3, 4}))));
  EXPECT_TRUE(equal(plain(rows, t[0]), plain(rows, t[0].expand({3, 4}))));
  EXPECT_THROW(plain(t, rows), Error);
  EXPECT_THROW(plain(rows, varied_leaf({3, 1})), Error);  // [3] does not repeat to [3, 4]
  EXPECT_THROW(binary_cross_entropy(p, t, ones({4})), Error);
  EXPECT_EQ(binary_cross_entropy(p, t, ones({4, 1})).dim(), 0);
  for (int64_t reduction : {Reduction::None, Reduction::Mean}) {
    expect_derivatives(OF_X(binary_cross_entropy(x[0].sigmoid(), x[1].sigmoid(), {}, reduction)),
                       {varied_leaf({4, 1}), varied_leaf({4}, 3)});
    // With logits it is the input that is repeated.
    expect_derivatives(OF_X(binary_cross_entropy_with_logits(x[0], x[1], {}, {}, reduction)),
                       {varied_leaf({4}), varied_leaf({3, 4}, 3)});
  }
  EXPECT_TRUE(
      equal(binary_cross_entropy_with_logits(t, rows, {}, {}, Reduction::None),
            binary_cross_entropy_with_logits(t.expand({3, 4}), rows, {}, {}, Reduction::None)));
  EXPECT_THROW(binary_cross_entropy_with_logits(rows, t), Error);
}

// Class numbers are cross_entropy's. LibTorch refuses them too.
TEST(Loss, LogitsMeetNoWholeNumbers) {
  const Tensor x = ones({2});
  for (const ScalarType t : {kLong, kInt, kByte, kBool})
    EXPECT_ERROR_TEXT(binary_cross_entropy_with_logits(x, ones({2}, t)),
                      "[binary_cross_entropy_with_logits] target: got " +
                          std::string(short_name_of(t)) + "[2] on cpu, expected probabilities");
  EXPECT_NO_THROW(binary_cross_entropy_with_logits(x, ones({2}, kDouble)));
}

// Of targets that are repeated, and with weights.
TEST(Loss, Derivatives) {
  const Tensor x = varied_leaf({3, 4}), t = varied_leaf({3, 4}, 3), row = varied_leaf({4}, 8);
  for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum}) {
    expect_derivatives(OF_X(mse_loss(x[0], x[1], reduction)), {x, row});
    expect_derivatives(OF_X(binary_cross_entropy(x[0].sigmoid(), x[1].sigmoid(),
                                                 weights().narrow(0, 0, 1), reduction)),
                       {x, t});
    expect_derivatives(
        OF_X(binary_cross_entropy_with_logits(x[0], x[1], {}, constant({.5, 1, 2, 3}), reduction)),
        {x, t});
  }
  EXPECT_EQ(mse_loss(x, t).grad_fn()->name(), "MseLossBackward0");
}

}  // namespace
}  // namespace ramet
