// Schedules that move the rates up and down, and the momentum.
#include "tests/nn/optim/schedules.h"

namespace ramet::optim {
namespace {

OneCycleLROptions three_phases() {
  return OneCycleLROptions(1, 15)
      .pct_start(0.4)
      .anneal_strategy(OneCycleLROptions::linear)
      .base_momentum(0.7)
      .max_momentum(0.9)
      .div_factor(10)
      .final_div_factor(100)
      .three_phase(true);
}
TEST(OneCycleLR, AsInPyTorch) {
  expect_rates(of<OneCycleLR>(one_cycle()),
               pairs(0.04, 0.12, 0.220724895107808, 0.662174685323424, 0.626810048299031,
                     1.88043014489709, 0.952465056593161, 2.85739516977948, 0.994415435450912,
                     2.98324630635274, 0.950484632013474, 2.85145389604042, 0.866526469811169,
                     2.59957940943351, 0.750001, 2.250003, 0.611262021936289, 1.83378606580887,
                     0.462637102666975, 1.38791130800093, 0.317332218498851, 0.951996655496554,
                     0.188258346050237, 0.564775038150711, 0.0868842653195513, 0.260652795958654,
                     0.0222175082525412, 0.0666525247576235, 4e-06, 1.2e-05));
  const auto optimizer = sgd();
  OneCycleLR schedule(*optimizer, one_cycle());
  for (double expected : {0.95, 0.931174490092937, 0.888873953302184, 0.854951556604879,
                          0.850558458688744, 0.854951556604879, 0.863347406408509, 0.875,
                          0.888873953302184, 0.903736504679321, 0.91826705121832, 0.931174490092937,
                          0.9413119387158, 0.947778640289307, 0.95, 0.947778640289307}) {
    ASSERT_NEAR(momentum(*optimizer), expected, 1e-12);
    if (schedule.step_count() < 16) schedule.step();
  }
  EXPECT_ERROR_TEXT(schedule.step(),
                    "[OneCycleLR] Tried to step 16 times. The specified number of "
                    "total steps is 15");
  const auto adam = two_groups<Adam>(AdamOptions(0.5));
  expect_cycle(
      *adam, of<OneCycleLR>(three_phases()),
      {0.1, 0.28, 0.46, 0.64, 0.82, 1, 0.82, 0.64, 0.46, 0.28, 0.1, 0.07525, 0.0505, 0.02575, 0.001,
       -0.02375},
      {0.9, 0.86, 0.82, 0.78, 0.74, 0.7, 0.74, 0.78, 0.82, 0.86, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9});
  EXPECT_EQ(std::get<1>(static_cast<AdamOptions&>(adam->param_groups()[0].options()).betas()),
            0.999);
}
TEST(OneCycleLR, Ranges) {
  const auto optimizer = sgd();
  using O = OneCycleLROptions;
  EXPECT_ERROR_TEXT(OneCycleLR(*optimizer, O(1, 0)),
                    "[OneCycleLR] Expected positive integer total_steps: got 0");
  EXPECT_ERROR_TEXT(OneCycleLR(*optimizer, O(1, INT64_MIN)),
                    "total_steps: got -9223372036854775808");
  EXPECT_ERROR_TEXT(OneCycleLR(*optimizer, O(1, 5).pct_start(1.5)),
                    "[OneCycleLR] Expected float between 0 and 1 pct_start: got 1.5");
  EXPECT_ERROR_TEXT(OneCycleLR(*optimizer, O(1, 5).pct_start(NAN)), "pct_start: got nan");
  EXPECT_ERROR_TEXT(
      OneCycleLR(*optimizer, O(std::vector<double>(3), 5)),
      "max_lr must have the same length as optimizer.param_groups: got 3, expected 2");
  EXPECT_EQ(rate(*optimizer, 0), 0.5);
  EXPECT_EQ(momentum(*optimizer), 0.5);
  EXPECT_FALSE(optimizer->param_groups()[0].initial_lr());
  EXPECT_ERROR_TEXT(OneCycleLR(*optimizer, O(1, 10).pct_start(0.1)), "a phase without length");
}

TEST(CyclicLR, AsInPyTorch) {
  const auto optimizer = sgd();
  expect_cycle(
      *optimizer, of<CyclicLR>(cyclic().step_size_down(4)),
      {0.1, 0.4, 0.7, 1, 0.775, 0.55, 0.325, 0.1, 0.4, 0.7, 1, 0.775, 0.55, 0.325, 0.1, 0.4, 0.7,
       1},
      {0.9, 0.866666666666667, 0.833333333333333, 0.8, 0.825, 0.85, 0.875, 0.9, 0.866666666666667,
       0.833333333333333, 0.8, 0.825, 0.85, 0.875, 0.9, 0.866666666666667, 0.833333333333333, 0.8});
  expect_rates(of<CyclicLR>(CyclicLROptions(std::vector<double>{.1, .2}, std::vector<double>{1, 2})
                                .step_size_up(3)
                                .mode(CyclicLROptions::triangular2)
                                .cycle_momentum(false)),
               pairs(0.1, 0.2, 0.4, 0.8, 0.7, 1.4, 1, 2, 0.7, 1.4, 0.4, 0.8, 0.1, 0.2, 0.25,
                     0.500000000000001, 0.4, 0.8, 0.55, 1.1, 0.4, 0.8, 0.25, 0.500000000000001, 0.1,
                     0.2, 0.175, 0.35, 0.25, 0.5, 0.325, 0.65));
  const auto adam = two_groups<Adam>(AdamOptions(0.5));
  expect_cycle(*adam,
               of<CyclicLR>(CyclicLROptions(0.1, 1)
                                .step_size_up(4)
                                .step_size_down(2)
                                .mode(CyclicLROptions::exp_range)
                                .gamma(0.9)
                                .base_momentum(0.6)
                                .max_momentum(0.95)),
               {0.1, 0.3025, 0.4645, 0.592075, 0.69049, 0.3657205, 0.1, 0.2076168025, 0.2937102445,
                0.361508830075, 0.41381059609, 0.2412147682405, 0.1, 0.157191981137402,
                0.202945566047325, 0.238976514163888},
               {0.95, 0.87125, 0.80825, 0.7586375, 0.720365, 0.84666425, 0.95, 0.90814902125,
                0.87466823825, 0.8483021216375, 0.827962545965, 0.89508314568425, 0.95,
                0.927758674002121, 0.909965613203818, 0.895953577825155});
  const auto falling = [](double x) { return 1 / (1 + x); };
  expect_first_rates(
      of<CyclicLR>(cyclic().scale_fn(falling).scale_mode(CyclicLROptions::iterations)),
      {0.1, 0.25, 0.3, 0.325, 0.22, 0.15, 0.1, 0.1375, 0.166666666666667, 0.19, 0.154545454545455,
       0.125});
  expect_first_rates(of<CyclicLR>(cyclic().scale_fn(falling)),
                     {0.1, 0.25, 0.4, 0.55, 0.4, 0.25, 0.1, 0.2, 0.3, 0.4, 0.3, 0.2});
}
TEST(CyclicLR, Ranges) {
  const auto optimizer = sgd();
  EXPECT_ERROR_TEXT(CyclicLR(*optimizer, cyclic().step_size_up(0)),
                    "[CyclicLR] step_size_up: got 0");
  EXPECT_ERROR_TEXT(CyclicLR(*optimizer, cyclic().step_size_down(INT64_MIN)),
                    "step_size_down: got -9223372036854775808, expected at least 0");
  EXPECT_ERROR_TEXT(
      CyclicLR(*optimizer, CyclicLROptions(std::vector<double>(3), {1.0})),
      "base_lr must have the same length as optimizer.param_groups: got 3, expected 2");
  EXPECT_EQ(rate(*optimizer, 0), 0.5);
}
/// An optimizer with options that have no momentum.
struct PlainOptions : OptimizerCloneableOptions<PlainOptions> {
  double get_lr() const override { return lr; }
  void set_lr(const double value) override { lr = value; }
  double lr = 1;
};
struct Plain : Optimizer {
  explicit Plain(std::vector<Tensor> p)
      : Optimizer(std::move(p), std::make_unique<PlainOptions>()) {}
  Tensor step(LossClosure = nullptr) override { return {}; }
};
TEST(Schedules, WithoutMomentum) {
  Plain plain({ones({1}).requires_grad_()});
  EXPECT_ERROR_TEXT(OneCycleLR(plain, OneCycleLROptions(1, 9)),
                    "[OneCycleLR] optimizer must support momentum or beta1");
  EXPECT_ERROR_TEXT(CyclicLR(plain, CyclicLROptions(0.1, 1)),
                    "[CyclicLR] optimizer must support momentum or beta1");
  EXPECT_EQ(rate(plain, 0), 1);
  CyclicLR schedule(plain, CyclicLROptions(0.25, 1).step_size_up(1).cycle_momentum(false));
  schedule.step();
  EXPECT_EQ(rate(plain, 0), 1);
}

}  // namespace
}  // namespace ramet::optim
