// What all optimizers have in common: groups, layouts, dtypes, closures, files. Their numbers:
// optimizer_numbers_test.cc.
#include "autograd/grad_mode.h"
#include "autograd/ops/make/factory.h"
#include "nn/layers/basic/linear.h"
#include "tests/nn/optim/prescribed_steps.h"
#include "tests/optimizers.h"

namespace ramet::optim {
namespace {

TEST(Optimizer, AParameterWithoutGradientIsNotTouched) {
  Tensor a = ones({3}).requires_grad_(), b = ones({3}).requires_grad_();
  AdamW optimizer({a, b}, AdamWOptions(0.1).weight_decay(0.5));
  a.sum().backward();
  const uint32_t version = b.version();
  optimizer.step();
  expect_values(b, {1, 1, 1});
  EXPECT_EQ(b.version(), version);
  EXPECT_EQ(optimizer.state().size(), 1u);
  EXPECT_EQ(optimizer.state().count(a.impl()), 1u);
  EXPECT_LT(values(a)[0], 1);
}

TEST(Optimizer, AStepIsSeenAsAChangeOfEachParameter) {
  nn::Linear linear(2, 2);
  SGD optimizer(linear->parameters(), 0.1);
  const Tensor x = ones({1, 2}).requires_grad_();
  const Tensor y = linear(x).sum();
  y.backward({}, /*retain_graph=*/true);
  optimizer.step();
  EXPECT_ERROR_TEXT(y.backward(), "modified by an inplace operation");
}

TEST(Optimizer, TheClosureRunsWithGradientsOn) {
  Tensor w = ones({1}).requires_grad_();
  SGD optimizer({w}, 0.5);
  const NoGradGuard off;
  const Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    Tensor l = (w * w).sum();
    l.backward();
    return l;
  });
  EXPECT_EQ(loss.item<double>(), 1);
  expect_values(w, {0});
}

TEST(Optimizer, GroupsHaveOptionsAndInheritTheRest) {
  Tensor a = ones({1}).requires_grad_(), b = ones({1}).requires_grad_(),
         c = ones({1}).requires_grad_();
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{a});
  groups.emplace_back(std::vector<Tensor>{b},
                      std::make_unique<SGDOptions>(SGDOptions(0.25).weight_decay(1)));
  SGD optimizer(groups, SGDOptions(0.5).momentum(0.9));
  const auto options = [&](size_t g) {
    return static_cast<SGDOptions&>(optimizer.param_groups()[g].options());
  };
  EXPECT_EQ(options(1).lr(), 0.25);
  EXPECT_EQ(options(1).momentum(), 0.9);
  EXPECT_EQ(options(1).weight_decay(), 1);
  EXPECT_EQ(options(0).weight_decay(), 0);
  optimizer.add_param_group(OptimizerParamGroup({c}));
  EXPECT_EQ(optimizer.size(), 3u);
  for (const Tensor& p : {a, b, c}) p.mutable_grad() = ones({1});
  static_cast<SGDOptions&>(optimizer.param_groups()[2].options()).lr(1);
  optimizer.step();
  expect_values(a, {0.5});
  expect_values(b, {0.5});
  expect_values(c, {0});
  optimizer.param_groups()[0].options().set_lr(2);
  EXPECT_EQ(options(0).get_lr(), 2);
}

TEST(Optimizer, ChecksParameters) {
  Tensor a = ones({1}).requires_grad_();
  EXPECT_ERROR_TEXT(SGD({a, a}, 0.1), "some parameters appear in more than one parameter group");
  EXPECT_ERROR_TEXT(SGD({a * 2}, 0.1), "can't optimize a non-leaf Tensor");
}

