// Graphs with parts that were recorded on several threads, or by a backward that recorded more than
// others. Every node runs once, after all that uses its results.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "autograd/ops/layers/batch_norm.h"
#include "autograd/ops/layers/conv.h"
#include "autograd/ops/layers/layer_norm.h"
#include "autograd/ops/make/factory.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

template <class F> void elsewhere(const F& body) { std::thread(body).join(); }
/// Later operations of this thread have larger counters than a fresh thread's.
void record_much() {
  const Tensor x = leaf({1});
  for (int i = 0; i < 1000; ++i) x * 2;
}

TEST(Order, ATrunkWithHeadsOnOtherThreads) {
  const Tensor x = leaf({1, 2});
  record_much();
  const Tensor trunk = x * x;
  int hooks = 0;
  trunk.register_hook([&](const Tensor& g) { return ++hooks, g.clamp_max(5); });
  Tensor heads[2], loss;
  for (Tensor& head : heads) elsewhere([&] { head = trunk * 3; });
  elsewhere([&] { loss = ((heads[0] + heads[1]) + trunk).sum(); });
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_EQ(hooks, 1);
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2 * 5, 4 * 5}));  // of 7 each, clamped
  // The general backward pass decides in the same order which nodes lead to an input.
  const Tensor by_grad = autograd::grad({loss}, {x})[0];
  EXPECT_EQ(values(by_grad), (std::vector<double>{10, 20}));
}

TEST(Order, EqualCountersOfTwoThreads) {
  const Tensor a = leaf({3}), b = leaf({5});
  Tensor y[2];
  elsewhere([&] { y[0] = a * a; });
  elsewhere([&] { y[1] = b * b; });
  (y[0] + y[1]).sum().backward();
  EXPECT_EQ(values(a.grad()), (std::vector<double>{6}));
  EXPECT_EQ(values(b.grad()), (std::vector<double>{10}));
}

// y = x; its backward records `operations` of them.
struct Long : autograd::Function<Long> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, int64_t operations) {
    ctx->saved_data["operations"] = operations;
    return x * 1;
  }
  static autograd::tensor_list backward(autograd::AutogradContext* ctx, autograd::tensor_list g) {
    Tensor y = g[0];
    for (int64_t i = ctx->saved_data["operations"].toInt(); i > 0; --i) y = y * 1;
    return {y, Tensor()};
  }
};

TEST(Order, ABackwardThatRecordsManyOperations) {
  for (int64_t operations : {10, 5000, 20000}) {
    const Tensor x = leaf({0.5});
    const Tensor e = (x * x).exp();
    const Tensor out = Long::apply(e, operations);
    const auto first = autograd::grad({out * out}, {x, e}, {}, {}, /*create_graph=*/true);
    (first[0] + first[1]).sum().backward();
    // With f = e^(2 x^2): f' = 4 x f, f'' = (4 + 16 x^2) f; d(2 e)/dx = 4 x e.
    const double f = std::exp(0.5), expected = (4 + 16 * 0.25) * f + 4 * 0.5 * std::exp(0.25);
    EXPECT_NEAR(values(x.grad())[0], expected, 1e-12 * expected) << operations;
  }
}

// y = x^3 by its own derivatives: backward() asks autograd::grad for them.
struct Recomputed : autograd::Function<Recomputed> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static autograd::tensor_list backward(autograd::AutogradContext* ctx, autograd::tensor_list g) {
    const bool create = GradMode::is_enabled();
    const EnableGradGuard on;
    const Tensor saved = ctx->get_saved_variables()[0];
    const Tensor x = create ? saved : saved.detach().requires_grad_();
    return autograd::grad({x * x * x}, {x}, {g[0]}, {}, create);
  }
};
TEST(Order, AGradientInsideABackward) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor h = x * 2;
  const auto first = autograd::grad({Recomputed::apply(h).sum() + h.sum()}, {x, h}, {}, {}, true);
  (first[0] * first[1]).sum().backward();
  // first[1] = 3 h^2 + 1 with h = 2 x, first[0] twice that: d(2 (12 x^2 + 1)^2) / dx
  for (size_t i = 0; i < 3; ++i) {
    const double v = static_cast<double>(i) + 1;
    EXPECT_EQ(values(x.grad())[i], 4 * (12 * v * v + 1) * 24 * v);
  }
}

