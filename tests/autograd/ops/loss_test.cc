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

TEST(CrossEntropy, AsPyTorch) {
  struct Case {
    std::optional<Tensor> weight;
    int64_t reduction, ignore;
    double smoothing;
    std::vector<double> loss, grad;
  };
  const std::vector<Case> cases = {
      {{},
       Reduction::Mean,
       -100,
       0,
       {2.060402295831009},
       {0.3797365930484911, 0.011467051499770212, -0.3912036445482614, -0.4627022214338928,
        0.45437996212925663, 0.008322259304636172}},
      {weights(),
       Reduction::Mean,
       -100,
       0,
       {1.739239075680985},
       {0.6075785488775858, 0.01834728239963234, -0.6259258312772182, -0.18508088857355712,
        0.18175198485170266, 0.0033289037218544692}},
      {{},
       Reduction::Mean,
       -100,
       0.1,
       {2.060402295831009},
       {0.36306992638182445, -0.0051996151668964544, -0.35787031121492807, -0.42936888810055945,
        0.43771329546258997, -0.008344407362030494}},
      {weights(),
       Reduction::Mean,
       -100,
       0.1,
       {1.7859527157237807},
       {0.5755961093410197, 0.004249478966314325, -0.579845588307334, -0.1697583403833647,
        0.19265224949859633, -0.0228939091152316}},
      {{},
       Reduction::Sum,
       0,
       0,
       {1.5251302622476355},
       {0.7594731860969822, 0.022934102999540424, -0.7824072890965228, 0, 0, 0}},
      {weights(),
       Reduction::None,
       -100,
       0.2,
       {2.904405480787332, 1.677260408629109},
       {1.3590341745111343, -0.024620811167509218, -1.334413363343625, -0.3860894804829309,
        0.508881285363725, -0.12279180488079418}},
  };
  const Tensor target = integers({2, 0});
  for (const Case& c : cases) {
    const Tensor x = logits(),
                 loss = cross_entropy_loss(x, target, c.weight, c.reduction, c.ignore, c.smoothing);
    expect_values(loss, c.loss);
    loss.sum().backward();
    expect_values(x.grad(), c.grad);
  }
  const Tensor p = constant({.2, .3, .5, .6, .1, .3}).view({2, 3});
  Tensor x = logits(), loss = cross_entropy_loss(x, p);
  expect_values(loss, {2.372902295831009});
  loss.backward();
  expect_values(x.grad(), {0.2797365930484911, -0.1385329485002298, -0.1412036445482614,
                           -0.26270222143389277, 0.40437996212925664, -0.14167774069536382});
  x = logits(), loss = cross_entropy_loss(x, p, weights(), Reduction::Mean, -100, 0.1);
  expect_values(loss, {2.9446824479661005});
  loss.backward();
  expect_values(x.grad(), {0.4694373764300894, -0.135880359101983, -0.3335570173281065,
                           -0.10541392512445767, 0.40028629483141087, -0.29487236970695324});
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
    EXPECT_NE(text.find(std::string("[cross_entropy_loss_consuming] ") + part), std::string::npos)
        << text;
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
  EXPECT_NE(error_of([&] { square.sum().backward(); }).find("cross_entropy_loss_consuming"),
            std::string::npos);
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

TEST(CrossEntropy, Shapes) {
  const Tensor x = varied({2, 3, 4, 5}),
               t = integers({0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1,
                             2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0},
                            {2, 4, 5});
  const Tensor each = cross_entropy_loss(x, t, {}, Reduction::None);
  EXPECT_EQ(each.sizes(), IntArrayRef({2, 4, 5}));
  expect_values(each, values(nll_loss_nd(x.log_softmax(1), t, {}, Reduction::None)), 1e-12);
  expect_values(cross_entropy_loss(x, t), {each.mean().item<double>()});
  const Tensor one = cross_entropy_loss(constant({1, 2, 3}), integers({2}).view(IntArrayRef()), {},
                                        Reduction::None);
  EXPECT_EQ(one.dim(), 0);
  expect_values(one, {std::log(std::exp(-2) + std::exp(-1) + 1)});
  expect_values(cross_entropy_loss(constant({}).view({0, 3}), integers({})),
                {std::numeric_limits<double>::quiet_NaN()});
  expect_values(cross_entropy_loss(constant({}).view({0, 3}), integers({}), {}, Reduction::Sum),
                {0});
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
          expect_derivatives([&](const In& v) { return loss(v[0], target); },
                             {varied_leaf({2, 4, 18})});
        }
}

