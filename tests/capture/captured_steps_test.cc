// Twenty eager steps and twenty captured ones have the same bits, on a CPU and on a GPU.
#include <memory>

#include "nn/optim/gradient_accumulation.h"
#include "nn/optim/lr_factors.h"
#include "runtime/memory/pool.h"
#include "tests/capture/training.h"
#include "tests/optimizers.h"
#include "tests/share.h"

namespace ramet {
namespace capture_tests {
namespace {

class OneDevice : public ::testing::TestWithParam<std::tuple<Kind, bool>> {};

TEST_P(OneDevice, SameBitsAsEager) {
  const auto [kind, on_gpu] = GetParam();
  if (on_gpu && !why_no_gpu().empty()) GTEST_SKIP() << "no GPU: " << why_no_gpu();
  if (on_gpu && testing::one_repeat_in() > 1 && kind != Kind::kAdam)
    GTEST_SKIP() << "one optimizer has a GPU where a step costs many times as much";
  const Device device = on_gpu ? Device(kCUDA, 0) : kHost;
  const Steps captured =
      expect_same_steps([&, kind = kind] { return Training(device, kind); }, kSteps);
  // The first step makes the optimizer's state: it happens once. Then one capture for each size.
  EXPECT_EQ(captured.counters.captures, 3u);
  EXPECT_EQ(captured.counters.replays, static_cast<uint64_t>(kSteps - 3));
  EXPECT_EQ(captured.counters.failed_guards, 1u);
  EXPECT_EQ(captured.kept, 2u);
}

INSTANTIATE_TEST_SUITE_P(All, OneDevice,
                         ::testing::Combine(::testing::Values(Kind::kAdam, Kind::kAdamW,
                                                              Kind::kSgd),
                                            ::testing::Bool()));

class Memory : public ::testing::TestWithParam<bool> {};

TEST_P(Memory, AReplayAllocatesNothing) {
  if (GetParam() && !why_no_gpu().empty()) GTEST_SKIP() << "no GPU: " << why_no_gpu();
  const Device device = GetParam() ? Device(kCUDA, 0) : kHost;
  expect_no_allocation(Training(device), {device, kHost});
}
INSTANTIATE_TEST_SUITE_P(All, Memory, ::testing::Bool());

// Eager steps and other captures between replays.
TEST(Mixed, WithEagerSteps) {
  const Steps captured =
      expect_same_steps([] { return Training(kHost); }, 12, [](int i) { return i % 3 == 1; });
  EXPECT_EQ(captured.counters.captures, 3u);
  EXPECT_EQ(captured.counters.replays, 5u);
}

// zero_grad and the optimizer's step are outside: the capture leaves the gradients. One part a
// call: a capture for each place in the accumulation.
TEST(Mixed, AnAccumulation) {
  std::vector<std::string> got[2];
  for (const bool captured : {false, true}) {
    Training run(kHost, Kind::kSgd);
    optim::GradientAccumulation accumulation(3);
    const auto body = [&](const Tensor& x, const Tensor& y) {
      Tensor loss = cross_entropy_loss(run.net->forward(x), y);
      if (accumulation.backward(loss)) run.optimizer->step(), run.optimizer->zero_grad();
      return loss;
    };
    Captured step(body);
    for (int i = 0; i < 18; ++i) {
      const auto [x, y] = run.batch(8);
      const Tensor loss = captured ? step(x, y) : body(x, y);
      got[captured].push_back(run.state(loss));
    }
    if (captured) { EXPECT_GE(step.counters().replays, 9u); }
  }
  EXPECT_TRUE(got[0] == got[1]);
}

TEST(Mixed, ForwardAndBackwardAlone) {
  for (const bool outside : {false, true}) {
    std::vector<std::string> got[2];
    for (const bool captured : {false, true}) {
      Training run(kHost, Kind::kSgd);
      auto body = [&](const Tensor& x, const Tensor& y) {
        if (!outside) run.optimizer->zero_grad();
        Tensor loss = cross_entropy_loss(run.net->forward(x), y);
        loss.backward();
        return loss;
      };
      Captured step(body);
      for (int i = 0; i < 8; ++i) {
        const auto [x, y] = run.batch(8);
        if (outside && i % 3 != 2) run.optimizer->zero_grad();  // else gradients add up
        const Tensor loss = captured ? step(x, y) : body(x, y);
        run.optimizer->step();
        got[captured].push_back(run.state(loss));
      }
      if (captured) { EXPECT_EQ(step.counters().captures, 2u); }
    }
    EXPECT_TRUE(got[0] == got[1]);
  }
}

// Parameters of 16 bits, and some that are copied for a step; every optimizer.
class Optimizers : public ::testing::TestWithParam<bool> {};

TEST_P(Optimizers, ParametersOfAnyDtypeAndLayout) {
  const bool on_gpu = GetParam();
  if (on_gpu && !why_no_gpu().empty()) GTEST_SKIP() << "no GPU: " << why_no_gpu();
  for (const testing::AnyOptimizer& any : testing::optimizers_of_matrices()) {
    std::vector<std::string> got[2];
    for (const bool captured : {false, true}) {
      const TensorOptions where(on_gpu ? Device(kCUDA, 0) : kHost);
      std::vector<Tensor> p{ones({5, 3}, where.dtype(kBFloat16)),
                            ones({7, 4}, where).slice(1, 0, 4, 2),
                            ones({4, 6}, where.dtype(kHalf)).t()};
      for (Tensor& t : p) t = t.detach().requires_grad_();
      const auto optimizer = any(p);
      optim::ExponentialLR schedule(*optimizer, 0.5);
      const auto body = [&] {
        optimizer->zero_grad();
        Tensor loss = p[0].square().sum().to(kFloat) + p[1].square().sum() + p[2].sum().to(kFloat);
        loss.backward();
        optimizer->step();
        schedule.step();
        return loss;
      };
      Captured step(body);
      for (int i = 0; i < 6; ++i) {
        std::string s = bits(captured ? step() : body());
        for (const Tensor& t : p) s += bits(t.detach().contiguous());
        got[captured].push_back(s);
      }
      // The first step makes the state, where there is one: that happens once.
      if (captured) { EXPECT_GE(step.counters().replays, 4u) << any.name; }
    }
    EXPECT_TRUE(got[0] == got[1]) << any.name;
  }
}
INSTANTIATE_TEST_SUITE_P(All, Optimizers, ::testing::Bool());

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
