// Schedules of one factor or curve.
#include "tests/nn/optim/schedules.h"

namespace ramet::optim {
namespace {

TEST(MultiStepLR, AsInPyTorch) {
  expect_rates(of<MultiStepLR>(Milestones{12, 3, 7, 7}, 0.5),
               {0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625,
                0.03125, 0.03125, 0.03125, 0.03125});
}
TEST(ExponentialLR, AsInPyTorch) {
  expect_rates(of<ExponentialLR>(0.9),
               {0.5, 0.45, 0.405, 0.3645, 0.32805, 0.295245, 0.2657205, 0.23914845, 0.215233605,
                0.1937102445, 0.17433922005, 0.156905298045, 0.1412147682405, 0.12709329141645,
                0.114383962274805, 0.102945566047325});
}
TEST(ConstantLR, AsInPyTorch) {
  expect_rates(of<ConstantLR>(0.25, 4), {0.125, 0.125, 0.125, 0.125, 0.5, 0.5, 0.5, 0.5});
  expect_rates(of<ConstantLR>(), {0.166666666666667, 0.166666666666667, 0.166666666666667,
                                  0.166666666666667, 0.166666666666667, 0.5, 0.5, 0.5});
  expect_rates(of<ConstantLR>(0.0, 2), {0, 0, 0.5, 0.5});  // PyTorch divides by zero
  expect_rates(of<ConstantLR>(0.5, INT64_MIN), {0.25, 0.25, 0.25});
}
TEST(LinearLR, AsInPyTorch) {
  expect_rates(of<LinearLR>(0.25, 0.75, 6),
               {0.125, 0.166666666666667, 0.208333333333333, 0.25, 0.291666666666667,
                0.333333333333333, 0.375, 0.375, 0.375});
  expect_rates(of<LinearLR>(), {0.166666666666667, 0.233333333333333, 0.3, 0.366666666666667,
                                0.433333333333333, 0.5, 0.5, 0.5});
  expect_rates(of<LinearLR>(0.5, 1.0, INT64_MIN), {0.25, 0.25, 0.25});
}
TEST(PolynomialLR, AsInPyTorch) {
  expect_rates(of<PolynomialLR>(7, 2.5),
               {0.5, 0.340097179508284, 0.215600575185846, 0.123416970778523, 0.0601212554731816,
                0.0218172442377489, 0.00385678033682885, 0, 0, 0});
  expect_rates(of<PolynomialLR>(), {0.5, 0.4, 0.3, 0.2, 0.1, 0, 0, 0});
  expect_rates(of<PolynomialLR>(0), {0.5, 0.5, 0.5});
}
TEST(LambdaLR, AsInPyTorch) {
  const std::vector<Function> two{[](int64_t e) { return std::pow(.95, static_cast<double>(e)); },
                                  [](int64_t e) { return 1 / (1 + static_cast<double>(e)); }};
  expect_rates(of<LambdaLR>(two),
               pairs(0.5, 2, 0.475, 1, 0.45125, 0.666666666666667, 0.4286875, 0.5, 0.407253125, 0.4,
                     0.38689046875, 0.333333333333333, 0.3675459453125, 0.285714285714286,
                     0.349168648046875, 0.25));
  const auto optimizer = sgd();
  LambdaLR all(*optimizer, [](int64_t e) { return static_cast<double>(e + 1); });
  all.step();
  EXPECT_EQ(rate(*optimizer, 1), 4);
  EXPECT_ERROR_TEXT(LambdaLR(*optimizer, std::vector<Function>{two[0]}),
                    "[LambdaLR] lr_lambdas: got 1, expected 2");
  EXPECT_ERROR_TEXT(LambdaLR(*optimizer, Function()), "[LambdaLR] lr_lambda should be a function");
}
TEST(MultiplicativeLR, AsInPyTorch) {
  expect_rates(
      of<MultiplicativeLR>(
          Function([](int64_t e) { return 1 - .5 / (1 + static_cast<double>(e)); })),
      {0.5, 0.375, 0.3125, 0.2734375, 0.24609375, 0.2255859375, 0.20947265625, 0.196380615234375});
  const auto optimizer = sgd();
  EXPECT_ERROR_TEXT(MultiplicativeLR(*optimizer, std::vector<Function>(3)),
                    "[MultiplicativeLR] lr_lambdas: got 3, expected 2");
}
TEST(CosineAnnealingWarmRestarts, AsInPyTorch) {
  expect_rates(
      of<CosineAnnealingWarmRestarts>(3, 2, 0.01),
      pairs(0.5, 2, 0.3775, 1.5025, 0.1325, 0.5075, 0.5, 2, 0.467176223927187, 1.86669527676552,
            0.3775, 1.5025, 0.255, 1.005, 0.1325, 0.5075, 0.0428237760728125, 0.143304723234483,
            0.5, 2, 0.491651827440822, 1.96609619715762, 0.467176223927187, 1.86669527676552,
            0.428241161390704, 1.70857124728061, 0.3775, 1.5025, 0.318410666050118,
            1.26252494987701, 0.255, 1.005, 0.191589333949882, 0.747475050122992, 0.1325, 0.5075,
            0.0817588386092959, 0.301428752719385, 0.0428237760728125, 0.143304723234483,
            0.0183481725591783, 0.0439038028423771, 0.5, 2, 0.497903991036584, 1.99148763706694,
            0.491651827440822, 1.96609619715762));
  expect_rates(of<CosineAnnealingWarmRestarts>(4),
               {0.5, 0.426776695296637, 0.25, 0.0732233047033631, 0.5, 0.426776695296637, 0.25,
                0.0732233047033631, 0.5, 0.426776695296637});
  expect_rates(of<CosineAnnealingWarmRestarts>(INT64_MAX, INT64_MAX), {0.5, 0.5});
}

TEST(SWALR, AsInPyTorch) {
  expect_rates(of<SWALR>(0.05, 4),
               pairs(0.5, 2, 0.434099025766973, 1.71442911165688, 0.275, 1.025, 0.115900974233027,
                     0.335570888343116, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05));
  expect_rates(of<SWALR>(Numbers{0.05, 0.1}, 3, "linear"),
               pairs(0.5, 2, 0.35, 1.36666666666667, 0.2, 0.733333333333333, 0.05, 0.1, 0.05, 0.1));
  expect_rates(of<SWALR>(0.05, 0), pairs(0.05, 0.05, 0.05, 0.05));
  expect_rates(of<SWALR>(0.05, INT64_MAX), pairs(0.5, 2, 0.5, 2));
  // Other code may change the rates between steps.
  const auto optimizer = sgd();
  SWALR swa(*optimizer, 0.05, 3);
  for (double expected : {0.5, 0.34875, 0.134625, 0.045, 0.045}) {
    EXPECT_NEAR(rate(*optimizer, 0), expected, 1e-12);
    swa.step();
    for (OptimizerParamGroup& g : optimizer->param_groups())
      g.options().set_lr(g.options().get_lr() * .9);
  }
  EXPECT_ERROR_TEXT(SWALR(*optimizer, Numbers{1}), "[SWALR] swa_lr: got 1 rates, expected 2");
  EXPECT_ERROR_TEXT(SWALR(*optimizer, 0.1, -1),
                    "[SWALR] anneal_epochs must be equal or greater than 0: got -1");
  EXPECT_ERROR_TEXT(SWALR(*optimizer, 0.1, 1, "poly"),
                    "[SWALR] anneal_strategy must be one of 'cos' or 'linear': got poly");
}

}  // namespace
}  // namespace ramet::optim
