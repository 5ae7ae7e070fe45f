// What optimizers keep between steps: numbers from PyTorch 2.15 in float64, and by hand.
#include "nn/optim/adadelta.h"
#include "nn/optim/adagrad.h"
#include "nn/optim/adamax.h"
#include "nn/optim/asgd.h"
#include "nn/optim/lion.h"
#include "nn/optim/nadam.h"
#include "nn/optim/radam.h"
#include "nn/optim/rmsprop.h"
#include "nn/optim/rprop.h"
#include "tests/nn/optim/prescribed_steps.h"

namespace ramet::optim {
namespace {

TEST(RMSprop, State) {
  for (const double momentum : {0., .5})
    for (const bool centered : {false, true}) {
      const Tensor p = ones({2}).requires_grad_();
      RMSprop rmsprop({p}, RMSpropOptions().momentum(momentum).centered(centered));
      p.mutable_grad() = ones({2});
      rmsprop.step(), rmsprop.step();
      const auto& state = static_cast<RMSpropParamState&>(*rmsprop.state().at(p.impl()));
      EXPECT_EQ(state.step(), 2);
      EXPECT_EQ(state.momentum_buffer().defined(), momentum > 0);
      EXPECT_EQ(state.grad_avg().defined(), centered);
    }
}

TEST(Adagrad, State) {
  const Tensor p = ones({2, 3}).requires_grad_();
  std::vector<OptimizerParamGroup> groups;
  // LibTorch takes the first value of every parameter's sum from the optimizer.
  groups.emplace_back(std::vector<Tensor>{p}, std::make_unique<AdagradOptions>(
                                                  AdagradOptions(1).initial_accumulator_value(8)));
  Adagrad adagrad(groups, AdagradOptions().initial_accumulator_value(2));
  p.mutable_grad() = full({2, 3}, 0.5);
  adagrad.step();
  const auto& state = static_cast<AdagradParamState&>(*adagrad.state().at(p.impl()));
  EXPECT_EQ(state.step(), 1);
  EXPECT_EQ(state.sum().sizes(), p.sizes());
  expect_values(state.sum(), {2.25, 2.25, 2.25, 2.25, 2.25, 2.25});
}

// The product is the state's: another momentum counts from then on.
TEST(NAdam, AnotherMomentum) {
  const Tensor p = sines(5).requires_grad_();
  NAdam nadam({p}, NAdamOptions(.1).momentum_decay(.1));
  for (int s = 0; s < 12; ++s) {
    *nadam.param_groups()[0].options().momentum_place() = s < 6 ? .9 : .7;
    p.mutable_grad() = sines(5, .7, .2 * s);
    nadam.step();
  }
  expect_values(p, {-1.13505609185416, -0.494488923607868, 0.227055023407616, 1.09320862487018,
                    1.94962919218982});
  const auto& state = static_cast<NAdamParamState&>(*nadam.state().at(p.impl()));
  EXPECT_NEAR(state.mu_product(), 2.07699623384994e-05, 1e-18);
}

// As in PyTorch: no step, and the one after it is as the first.
TEST(Rprop, NotANumber) {
  const Tensor p = ones({2}).requires_grad_();
  Rprop rprop({p}, RpropOptions(0.25));
  p.mutable_grad() = tensor({NAN, 1.0f});
  rprop.step();
  expect_values(p, {1, 0.75});
  p.mutable_grad() = tensor({1.0f, 1.0f});
  rprop.step();
  expect_values(p, {0.75, 0.45}, 1e-6);
}

// PyTorch has none: the paper's program 2, by hand.
TEST(Lion, TwoSteps) {
  const Tensor p = full({3}, 1.0, kDouble).requires_grad_();
  Lion lion({p}, LionOptions(0.25).betas(std::make_tuple(0.5, 0.75)).weight_decay(0.5));
  p.mutable_grad() = doubles({2, -4, 0});
  lion.step();  // sign(0.5 g), m = 0.25 g
  expect_values(p, {0.875 - 0.25, 0.875 + 0.25, 0.875});
  p.mutable_grad() = doubles({-0.25, 2, 3});
  lion.step();  // 0.5 m + 0.5 g: 0.125, 0.5, 1.5
  expect_values(p, {0.625 * 0.875 - 0.25, 1.125 * 0.875 - 0.25, 0.875 * 0.875 - 0.25});
  expect_values(static_cast<LionParamState&>(*lion.state().at(p.impl())).exp_avg(),
                {0.375 - 0.0625, -0.75 + 0.5, 0.75});
}

// A step's rate counts for the next one.
TEST(ASGD, WithASchedule) {
  const std::vector<Tensor> p = testing::two_parameters();
  ASGD asgd(p, ASGDOptions(.1).lambd(.05).t0(3));
  const auto rate = [](ASGD& o, int s) { o.param_groups()[0].options().set_lr(.1 / (s + 1)); };
  expect_values(doubles(testing::prescribed_steps(p, asgd, 0, 12, rate)),
                {-0.0562364764526603, 0.12849337362396, 0.398404224642538, 0.717841594120498,
                 0.995794295817847, 0.180155936352154, 0.727561073761933, 0.642961009305976,
                 -0.024214008092765});
}

TEST(ASGD, TheAverage) {
  const Tensor p = sines(5).requires_grad_();
  ASGD asgd({p}, ASGDOptions(.1).lambd(.05).t0(3));
  for (int s = 0; s < 12; ++s) {
    p.mutable_grad() = sines(5, .7, .2 * s);
    asgd.step();
  }
  const auto& state = static_cast<ASGDParamState&>(*asgd.state().at(p.impl()));
  expect_values(state.ax(), {-0.388769582550983, -0.246092274542864, 0.160659438487659,
                             0.733177866616689, 1.26253011765721});
  EXPECT_NEAR(state.eta(), .1 / std::pow(1.06, .75), 1e-15);
}

}  // namespace
}  // namespace ramet::optim
