// Several threads on one graph, one module, one leaf. Run under TSan by `./tools/test --tsan`.
#include <gtest/gtest.h>

#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

void in_threads(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(body, i);
  for (std::thread& t : threads) t.join();
}

TEST(EngineThreads, BackwardsOfOwnGraphsIntoOneLeaf) {
  const Tensor w = leaf({1, 2, 3});
  constexpr int kThreads = 4, kSteps = 50;
  in_threads(kThreads, [&](int i) {
    for (int s = 0; s < kSteps; ++s) (w * constant({1.0 * i, 1, 2})).sum().backward();
  });
  EXPECT_EQ(values(w.grad()), (std::vector<double>{kSteps * (0.0 + 1 + 2 + 3), kThreads * kSteps,
                                                   2.0 * kThreads * kSteps}));
}

TEST(EngineThreads, BackwardsOfOneGraph) {
  const Tensor w = leaf({1, 2});
  const Tensor h = w * w, y = (h * h).sum();
  constexpr int kThreads = 4, kSteps = 30;
  in_threads(kThreads, [&](int) {
    for (int s = 0; s < kSteps; ++s) y.backward({}, /*retain_graph=*/true);
  });
  EXPECT_EQ(values(w.grad()),
            (std::vector<double>{4.0 * kThreads * kSteps, 32.0 * kThreads * kSteps}));
}

TEST(EngineThreads, NoGradForwardsShareParameters) {
  const Tensor w = leaf({1, 2, 3});
  in_threads(4, [&](int) {
    NoGradGuard off;
    for (int s = 0; s < 100; ++s) {
      const Tensor y = (w * 2 + w).tanh();
      ASSERT_FALSE(y.requires_grad());
    }
  });
}

// A hook and a Function that run a backward of their own, in several backwards at once.
TEST(EngineThreads, BackwardInsideAHook) {
  const Tensor x = leaf({2}), w = leaf({3});
  constexpr int kThreads = 3, kSteps = 30;
  in_threads(kThreads, [&](int) {
    for (int s = 0; s < kSteps; ++s) {
      const Tensor h = x * 2;
      h.register_hook([&](Tensor) {
        const EnableGradGuard on;
        (w * w).sum().backward();
      });
      (h * h).sum().backward();
    }
  });
  EXPECT_EQ(values(w.grad()), (std::vector<double>{6.0 * kThreads * kSteps}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{16.0 * kThreads * kSteps}));
}

struct CubeByInnerGraph : autograd::Function<CubeByInnerGraph> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx,
                                          autograd::variable_list g) {
    const EnableGradGuard on;
    const Tensor x = ctx->get_saved_variables()[0].detach().requires_grad_();
    (x * x * x).sum().backward();
    return {g[0] * x.grad()};
  }
};
TEST(EngineThreads, BackwardInsideAFunction) {
  const Tensor w = leaf({2});
  constexpr int kThreads = 3, kSteps = 30;
  const Tensor shared = CubeByInnerGraph::apply(w).sum();
  in_threads(kThreads, [&](int i) {
    for (int s = 0; s < kSteps; ++s) {
      if (i == 0) shared.backward({}, /*retain_graph=*/true);
      else CubeByInnerGraph::apply(w).sum().backward();
    }
  });
  EXPECT_EQ(values(w.grad()), (std::vector<double>{12.0 * kThreads * kSteps}));
}

TEST(EngineThreads, GraphsMadeHereReleasedThere) {
  std::vector<Tensor> made(64);
  const Tensor w = leaf({1, 2});
  for (Tensor& t : made) t = (w * 2 + w).exp();
  in_threads(4, [&](int i) {
    for (size_t k = static_cast<size_t>(i); k < made.size(); k += 4) made[k] = Tensor();
  });
  (w * 1).sum().backward();
  EXPECT_EQ(values(w.grad()), (std::vector<double>{1, 1}));
}

TEST(EngineThreads, GradModeIsPerThread) {
  NoGradGuard off;
  std::thread([] { EXPECT_TRUE(GradMode::is_enabled()); }).join();
}

}  // namespace
}  // namespace ramet
