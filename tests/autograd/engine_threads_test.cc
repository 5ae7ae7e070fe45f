// Several threads on one graph, one module, one leaf. Run under TSan by `./tools/test --tsan`.
#include <gtest/gtest.h>

#include <thread>

#include "autograd/autograd.h"
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
