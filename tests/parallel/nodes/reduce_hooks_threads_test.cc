// Hooks before and after the reduction of gradients, together with the hooks of replicas and of the
// parameter itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "autograd/autograd.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

// What hooks saw, on any thread.
class Seen {
 public:
  void add(const std::string& text, const Tensor& g) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lines_.push_back(text + " " + g.device().str() + " " +
                     std::to_string(static_cast<int>(g.item<double>())));
  }
  std::vector<std::string> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::move(lines_);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};
using Lines = std::vector<std::string>;

TEST(ReduceHooks, BeforeAndAfter) {
  Times m(2);  // d loss / d w: 1 + 2 in replica 0, 3 + 4 in replica 1
  DataParallel<Times> dp(m, many(2));
  Seen seen;
  const unsigned pre = dp.replicas().register_pre_reduce_hook(
      [&](int replica, const std::string& name, const Tensor& g) {
        seen.add("pre" + std::to_string(replica) + " " + name, g);
        return replica == 1 ? g * 2 : Tensor();
      });
  const unsigned post =
      dp.replicas().register_post_reduce_hook([&](const std::string& name, const Tensor& g) {
        seen.add("post " + name, g);
        return -g;
      });
  m->w.register_hook([&](const Tensor& g) { seen.add("own", g); });
  const Tensor x = make({1, 2, 3, 4});
  for (int step = 0; step < 2; ++step) {
    m->zero_grad();
    dp(x).sum().backward();
    Lines lines = seen.take();
    ASSERT_EQ(lines.size(), 4u);
    std::sort(lines.begin(), lines.begin() + 2);  // replicas side by side
    EXPECT_EQ(lines, (Lines{"pre0 w " + d(0).str() + " 3", "pre1 w " + d(1).str() + " 7",
                            "post w cpu 17", "own cpu -17"}));
    EXPECT_EQ(values(m->w.grad()), Values{-17});
  }
  dp.replicas().remove_reduce_hook(pre);
  m->zero_grad();
  dp(x).sum().backward();
  EXPECT_EQ(seen.take(), (Lines{"post w cpu 10", "own cpu -10"}));
  dp.replicas().remove_reduce_hook(post);
  m->zero_grad();
  dp(x).sum().backward();
  EXPECT_EQ(seen.take(), (Lines{"own cpu 10"}));
  EXPECT_ERROR_TEXT(dp.replicas().remove_reduce_hook(post),
                    "expected a number that a registration");
}

struct SkippingImpl : nn::Cloneable<SkippingImpl> {
  SkippingImpl() { SkippingImpl::reset(); }
  void reset() override { w = register_parameter("w", make({}, {2})); }
  Tensor forward(const Tensor& x) { return replica_index() == 0 ? x : x * w; }
  Tensor w;
};
RAMET_MODULE(Skipping);

// A replica that did not use the parameter has no gradient and no call; a frozen parameter neither.
TEST(ReduceHooks, OnlyWhereThereIsAGradient) {
  Skipping m;
  DataParallel<Skipping> dp(m, many(2));
  std::mutex mutex;
  std::vector<int> of;
  dp.replicas().register_pre_reduce_hook([&](int r, const std::string&, const Tensor&) {
    const std::lock_guard<std::mutex> lock(mutex);
    of.push_back(r);
    return Tensor();
  });
  dp(make({1, 2})).sum().backward();
  EXPECT_EQ(of, std::vector<int>{1});
  m->w.requires_grad_(false);
  of.clear();
  const Tensor x = make({1, 2});
  x.requires_grad_();
  dp(x).sum().backward();
  EXPECT_TRUE(of.empty());
}