// A 0-dim tensor in either place is its value for every element: the formula, in double.
TEST(Huber, OfAScalarTensor) {
  const double bend = 1.5, t = 0.5;
  const Tensor dense = varied({4, 4}).mul(3);
  const auto huber = [&](double d) {
    d = std::fabs(d);
    return d < bend ? d * d / 2 : bend * (d - bend / 2);
  };
  for (const Tensor& x : {dense, dense.t(), dense.to(kFloat), dense.slice(1, 0, 4, 2)}) {
    const Tensor scalar = full({}, t, x.scalar_type()), wide = x.to(kDouble);
    Values want, want_smooth;
    for (double v : values(wide)) want.push_back(huber(v - t));
    for (double v : want) want_smooth.push_back(v / bend);
    double sum = 0;
    for (double v : want) sum += v;
    for (const bool first : {false, true}) {
      const Tensor &a = first ? scalar : x, &b = first ? x : scalar;
      const auto close = [](const Tensor& got, const Values& want) {
        expect_values(got.to(kDouble), want, 1e-5);
      };
      close(huber_loss(a, b, Reduction::None, bend).reshape({-1}), want);
      close(smooth_l1_loss(a, b, Reduction::None, bend).reshape({-1}), want_smooth);
      close(huber_loss(a, b, Reduction::Sum, bend), {sum});
      Tensor out = empty({0}, x.scalar_type());
      close(huber_loss_out(out, a, b, Reduction::None, bend).reshape({-1}), want);
      close(smooth_l1_loss_out(out, a, b, Reduction::Sum, bend), {sum / bend});
    }
  }
  for (const int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum})
    for (const bool first : {false, true}) {
      const Tensor one = leaf({0.3}).detach().reshape({}).requires_grad_(),
                   many = varied_leaf({3, 2});
      const In in = {first ? one : many, first ? many : one};
      expect_derivatives([&](const In& v) { return huber_loss(v[0], v[1], reduction, 0.6); }, in);
      expect_derivatives([&](const In& v) { return smooth_l1_loss(v[0], v[1], reduction, 0.6); },
                         in);
    }
}

TEST(CrossEntropy, Errors) {
  const Tensor x = logits();
  EXPECT_NE(error_of([&] {
              cross_entropy_loss(x, integers({0, 3}));
            }).find("[cross_entropy_loss] index out of range: got 3 at position 1"),
            std::string::npos);
  EXPECT_THROW(nll_loss(x, integers({-1, 0})), IndexError);
  EXPECT_NE(error_of([&] {
              cross_entropy_loss(x, integers({0}));
            }).find("got input [2, 3] and target [1]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              cross_entropy_loss(x, constant({0, 1}));
            }).find("expected scalar type Long"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              cross_entropy_loss(x, integers({0, 1}), constant({1}));
            }).find("weight tensor should be defined"),
            std::string::npos);
  EXPECT_THROW(cross_entropy_loss(x, integers({0, 1}), leaf({1, 1, 1})), NotImplementedError);
  EXPECT_NE(error_of([&] {
              cross_entropy_loss(x, integers({0, 1}), {}, 7);
            }).find("reduction: got 7"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              nll_loss(varied({2, 3, 4}), integers({0}));
            }).find("1D or 2D"),
            std::string::npos);
}

TEST(CrossEntropy, Derivatives) {
  const Tensor x = varied_leaf({4, 3}), t = integers({2, 0, -100, 1});
  for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum})
    for (double smoothing : {0.0, 0.2})
      for (bool weighted : {false, true}) {
        const std::optional<Tensor> w = weighted ? std::optional<Tensor>(weights()) : std::nullopt;
        expect_derivatives(
            [=](const In& v) { return cross_entropy_loss(v[0], t, w, reduction, -100, smoothing); },
            {x});
        if (smoothing == 0)
          expect_derivatives([=](const In& v) { return nll_loss(v[0].square(), t, w, reduction); },
                             {x});
      }
  const Tensor p = varied_leaf({4, 3}, 5);
  expect_derivatives(
      [](const In& v) {
        return cross_entropy_loss(v[0], v[1], weights(), Reduction::Mean, -100, 0.1);
      },
      {x, p});
  expect_derivatives(
      [](const In& v) {
        return cross_entropy_loss(v[0], integers({1, 0, 2, 2, 1, 0}, {2, 3}));
      },
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
  EXPECT_NE(wrong.find("expected scalar type Long but found Byte"), std::string::npos) << wrong;
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
  EXPECT_NE(error_of([&] { loss.backward(); }).find("CrossEntropyLossBackward0"),
            std::string::npos);
}