TEST(Optimizer, HalfPrecisionParameters) {
  Tensor w = ones({4}, kBFloat16).requires_grad_();
  w.mutable_grad() = ones({4}, kBFloat16);
  Adam({w}, AdamOptions(0.25)).step();
  expect_values(w, {0.75, 0.75, 0.75, 0.75}, 1e-2);
  w.mutable_grad() = ones({4}, kBFloat16);
  SGD({w}, SGDOptions(0.25).momentum(0.5)).step();
  expect_values(w, {0.5, 0.5, 0.5, 0.5}, 1e-2);
}

// Gaps, another order of dimensions, gradients of another layout or dtype: the same bits, in every
// dtype, since one formula computes them.
TEST(Optimizer, LayoutsChangeNoBits) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    const Tensor start = sines(600).view({20, 30}).to(t),
                 row = sines(600, 0.7).view({20, 30}).to(t);
    const Tensor column = row.t().contiguous().t();
    const auto parameters = [&] {
      const Tensor wide = zeros({20, 30, 2}, t);
      wide.select(2, 0).copy_(start);
      std::vector<Tensor> p{start.clone(), start.clone(), start.t().contiguous().t(),
                            wide.select(2, 0), wide.select(2, 0).clone().t().contiguous().t()};
      for (Tensor& one : p) one = one.detach().requires_grad_();
      return p;
    };
    for (const testing::AnyOptimizer& any : testing::all_optimizers()) {
      const std::vector<Tensor> p = parameters();
      const auto optimizer = any(p);
      for (int step = 1; step < 4; ++step) {
        for (size_t i = 0; i < p.size(); ++i)
          p[i].mutable_grad() = (i == 0 || i == 3 ? row : column).mul(step);
        optimizer->step();
      }
      for (size_t i = 1; i < p.size(); ++i)
        EXPECT_TRUE(p[i].equal(p[0])) << any.name << ", parameter " << i << ", " << t;
      EXPECT_FALSE(p[0].equal(start));
    }
  }
}

// A parameter that was cast keeps its state, in the state's dtype.
TEST(Optimizer, AStateOfAnotherDtype) {
  const Tensor p = ones({3}).requires_grad_();
  Adam adam({p}, AdamOptions(0.25));
  p.mutable_grad() = ones({3});
  adam.step();
  p.set_data(p.detach().to(kDouble));
  p.mutable_grad() = full({3}, 3, kDouble);
  adam.step();
  const auto& state = static_cast<AdamParamState&>(*adam.state().at(p.impl()));
  EXPECT_EQ(state.exp_avg().scalar_type(), kFloat);
  EXPECT_EQ(state.step(), 2);
  expect_values(state.exp_avg(), {0.39, 0.39, 0.39}, 1e-6);
  const double m = 0.39 / (1 - 0.81), v = (0.001 * 0.999 + 0.009) / (1 - 0.999 * 0.999),
               expected = 0.75 - 0.25 * m / std::sqrt(v);
  expect_values(p, {expected, expected, expected}, 1e-6);
}

TEST(Optimizer, AnEmptyParameter) {
  for (const testing::AnyOptimizer& any : testing::all_optimizers()) {
    const Tensor p = zeros({0, 3}).requires_grad_(), q = ones({2}).requires_grad_();
    const auto optimizer = any({p, q});
    p.mutable_grad() = zeros({0, 3}), q.mutable_grad() = ones({2});
    optimizer->step();
    EXPECT_LT(values(q)[1], 1) << any.name;
    EXPECT_EQ(p.numel(), 0);
  }
}

// A gradient that is no number reaches the parameter, and no other element. (Rprop's:
// Rprop.NotANumber.)
TEST(Optimizer, NotANumber) {
  for (const testing::AnyOptimizer& any : testing::all_optimizers()) {
    const Tensor p = ones({2}).requires_grad_();
    const auto optimizer = any({p});
    p.mutable_grad() = tensor({NAN, 1.0f});
    optimizer->step();
    EXPECT_TRUE(std::isnan(values(p)[0]) || std::string(any.name) == "Rprop") << any.name;
    EXPECT_LT(values(p)[1], 1) << any.name;
  }
}

