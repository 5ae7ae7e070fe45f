// Schedules of schedules; and what all schedules have in common: ranges, files, captures.
#include <sstream>

#include "autograd/graph/captured.h"
#include "nn/serialize/archive.h"
#include "tests/nn/optim/schedules.h"

namespace ramet::optim {
namespace {

TEST(SequentialLR, AsInPyTorch) {
  expect_rates(sequence({of<LinearLR>(0.1, 1.0, 4), of<ExponentialLR>(0.8),
                         of<MultiStepLR>(Milestones{2, 3}, 0.5)},
                        {4, 9}),
               {0.05, 0.1625, 0.275, 0.3875, 0.5, 0.4, 0.32, 0.256, 0.2048, 0.5, 0.5, 0.25, 0.125,
                0.125, 0.125, 0.125});
  expect_rates(
      sequence({of<LinearLR>(0.2, 1.0, 3), of<CosineAnnealingLR>(8u, 0.02)}, {3}),
      pairs(0.1, 0.4, 0.233333333333333, 0.933333333333333, 0.366666666666667, 1.46666666666667,
            0.5, 2, 0.481731087802709, 1.92464073718617, 0.429705627484771, 1.71003571337468,
            0.351844023767622, 1.38885659804144, 0.26, 1.01, 0.168155976232378, 0.631143401958561,
            0.0902943725152286, 0.309964286625318, 0.0382689121972912, 0.0953592628138261));
  expect_rates(
      sequence({of<ConstantLR>(0.5, 2),
                of<MultiplicativeLR>(Function([](int64_t e) { return e ? 0.9 : 0.5; })),
                of<CosineAnnealingWarmRestarts>(3, 2),
                of<LambdaLR>(Function([](int64_t e) { return 1 / (2 + static_cast<double>(e)); })),
                of<PolynomialLR>(4)},
               {3, 6, 10, 13}),
      {0.25, 0.25, 0.5, 0.25, 0.225, 0.2025, 0.5, 0.375, 0.125, 0.5, 0.25, 0.166666666666667, 0.125,
       0.5, 0.375, 0.25, 0.125, 0});
  expect_rates(sequence({of<StepLR>(2u, 0.5), of<ExponentialLR>(0.9), of<StepLR>(3u, 0.1)}, {5, 8}),
               {0.5, 0.5, 0.25, 0.25, 0.125, 0.5, 0.45, 0.405, 0.5, 0.5, 0.5, 0.05, 0.05, 0.05});
}
TEST(ChainedScheduler, AsInPyTorch) {
  expect_rates(
      chain({of<ConstantLR>(0.1, 3), of<ExponentialLR>(0.9), of<MultiStepLR>(Milestones{5}, 0.5)}),
      {0.05, 0.045, 0.0405, 0.3645, 0.32805, 0.1476225, 0.13286025, 0.119574225, 0.1076168025,
       0.09685512225});
  expect_rates(
      chain({of<LinearLR>(0.5, 1.0, 4), of<PolynomialLR>(8, 2.0)}),
      {0.25, 0.2392578125, 0.2109375, 0.1708984375, 0.125, 0.0703125, 0.03125, 0.0078125, 0, 0});
}
// A chain in a sequence begins as its schedules do.
TEST(SequentialLR, OfChainsAndSequences) {
  const MakeSchedule inner = chain({of<ConstantLR>(0.5, 2), of<ExponentialLR>(0.5)});
  expect_rates(sequence({inner, inner}, {3}), {0.25, 0.125, 0.125, 0.25, 0.125, 0.125, 0.0625});
  expect_rates(sequence({sequence({of<ConstantLR>(0.5, 9), of<ConstantLR>(0.25, 9)}, {1}),
                         sequence({of<ConstantLR>(0.75, 9), of<ExponentialLR>(0.5)}, {2})},
                        {2}),
               {0.25, 0.125, 0.375, 0.375, 0.5, 0.25});
}

TEST(SequentialLR, WithCycles) {
  expect_first_rates(
      sequence({of<ConstantLR>(0.5, 10), of<OneCycleLR>(OneCycleLROptions(1, 8))}, {3}),
      {0.02, 0.02, 0.02, 0.04, 0.819275104892192, 0.971941777387523, 0.811745653949763,
       0.555984014122702, 0.283060998208699, 0.0766415938342564});
  expect_first_rates(
      sequence({of<CyclicLR>(CyclicLROptions(0.1, 1).step_size_up(2)), of<ExponentialLR>(0.5)},
               {5}),
      {0.1, 0.55, 1, 0.55, 0.1, 0.1, 0.05, 0.025});
}

TEST(Schedules, Ranges) {
  const auto optimizer = sgd(), other = sgd();
  EXPECT_ERROR_TEXT(
      ConstantLR(*optimizer, 1.5),
      "[ConstantLR] Constant multiplicative factor expected to be between 0 and 1: got 1.5");
  EXPECT_ERROR_TEXT(ConstantLR(*optimizer, NAN), "between 0 and 1: got nan");
  EXPECT_ERROR_TEXT(LinearLR(*optimizer, 0),
                    "[LinearLR] Starting multiplicative factor expected to "
                    "be greater than 0 and less or equal to 1: got 0");
  EXPECT_ERROR_TEXT(
      LinearLR(*optimizer, 1, -1),
      "[LinearLR] Ending multiplicative factor expected to be between 0 and 1: got -1");
  EXPECT_ERROR_TEXT(CosineAnnealingWarmRestarts(*optimizer, 0),
                    "[CosineAnnealingWarmRestarts] Expected positive integer T_0: got 0");
  EXPECT_ERROR_TEXT(CosineAnnealingWarmRestarts(*optimizer, 1, INT64_MIN),
                    "Expected integer T_mult >= 1: got -9223372036854775808");
  EXPECT_EQ(rate(*optimizer, 0), 0.5);
  const auto mine = std::make_shared<StepLR>(*optimizer, 1u),
             yours = std::make_shared<StepLR>(*other, 1u);
  using List = std::vector<Schedule>;
  EXPECT_ERROR_TEXT(ChainedScheduler(List{}), "[ChainedScheduler] expects at least one scheduler");
  EXPECT_ERROR_TEXT(ChainedScheduler(List{mine, nullptr}), "the scheduler at index 1: got none");
  EXPECT_ERROR_TEXT(ChainedScheduler(List{mine, yours}),
                    "belong to the same optimizer: got another one's at index 1");
  EXPECT_ERROR_TEXT(SequentialLR(*optimizer, {}, {}), "[SequentialLR] expects at least one");
  EXPECT_ERROR_TEXT(SequentialLR(*optimizer, {yours}, {}), "[SequentialLR] expects all schedulers");
  EXPECT_ERROR_TEXT(SequentialLR(*optimizer, {mine}, {1}), "got 1 schedulers and 1 milestones");
  EXPECT_ERROR_TEXT(SequentialLR(*optimizer, {mine, mine, mine}, {2, 1}),
                    "milestones: got [2, 1], expected an ascending order");
}
// One that throws leaves the others as they were.
TEST(ChainedScheduler, StepsTogetherOrNotAtAll) {
  const auto optimizer = sgd();
  ChainedScheduler both({std::make_shared<ExponentialLR>(*optimizer, 0.5),
                         std::make_shared<OneCycleLR>(*optimizer, OneCycleLROptions(1, 4))});
  for (int i = 0; i < 4; ++i) both.step();
  const double last = rate(*optimizer, 0);
  EXPECT_ERROR_TEXT(both.step(), "Tried to step 5 times");
  EXPECT_EQ(rate(*optimizer, 0), last);
  EXPECT_EQ(both.step_count(), 4u);
}

std::vector<MakeSchedule> one_of_each() {
  return {
      of<MultiStepLR>(Milestones{2, 6}, 0.5),
      of<ExponentialLR>(0.9),
      of<ConstantLR>(0.5, 6),
      of<LinearLR>(0.25, 1.0, 7),
      of<PolynomialLR>(9, 2.0),
      of<LambdaLR>(Function([](int64_t e) { return 1 / (2 + static_cast<double>(e)); })),
      of<MultiplicativeLR>(Function([](int64_t e) { return 1 / (2 + static_cast<double>(e)); })),
      of<CosineAnnealingWarmRestarts>(3, 2),
      of<CosineAnnealingLR>(12u, 0.01, 5u),
      of<OneCycleLR>(one_cycle()),
      of<CyclicLR>(cyclic()),
      sequence({of<LinearLR>(0.1, 1.0, 3), of<CosineAnnealingLR>(8u, 0.02), of<StepLR>(1u, 0.5)},
               {3, 6}),
      chain({of<ConstantLR>(0.1, 6), of<ExponentialLR>(0.9)})};
}

// From a file that has the schedule, in an optimizer that has been made with other rates.
TEST(Schedules, GoOnFromAFile) {
  for (const MakeSchedule& make : one_of_each()) {
    const auto whole = sgd(), resumed = two_groups<SGD>(SGDOptions(7).momentum(0.5));
    const Schedule first = make(*whole), second = make(*resumed);
    for (int i = 0; i < 4; ++i) first->step();
    serialize::OutputArchive out;
    first->save(out);
    std::stringstream file;
    out.save_to(file);
    serialize::InputArchive in;
    in.load_from(file);
    second->load(in);
    EXPECT_EQ(second->step_count(), first->step_count());
    EXPECT_EQ(rate(*resumed, 0), rate(*whole, 0));
    for (int i = 0; i < 5; ++i) {
      first->step(), second->step();
      for (size_t group : {0, 1}) ASSERT_EQ(rate(*resumed, group), rate(*whole, group)) << i;
      if (i == 4) { EXPECT_EQ(momentum(*resumed), momentum(*whole)); }
    }
  }
}
TEST(Schedules, ARefusedLoadChangesNothing) {
  const auto two = sgd();
  SGD one({ones({1}).requires_grad_()}, SGDOptions(3));
  const MakeSchedule make = chain({of<ExponentialLR>(0.5), of<ExponentialLR>(0.25)});
  const Schedule source = make(one), target = make(*two);
  source->step();
  serialize::OutputArchive out;
  source->save(out);
  std::stringstream file;
  out.save_to(file);
  serialize::InputArchive in;
  in.load_from(file);
  EXPECT_ERROR_TEXT(target->load(in), "parameter groups in the archive: got 1, expected 2");
  EXPECT_EQ(rate(*two, 0), 0.5);
  target->step();
  EXPECT_EQ(rate(*two, 0), 0.0625);
}

// In captured steps, which compute rates and momenta at each replay.
TEST(Schedules, InCapturedSteps) {
  for (const MakeSchedule& make : one_of_each()) {
    std::vector<Numbers> got[2];
    for (const bool captured : {false, true}) {
      const auto optimizer = sgd();
      const Tensor p = optimizer->param_groups()[0].params()[0];
      const Schedule schedule = make(*optimizer);
      const auto body = [&] {
        optimizer->zero_grad();
        Tensor loss = p.square().sum();
        loss.backward();
        optimizer->step();
        schedule->step();
        return loss;
      };
      Captured step(body);
      for (int i = 0; i < 10; ++i) {
        if (captured) step();
        else body();
        got[captured].push_back({rate(*optimizer, 0), rate(*optimizer, 1), momentum(*optimizer),
                                 static_cast<double>(schedule->step_count()), values(p)[0]});
      }
      if (captured) { EXPECT_GE(step.counters().replays, 8u); }
    }
    EXPECT_EQ(got[0], got[1]);
  }
}

// As in PyTorch, every schedule counts from the rates of before the first one.
TEST(Schedules, InitialRates) {
  const auto optimizer = sgd();
  EXPECT_FALSE(optimizer->param_groups()[0].initial_lr());
  LinearLR first(*optimizer, 0.5);
  EXPECT_EQ(optimizer->param_groups()[0].initial_lr(), 0.5);
  CosineAnnealingLR second(*optimizer, 4);
  EXPECT_EQ(rate(*optimizer, 0), 0.5);
  EXPECT_EQ(rate(*optimizer, 1), 2);
}

}  // namespace
}  // namespace ramet::optim