TEST(CrossEntropy, LogitsStayReadable) {  // the gradient is never written over them
  const Tensor x = logits();
  const std::vector<double> before = values(x);
  cross_entropy_loss(x * 1.0, integers({0, 1})).backward();
  expect_values(x, before, 0);
}

TEST(Loss, AsPyTorch) {
  const Tensor a = constant({.1, .7, .4}), b = constant({0, 1, .5});
  expect_values(mse_loss(a, b), {0.036666666666666674});
  expect_values(l1_loss(a, b), {0.16666666666666666});
  expect_values(smooth_l1_loss(a, b, Reduction::Mean, 0.2), {0.08333333333333333});
  expect_values(huber_loss(a, b, Reduction::Mean, 0.2), {0.01666666666666667});
  expect_values(binary_cross_entropy(a, b), {0.39186454580554386});
  expect_values(binary_cross_entropy_with_logits(a, b, {}, constant({2}).view(IntArrayRef())),
                {0.8400972121481386});
  expect_values(kl_div(a.log(), b), {0.1560822398652791});
  expect_values(kl_div(a.log(), b, Reduction::Sum), {0.4682467195958373});
  const Tensor shares = kl_div(constant({-1, -1, -1}), constant({0, -0.5, 0.5}), Reduction::None);
  EXPECT_TRUE(equal(shares.isnan(), constant({0, 1, 0}).to(kBool)));  // no share is negative
  expect_values(shares.nan_to_num(), {0, 0, 0.15342640972002736});
  expect_values(mse_loss(a, b, Reduction::None), {0.01, 0.09, 0.01});
  expect_values(binary_cross_entropy(constant({0, 1, 1}), constant({0, 1, 0}), {}, Reduction::None),
                {0, 0, 100});
  EXPECT_NE(
      error_of([&] { binary_cross_entropy(constant({2}), constant({1})); }).find("between 0 and 1"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              binary_cross_entropy(a, constant({1, 0}));
            }).find("target size [2] must be the same as input size [3]"),
            std::string::npos);
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
    expect_derivatives(
        [=](const In& v) {
          return binary_cross_entropy(v[0].sigmoid(), v[1].sigmoid(), {}, reduction);
        },
        {varied_leaf({4, 1}), varied_leaf({4}, 3)});
    // With logits it is the input that is repeated.
    expect_derivatives(
        [=](const In& v) {
          return binary_cross_entropy_with_logits(v[0], v[1], {}, {}, reduction);
        },
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
    expect_part(error_of([&] { binary_cross_entropy_with_logits(x, ones({2}, t)); }),
                "[binary_cross_entropy_with_logits] target: got " + std::string(short_name_of(t)) +
                    "[2] on cpu, expected probabilities");
  EXPECT_NO_THROW(binary_cross_entropy_with_logits(x, ones({2}, kDouble)));
}

TEST(Loss, Derivatives) {
  const Tensor x = varied_leaf({3, 4}), t = varied_leaf({3, 4}, 3), row = varied_leaf({4}, 8);
  for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum}) {
    expect_derivatives([=](const In& v) { return mse_loss(v[0], v[1], reduction); }, {x, t});
    expect_derivatives([=](const In& v) { return mse_loss(v[0], v[1], reduction); }, {x, row});
    expect_derivatives([=](const In& v) { return l1_loss(v[0], v[1], reduction).square(); },
                       {x, t});
    expect_derivatives([=](const In& v) { return smooth_l1_loss(v[0], v[1], reduction, 0.7); },
                       {x, t});
    expect_derivatives([=](const In& v) { return huber_loss(v[0], v[1], reduction, 0.7); }, {x, t});
    expect_derivatives(
        [=](const In& v) {
          return binary_cross_entropy(v[0].sigmoid(), v[1].sigmoid(), weights().narrow(0, 0, 1),
                                      reduction);
        },
        {x, t});
    expect_derivatives(
        [=](const In& v) {
          return binary_cross_entropy_with_logits(v[0], v[1], {}, constant({.5, 1, 2, 3}),
                                                  reduction);
        },
        {x, t});
    expect_derivatives(
        [=](const In& v) {
          return binary_cross_entropy_with_logits(v[0], v[1], {}, {}, reduction);
        },
        {x, t});
    expect_derivatives([=](const In& v) { return kl_div(v[0], v[1].square(), reduction); }, {x, t});
    expect_derivatives([=](const In& v) { return kl_div(v[0], v[1], reduction, true); }, {x, t});
  }
  EXPECT_EQ(mse_loss(x, t).grad_fn()->name(), "MseLossBackward0");
}

}  // namespace
}  // namespace ramet