// Three steps, a file, and two of an optimizer that is made with other options.
TEST(Optimizer, EachGoesOnFromAFile) {
  for (const testing::AnyOptimizer& any : testing::all_optimizers()) {
    const auto steps = [](Optimizer& optimizer, const Tensor& p, int from, int to) {
      for (int s = from; s < to; ++s) {
        p.mutable_grad() = sines(9, 0.7, 0.4 * s).to(kFloat);
        optimizer.step();
      }
    };
    const Tensor p = sines(9).to(kFloat).requires_grad_();
    const auto whole = any({p});
    steps(*whole, p, 0, 3);
    whole->param_groups()[0].options().set_lr(0.3);
    const Tensor q = p.detach().clone().requires_grad_();
    const auto resumed = any({q});
    testing::pass_on(*whole, *resumed);
    steps(*whole, p, 3, 5);
    EXPECT_EQ(resumed->param_groups()[0].options().get_lr(), 0.3);
    steps(*resumed, q, 3, 5);
    EXPECT_TRUE(q.equal(p)) << any.name;
  }
}

TEST(Optimizer, ADtypeThatHasNoSteps) {
  Tensor p = ones({2}, kLong);
  SGD sgd({p}, 1);
  p.mutable_grad() = ones({2}, kLong);
  EXPECT_ERROR_TEXT(sgd.step(), "the dtype of a parameter: got");
}
// The second parameter has no gradient in the third step.
TEST(Optimizer, ResumesBitForBit) {
  const auto options = AdamOptions(0.02).amsgrad(true).weight_decay(0.1);
  const std::vector<Tensor> whole = testing::two_parameters(), cut = testing::two_parameters();
  Adam through(whole, options), first(cut, options), second(cut, AdamOptions(0.5));
  const std::vector<double> expected = testing::prescribed_steps(whole, through, 0, 5);
  testing::prescribed_steps(cut, first, 0, 3);
  testing::pass_on(first, second);
  EXPECT_EQ(second.param_groups()[0].options().get_lr(), 0.02);
  EXPECT_EQ(testing::prescribed_steps(cut, second, 3, 5), expected);
}

TEST(Optimizer, LoadRefusesWhatDoesNotFit) {
  Tensor a = ones({2}).requires_grad_(), b = ones({2}).requires_grad_();
  Adam one({a}, 0.1), two({a, b}, 0.2);
  EXPECT_ERROR_TEXT(testing::pass_on(one, two),
                    "doesn't match the size of the optimizer's group 0: got 1, expected 2");
  EXPECT_EQ(two.param_groups()[0].options().get_lr(), 0.2);
}

TEST(Optimizer, ARefusedLoadChangesNothing) {
  const auto stepped = [](IntArrayRef sizes, const auto& make) {
    const Tensor p = ones(sizes).requires_grad_();
    auto optimizer = make(p);
    (p * 2).sum().backward();
    optimizer.step();
    return std::pair(p, std::move(optimizer));
  };
  auto [p, adam] = stepped({2}, [](const Tensor& t) { return Adam({t}, 0.1); });
  auto [q, adamw] = stepped({2}, [](const Tensor& t) { return AdamW({t}, 0.2); });
  auto [r, large] = stepped({3}, [](const Tensor& t) { return Adam({t}, 0.3); });
  EXPECT_ERROR_TEXT(testing::pass_on(adam, adamw),
                    "another optimizer's: got ramet::optim::AdamOptions, expected "
                    "ramet::optim::AdamWOptions");
  EXPECT_EQ(static_cast<AdamWOptions&>(adamw.param_groups()[0].options()).weight_decay(), 1e-2);
  EXPECT_ERROR_TEXT(testing::pass_on(adam, large), "expected the sizes of");
  EXPECT_EQ(large.param_groups()[0].options().get_lr(), 0.3);
  const std::vector<double> before = values(r);
  large.step();
  EXPECT_NE(values(r), before);
}

}  // namespace
}  // namespace ramet::optim