// What a hook keeps is its own: the next backward writes elsewhere.
TEST(ReduceHooks, KeptGradientsStay) {
  for (const std::vector<Device>& on :
       {std::vector<Device>{kHost, d(0)}, many(2), std::vector<Device>{d(0)}}) {
    Times m(2);
    DataParallel<Times> dp(m, DataParallelOptions(on));
    std::mutex mutex;
    std::vector<Tensor> before, after;
    dp.replicas().register_pre_reduce_hook([&](int, const std::string&, const Tensor& g) {
      const std::lock_guard<std::mutex> lock(mutex);
      before.push_back(g);
      return Tensor();
    });
    dp.replicas().register_post_reduce_hook([&](const std::string&, const Tensor& g) {
      after.push_back(g);
      return Tensor();
    });
    for (int step = 1; step <= 3; ++step) {
      m->zero_grad();
      dp(filled({4}, step)).sum().backward();
      EXPECT_EQ(values(m->w.grad()), Values{4.0 * step});
    }
    ASSERT_EQ(before.size(), 3 * on.size());
    ASSERT_EQ(after.size(), 3u);
    for (size_t step = 0; step < 3; ++step) {
      EXPECT_EQ(values(after[step]), Values{4.0 * static_cast<double>(step + 1)});
      for (size_t r = 0; r < on.size(); ++r)
        EXPECT_EQ(values(before[step * on.size() + r]),
                  Values{4.0 / static_cast<double>(on.size()) * static_cast<double>(step + 1)});
    }
  }
}

TEST(ReduceHooks, AreDifferentiated) {
  Times m(2);
  DataParallel<Times> dp(m, many(2));
  dp.replicas().register_pre_reduce_hook(
      [](int, const std::string&, const Tensor& g) { return g * 3; });
  dp.replicas().register_post_reduce_hook(
      [](const std::string&, const Tensor& g) { return g * g; });
  const Tensor x = make({1, 2});
  // loss = sum (w x)^2: its gradient is 2 w * 5 = 20, the hooks make it (3 * 10 w)^2 = 3600
  const Tensor g = autograd::grad({dp(x).square().sum()}, {m->w}, {}, true, true)[0];
  EXPECT_EQ(values(g), Values{3600});
  // Its derivative is 2 * 30 w * 30 = 3600, which in turn comes through both hooks.
  g.backward();
  EXPECT_EQ(values(m->w.grad()), Values{10800.0 * 10800.0});
}

TEST(ReduceHooks, ErrorsAreTheBackwards) {
  Times m(2);
  DataParallel<Times> dp(m, many(2));
  const unsigned bad =
      dp.replicas().register_post_reduce_hook([](const std::string&, const Tensor&) {
        return make({1, 2});
      });
  EXPECT_ERROR_TEXT(dp(make({1, 2})).sum().backward(),
                    "[post_reduce_hook] parameter 'w': the hook returned float32[2]");
  EXPECT_FALSE(m->w.grad().defined());
  dp.replicas().remove_reduce_hook(bad);
  dp(make({1, 2})).sum().backward();
  EXPECT_EQ(values(m->w.grad()), Values{3});
}

// A read of the outputs between forward and backward.
TEST(ReduceHooks, StayWhereAForwardComesBetween) {
  Times m(1);
  DataParallel<Times> dp(m, many(2));
  dp.replicas().register_pre_reduce_hook(
      [](int, const std::string&, const Tensor& g) { return g * 10; });
  const Tensor loss = dp(filled({4}, 1)).sum();
  {
    const NoGradGuard off;
    dp(filled({4}, 1));
  }
  loss.backward();
  EXPECT_EQ(values(m->w.grad()), Values{40});
}

TEST(ReduceHooks, MayRunForwardsAndRemoveThemselves) {
  for (const bool before : {true, false}) {
    Times m(1);
    DataParallel<Times> dp(m, many(2));
    std::atomic<int> calls{0};
    std::mutex one;
    unsigned id = 0;
    const std::string text(100, 'x');  // what dies with the hook
    const auto once = [&, text](bool first) {
      if (!first) return;
      const std::lock_guard<std::mutex> lock(one);
      if (calls++) return;
      dp.replicas().remove_reduce_hook(id);
      {
        const NoGradGuard off;
        dp(filled({4}, 1));
      }
      dp(filled({4}, 1)).sum();  // and one with a graph
      EXPECT_EQ(text, std::string(100, 'x'));
    };
    id = before
             ? dp.replicas().register_pre_reduce_hook(
                   [once](int r, const std::string&, const Tensor&) {
                     once(r == 0);
                     return Tensor();
                   })
             : dp.replicas().register_post_reduce_hook([once](const std::string&, const Tensor&) {
                 once(true);
                 return Tensor();
               });
    for (int step = 0; step < 3; ++step) dp(filled({4}, 1)).sum().backward();
    EXPECT_EQ(values(m->w.grad()), Values{12});
    EXPECT_EQ(calls, 1);
  }
}