TEST(Order, ThirdDerivativesOfNorms) {
  const auto layer = [](const Tensor& x) { return layer_norm(x, {3}); };
  const auto batch = [](const Tensor& x) {
    return batch_norm(x, {}, {}, {}, {}, /*training=*/true, 0.1, 1e-5, false);
  };
  const auto check = [](const std::function<Tensor(const Tensor&)>& norm) {
    const Tensor x = varied_leaf({4, 3});
    const auto third = [&] {
      const Tensor y = norm(x).pow(3).sum();
      const Tensor g1 = autograd::grad({y}, {x}, {}, {}, true)[0];
      return autograd::grad({g1.pow(2).sum()}, {x}, {}, {}, true)[0].pow(2).sum();
    };
    const Tensor by_grad = autograd::grad({third()}, {x})[0];
    third().backward();
    EXPECT_EQ(values(x.grad()), values(by_grad));
    // Against the difference quotient in one direction.
    const Tensor step = varied({4, 3}, 3) * 1e-5;
    double quotient = 0, expected = 0;
    const Tensor at = x.detach().clone();
    for (int sign : {1, -1}) {
      const NoGradGuard off;
      x.copy_(at + step * sign);
      const EnableGradGuard on;
      quotient += sign * third().item<double>() / 2;
    }
    for (size_t i = 0; i < 12; ++i) expected += values(by_grad)[i] * values(step)[i];
    EXPECT_NEAR(quotient, expected, 1e-5 * std::abs(expected));
  };
  check(layer);
  check(batch);
}

TEST(Order, ManyThreadsMakeOneGraph) {
  const Tensor x = leaf({1, 2, 3});
  constexpr int kThreads = 4;
  for (int round = 0; round < 20; ++round) {
    x.mutable_grad() = Tensor();
    const Tensor trunk = (x * x).exp();
    std::vector<Tensor> parts(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        Tensor& mine = parts[static_cast<size_t>(i)];
        mine = trunk;
        for (int k = 0; k <= i; ++k) mine = mine * 2;
      });
    for (std::thread& t : threads) t.join();
    Tensor sum = trunk;
    for (const Tensor& p : parts) sum = sum + p;
    sum.sum().backward();
    for (int i = 0; i < 3; ++i) {
      const double v = i + 1.0, expected = (1 + 2 + 4 + 8 + 16) * 2 * v * std::exp(v * v);
      EXPECT_NEAR(values(x.grad())[static_cast<size_t>(i)], expected, 1e-12 * expected);
    }
  }
}

TEST(Order, AStaleViewIsRenewedOnceForAllThreads) {
  for (int round = 0; round < 50; ++round) {
    const Tensor x = leaf({1, 2, 3});
    const Tensor h = x * 2, part = h.slice(0, 1);
    h.mul_(5);
    std::vector<Tensor> sums(3);
    std::vector<std::thread> threads;
    for (Tensor& sum : sums) threads.emplace_back([&] { sum = part.sum(); });
    for (std::thread& t : threads) t.join();
    (sums[0] + sums[1] + sums[2]).backward();
    EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 30, 30}));
  }
}

// A convolution's result may lie in memory in another order than row-major. The first access to it
// as rows changes that. The memory that was read before stays where it was, for a thread that is
// still reading.
TEST(Order, LookingAtAConvolutionKeepsWhatOthersRead) {
  const NoGradGuard off;
  const Tensor y = conv2d(ones({4, 3, 16, 16}), ones({8, 3, 3, 3}));
  const float* before = static_cast<const float*>(y.ptr());
  ASSERT_FALSE(y.raw_contiguous());
  const auto version = y.version();
  const Tensor rows = y.view({-1});
  EXPECT_TRUE(y.raw_contiguous());
  EXPECT_NE(static_cast<const float*>(y.ptr()), before);
  for (int64_t i = 0; i < y.numel(); ++i) ASSERT_EQ(before[i], 27);  // under ASan: not freed
  EXPECT_EQ(y.version(), version);
  const Tensor z = y;
  z.add_(1);
  EXPECT_EQ(rows.version(), version + 1);
  EXPECT_EQ(rows[7].item<float>(), 28);
}

}  // namespace
}  // namespace ramet
