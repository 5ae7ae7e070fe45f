// Captured steps under autocast have the bits of eager ones: a replay casts the parameters again.
#include "autograd/autocast.h"
#include "autograd/checkpoint.h"
#include "autograd/grad_mode.h"
#include "tests/capture/training.h"

namespace ramet {
namespace capture_tests {
namespace {

// `again`: the forward is computed again in the backward pass.
struct CastTraining : Training {
  bool again;
  explicit CastTraining(Device where, bool computed_again = false)
      : Training(where), again(computed_again) {}
  Tensor step(const Tensor& x, const Tensor& y) {
    if (!again) return Training::step(x, y);
    optimizer->zero_grad();
    const auto forward = [this](const Tensor& in) { return net->forward(in); };
    Tensor loss = cross_entropy_loss(autograd::checkpoint(forward, x), y);
    loss.backward();
    optimizer->step();
    schedule->step();
    return loss;
  }
};

// `inside`: is the guard inside of the captured function? `again`: does that use a checkpoint?
void expect_eager_bits(Device device, bool inside, bool again = false) {
  std::vector<std::string> expected;
  {
    CastTraining eager(device);
    for (int i = 0; i < kSteps; ++i) {
      const auto [x, y] = eager.batch(8);
      const AutocastGuard guard(device.type());
      expected.push_back(eager.state(eager.step(x, y)));
    }
  }
  CastTraining captured(device, again);
  Captured step([&](const Tensor& x, const Tensor& y) {
    const AutocastGuard guard(device.type(), std::nullopt,
                              inside || autocast::is_autocast_enabled(device.type()));
    return captured.step(x, y);
  });
  std::optional<AutocastGuard> around;
  if (!inside) around.emplace(device.type());
  for (int i = 0; i < kSteps; ++i) {
    const auto [x, y] = captured.batch(8);
    const Tensor loss = step(x, y);
    EXPECT_EQ(captured.state(loss), expected[static_cast<size_t>(i)]) << "step " << i;
  }
  EXPECT_GT(step.counters().replays, static_cast<uint64_t>(kSteps) - 4);
}

TEST(CapturedAutocast, SameBitsAsEager) {
  expect_eager_bits(kHost, true);
  expect_eager_bits(kHost, false);
}
TEST(CapturedAutocast, SameBitsInACheckpoint) {
  expect_eager_bits(kHost, true, true);
  expect_eager_bits(kHost, false, true);
}
TEST(CapturedAutocast, SameBitsAsEagerOnGpu) {
  if (!why_no_gpu().empty()) GTEST_SKIP() << "no GPU: " << why_no_gpu();
  expect_eager_bits(Device(kCUDA, 0), true);
}

// Eager and captured operations in one guard do not share casts.
TEST(CapturedAutocast, CastsBelongToTheCapture) {
  const Tensor x = ones({1, 2}), w = ones({1, 2}).requires_grad_();
  Captured product([&](const Tensor& in) { return linear(in, w).detach(); });
  const AutocastGuard guard(kCPU);
  const auto sum = [&] { return linear(x, w).item<float>(); };
  EXPECT_EQ(sum(), 2);
  for (const double value : {1.0, 2.0, 3.0, 4.0}) {
    {
      const NoGradGuard off;
      w.fill_(value);
    }
    EXPECT_EQ(product(x).item<float>(), 2 * value);
    EXPECT_EQ(sum(), 2 * value);
  }
  EXPECT_GT(product.counters().replays, 0u);
}

TEST(CapturedAutocast, EachStateHasItsCapture) {
  const Tensor x = ones({2, 2});
  Captured square([](const Tensor& in) { return mm(in, in); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(square(x).scalar_type(), kFloat);
    const AutocastGuard guard(kCPU);
    EXPECT_EQ(square(x).scalar_type(), kBFloat16);
    const AutocastGuard half(kCPU, kHalf);
    EXPECT_EQ(square(x).scalar_type(), kHalf);
  }
  EXPECT_EQ(square.counters().captures, 3u);
  EXPECT_EQ(square.counters().replays, 3u);
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
