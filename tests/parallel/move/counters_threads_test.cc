// The counters that no scenario reads: random draws and living graph nodes.
#include <gtest/gtest.h>

#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/node.h"
#include "parallel/move/counters.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;
using ramet::parallel::counters;
using ramet::parallel::reset_counters;

TEST(Counters, RandomDraws) {
  reset_counters();
  rand({100});
  EXPECT_EQ(counters().rng_draws, 1u) << "operations, not numbers";
  randperm(5, Generator(kCPU, 1));
  EXPECT_EQ(counters().rng_draws, 2u) << "from any generator";
  const Tensor x = filled({8, 4}, 1);
  nn::Dropout drop(0.5);
  DataParallel<nn::Dropout> random(drop, many(4));
  nn::Linear linear(4, 4);
  DataParallel<nn::Linear> plain(linear, many(4));
  plain(x);  // the shells are made here: reset() draws, and the generators are put back
  reset_counters();
  random(x);
  EXPECT_EQ(counters().rng_draws, 4u) << "one a replica";
  reset_counters();
  plain(x).sum().backward();
  EXPECT_EQ(counters().rng_draws, 0u) << "a step touches no generator";
}

int64_t alive() {
  devices::synchronize();
  return counters().graph_nodes_alive;
}

TEST(Counters, NodesAlive) {
  const Tensor x = ones({3});
  const int64_t start = alive();
  x.requires_grad_();
  EXPECT_EQ(alive(), start + 1) << "the leaf's collector";
  {
    const Tensor y = (x * x).sum();
    EXPECT_EQ(alive(), start + 3) << "mul, sum and the leaf's collector";
    y.backward();
    EXPECT_EQ(alive(), start + 3) << "freed of what they saved, not yet gone";
  }
  EXPECT_EQ(alive(), start + 1);
  reset_counters();
  EXPECT_EQ(alive(), start + 1);
  {
    const NoGradGuard off;
    const Tensor y = x * x;
    EXPECT_EQ(alive(), start + 1);
  }
}

TEST(Counters, NodesOfAStepAreGone) {
  std::atomic<bool> fails{false};
  SmallConv m(true);
  DataParallel<SmallConv> dp(m, {kHost, d(0), d(1)});
  m->register_forward_hook([&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>&) {
    if (fails && replica_index() == 1) throw std::runtime_error("Badness!");
  });
  const Tensor x = varied({6, 1, 6, 6}, 1);
  auto step = [&] { dp(x).sum().backward(); };
  step();
  const int64_t after_one = alive();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(alive(), after_one);
  fails = true;
  for (int i = 0; i < 5; ++i) EXPECT_ERROR_TEXT(step(), "Badness!");
  EXPECT_EQ(alive(), after_one);
}

// Made on one thread, released on another, on threads that come and go.
TEST(Counters, NodesOfManyThreads) {
  const Tensor x = ones({3});
  x.requires_grad_();
  (x * x).sum().backward();
  const int64_t start = alive();
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<Tensor>> made(4);
    std::vector<std::thread> threads;
    for (auto& list : made)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) list.push_back(x * x);
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(alive(), start + 200);
    threads.clear();
    for (size_t k = 0; k < 3; ++k) threads.emplace_back([&made, k] { made[k].clear(); });
    for (auto& t : threads) t.join();
    EXPECT_EQ(alive(), start + 50);
    made.clear();
    EXPECT_EQ(alive(), start);
  }
}

}  // namespace
}  // namespace ramet
