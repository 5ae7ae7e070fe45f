// Schedules of steps, cosines and plateaus.
#include "tests/nn/optim/schedules.h"

namespace ramet::optim {
namespace {

SGD optimizer_with(double lr) { return SGD({ones({1}).requires_grad_()}, SGDOptions(lr)); }
double lr_of(SGD& optimizer) { return rate(optimizer, 0); }

TEST(StepLR, AsInLibTorch) {
  expect_rates(of<StepLR>(3u, 0.5), {.5, .5, .5, .5, .25, .25, .25, .125, .125});
  SGD optimizer = optimizer_with(1);
  EXPECT_ERROR_TEXT(StepLR(optimizer, 0), "step_size: got 0");
}

TEST(CosineAnnealingLR, AsInPyTorch) {
  expect_first_rates(of<CosineAnnealingLR>(5u, 0.1),
                     {0.5, 0.46180339887498956, 0.3618033988749896, 0.2381966011250106,
                      0.13819660112501056, 0.1, 0.1, 0.1});
}

TEST(CosineAnnealingLR, WarmUp) {
  const double c = std::cos(M_PI / 4);
  expect_rates(of<CosineAnnealingLR>(8u, 0., 4u),
               {.125, .25, .375, .5, .5, (1 + c) / 4, .25, (1 - c) / 4, 0});
  SGD optimizer = optimizer_with(1);
  EXPECT_ERROR_TEXT(CosineAnnealingLR(optimizer, 4, 0, 4),
                    "warmup: got 4, expected less than t_max = 4");
}

TEST(ReduceLROnPlateau, AsInLibTorch) {
  SGD optimizer = optimizer_with(1);
  using Plateau = ReduceLROnPlateauScheduler;
  Plateau scheduler(optimizer, Plateau::min, 0.5, 2, 1e-4, Plateau::rel, 1);
  std::vector<double> rates;
  for (float metric : {1.0f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.8f, 0.9f}) {
    scheduler.step(metric);
    rates.push_back(lr_of(optimizer));
  }
  EXPECT_EQ(rates, (std::vector<double>{1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25}));
  EXPECT_ERROR_TEXT(Plateau(optimizer, Plateau::min, 1.5f), "Factor should be < 1.0");
  // LibTorch's rule: below 0 a share of the best metric makes worse ones better, a number does not.
  for (const auto mode : {Plateau::rel, Plateau::abs}) {
    SGD other = optimizer_with(1);
    Plateau of_negative(other, Plateau::min, 0.5, 0, 1e-2, mode);
    for (float metric : {-1.f, -.995f, -.99f}) of_negative.step(metric);
    EXPECT_EQ(lr_of(other), mode == Plateau::rel ? 1 : 0.25);
  }
  // A group that came later has no smallest rate.
  optimizer.add_param_group(OptimizerParamGroup({ones({1}).requires_grad_()}));
  for (int i = 0; i < 5; ++i)
    EXPECT_ERROR_TEXT(scheduler.step(0.9f), "other parameter groups now: got 2, expected 1");
  EXPECT_EQ(lr_of(optimizer), 0.25);
}

}  // namespace
}  // namespace ramet::optim
