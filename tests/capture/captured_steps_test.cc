// Twenty eager steps and twenty captured ones have the same bits, on a CPU and on a GPU.
#include <memory>
#include <sstream>

#include "nn/optim/gradient_accumulation.h"
#include "nn/optim/lr_factors.h"
#include "nn/serialize/archive.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/pool.h"
#include "tests/capture/support.h"
#include "tests/optimizers.h"
#include "tests/share.h"

namespace ramet {
namespace capture_tests {
namespace {

// One training run; the tests can compare all state that a step changes.
struct Training {
  Net net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::LRScheduler> schedule;
  Generator data{kHost, 5};
  Device device;

  enum class Kind { kAdam, kAdamW, kSgd };
  Training(Kind kind, Device where) : device(where) {
    manual_seed(11);
    net = Net();
    net->to(device);
    const std::vector<Tensor> p = net->parameters();
    if (kind == Kind::kAdam)
      optimizer = std::make_unique<optim::Adam>(p, optim::AdamOptions(0.01).weight_decay(0.01));
    else if (kind == Kind::kAdamW)
      optimizer = std::make_unique<optim::AdamW>(p, optim::AdamWOptions(0.01).amsgrad(true));
    else optimizer = std::make_unique<optim::SGD>(p, optim::SGDOptions(0.05).momentum(0.9));
    schedule = std::make_unique<optim::CosineAnnealingLR>(*optimizer, 40, 0, 3);
    default_generator(device).set_current_seed(3);
  }
  std::pair<Tensor, Tensor> batch(int64_t n) {
    return {normal(0, 1, {n, 1, 12, 12}, data).to(device),
            randint(0, 5, {n}, data, TensorOptions(kLong)).to(device)};
  }
  Tensor step(const Tensor& x, const Tensor& y) {
    optimizer->zero_grad();
    Tensor loss = cross_entropy_loss(net->forward(x), y);
    loss.backward();
    optimizer->step();
    schedule->step();
    return loss;
  }
  std::string state(const Tensor& loss) {
    std::string s = bits(loss);
    for (const Tensor& t : net->parameters()) s += bits(t) + bits(t.grad());
    for (const Tensor& t : net->buffers()) s += bits(t);
    serialize::OutputArchive archive;
    optimizer->save(archive);
    schedule->save(archive);
    std::ostringstream text;
    archive.save_to(text);
    const GeneratorState g = default_generator(device).get_state();
    return s + text.str() + std::to_string(g.seed) + "," + std::to_string(g.offset);
  }
};

class Steps : public ::testing::TestWithParam<std::tuple<Training::Kind, bool>> {};

TEST_P(Steps, SameBitsAsEager) {
  const auto [kind, on_gpu] = GetParam();
  if (on_gpu && !why_no_gpu().empty()) GTEST_SKIP() << "no GPU: " << why_no_gpu();
  if (on_gpu && testing::one_repeat_in() > 1 && kind != Training::Kind::kAdam)
    GTEST_SKIP() << "one optimizer has a GPU where a step costs many times as much";
  const Device device = on_gpu ? Device(kCUDA, 0) : kHost;
  const auto size = [](int i) { return i % 5 == 4 ? 3 : 8; };  // a short last batch
  std::vector<std::string> expected;
  {
    Training eager(kind, device);
    for (int i = 0; i < kSteps; ++i) {
      const auto [x, y] = eager.batch(size(i));
      expected.push_back(eager.state(eager.step(x, y)));
    }
  }
  Training run(kind, device);
  Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  for (int i = 0; i < kSteps; ++i) {
    const auto [x, y] = run.batch(size(i));
    const Tensor loss = step(x, y);
    ASSERT_TRUE(run.state(loss) == expected[static_cast<size_t>(i)]) << "step " << i;
    EXPECT_FALSE(loss.requires_grad());
  }
  // The first step makes the optimizer's state: it happens once. Then one capture for each size.
  EXPECT_EQ(step.counters().captures, 3u);
  EXPECT_EQ(step.counters().replays, static_cast<uint64_t>(kSteps - 3));
  EXPECT_EQ(step.counters().failed_guards, 1u);
  EXPECT_EQ(step.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(All, Steps,
                         ::testing::Combine(::testing::Values(Training::Kind::kAdam,
                                                              Training::Kind::kAdamW,
                                                              Training::Kind::kSgd),
                                            ::testing::Bool()));

class Memory : public ::testing::TestWithParam<bool> {};

TEST_P(Memory, AReplayAllocatesNothing) {
  if (GetParam() && !why_no_gpu().empty()) GTEST_SKIP() << "no GPU: " << why_no_gpu();
  const Device device = GetParam() ? Device(kCUDA, 0) : kHost;
  Training run(Training::Kind::kAdam, device);
  Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  const auto [x, y] = run.batch(8);
  for (int i = 0; i < 3; ++i) step(x, y);
  ASSERT_EQ(step.counters().replays, 1u);
  const MemoryStats before = memory_stats(device), host = memory_stats(kHost);
  for (int i = 0; i < 5; ++i) step(x, y);
  EXPECT_EQ(memory_stats(device).allocations, before.allocations);
  EXPECT_EQ(memory_stats(device).current, before.current);
  EXPECT_EQ(memory_stats(kHost).allocations, host.allocations);
}
INSTANTIATE_TEST_SUITE_P(All, Memory, ::testing::Bool());

// Eager steps and other captures between replays.
TEST(Mixed, WithEagerSteps) {
  std::vector<std::string> expected;
  {
    Training eager(Training::Kind::kAdam, kHost);
    for (int i = 0; i < 12; ++i) {
      const auto [x, y] = eager.batch(8);
      expected.push_back(eager.state(eager.step(x, y)));
    }
  }
  Training run(Training::Kind::kAdam, kHost);
  Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  for (int i = 0; i < 12; ++i) {
    const auto [x, y] = run.batch(8);
    const Tensor loss = i % 3 == 1 ? run.step(x, y) : step(x, y);
    ASSERT_TRUE(run.state(loss) == expected[static_cast<size_t>(i)]) << "step " << i;
  }
  EXPECT_EQ(step.counters().captures, 2u);
  EXPECT_EQ(step.counters().replays, 6u);
}

// zero_grad and the optimizer's step are outside: the capture leaves the gradients. One part a
// call: a capture for each place in the accumulation.
TEST(Mixed, AnAccumulation) {
  std::vector<std::string> got[2];
  for (const bool captured : {false, true}) {
    Training run(Training::Kind::kSgd, kHost);
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
      Training run(Training::Kind::kSgd, kHost);
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