// The same of a hook that a forward hangs on its replica's parameter.
struct HookingImpl : nn::Cloneable<HookingImpl> {
  HookingImpl() { HookingImpl::reset(); }
  void reset() override { w = register_parameter("w", make({}, {1})); }
  Tensor forward(const Tensor& x) {
    if (GradMode::is_enabled() && replica_index() == 0)
      w.register_hook([look = look](const Tensor& g) {
        if (*look) (*look)();
        return g * 2;
      });
    return x * w;
  }
  std::shared_ptr<std::function<void()>> look = std::make_shared<std::function<void()>>();
  Tensor w;
};
RAMET_MODULE(Hooking);

TEST(ReduceHooks, ReplicasHooksMayRunForwards) {
  Hooking m;
  DataParallel<Hooking> dp(m, many(2));
  *m->look = [&] {
    const NoGradGuard off;
    dp(filled({4}, 1));
  };
  dp(filled({4}, 1)).sum().backward();
  EXPECT_EQ(values(m->w.grad()), Values{6});
}

struct PairImpl : nn::Cloneable<PairImpl> {
  PairImpl() { PairImpl::reset(); }
  void reset() override {
    a = register_parameter("a", make({}, {1}));
    b = register_parameter("b", make({}, {1}));
  }
  Tensor forward(const Tensor& x) { return x * a + x * b; }
  Tensor a, b;
};
RAMET_MODULE(Pair);

// A bucket's other parameters do not depend on the parameter with the failing hook.
TEST(ReduceHooks, AFailureTakesNoOtherParameterAlong) {
  for (const bool before : {true, false}) {
    Pair m;
    DataParallel<Pair> dp(m, many(2));
    const auto fail_for_a = [](const std::string& name) {
      if (name == "a") throw std::runtime_error("not a");
      return Tensor();
    };
    if (before)
      dp.replicas().register_pre_reduce_hook(
          [=](int, const std::string& name, const Tensor&) { return fail_for_a(name); });
    else
      dp.replicas().register_post_reduce_hook(
          [=](const std::string& name, const Tensor&) { return fail_for_a(name); });
    EXPECT_THROW(dp(filled({4}, 1)).sum().backward(), std::runtime_error);
    EXPECT_FALSE(m->a.grad().defined());
    ASSERT_TRUE(m->b.grad().defined());
    EXPECT_EQ(values(m->b.grad()), Values{4});
  }
}

// One thread goes back while another goes forward over the same cached replicas.
TEST(ReduceHooks, BackwardBesideForward) {
  Times m(1);
  for (int round = 0; round < 20; ++round) {
    const Tensor loss = data_parallel(m, filled({40}, 1), many(2)).sum();
    std::thread other([&] {
      for (int k = 0; k < 3; ++k) data_parallel(m, filled({4}, 1), many(2));
    });
    loss.backward();
    other.join();
  }
  EXPECT_EQ(values(m->w.grad()), Values{800});
}

// An optimizer's step in the parameter's own hook, which has the sum over the replicas.
TEST(ReduceHooks, AStepInTheBackward) {
  for (int replicas : {1, 2, 3})
    for (const bool one_optimizer : {false, true}) {
      manual_seed(3);
      SmallConv net, twin(std::dynamic_pointer_cast<SmallConvImpl>(net->clone()));
      DataParallel<SmallConv> dp(net, many(replicas)), plain(twin, many(replicas));
      std::vector<optim::SGD> each;
      each.reserve(4);
      optim::SGD all(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
      optim::SGD after(twin->parameters(), optim::SGDOptions(0.1).momentum(0.9));
      for (const Tensor& p : net->parameters()) {
        if (!one_optimizer)
          each.emplace_back(std::vector<Tensor>{p}, optim::SGDOptions(0.1).momentum(0.9));
        optim::SGD& its = one_optimizer ? all : each.back();
        p.register_post_accumulate_grad_hook([&its](const Tensor&) {
          its.step();
          its.zero_grad();
        });
      }
      for (int step = 0; step < 4; ++step) {
        const Tensor x = randn({6, 1, 6, 6});
        dp(x).pow(2).mean().backward();
        plain(x).pow(2).mean().backward();
        after.step();
        after.zero_grad();
      }
      for (size_t i = 0; i < net->parameters().size(); ++i) {
        EXPECT_FALSE(net->parameters()[i].grad().defined());
        EXPECT_TRUE(net->parameters()[i].equal(twin->parameters()[i])) << replicas << " " << i;
      }
    }
}

}  // namespace
}  // namespace ramet
