// The graph, the two kinds of backward pass, leaves, hooks, double backward, deep chains.
#include "autograd/graph/graph_task.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/graph/function.h"
#include "autograd/graph/graph_observer.h"
#include "runtime/base/logging.h"
#include "runtime/memory/pool.h"
#include "tests/autograd/check.h"
#include "tests/autograd/graph/small_stack.h"

namespace ramet {
namespace {

TEST(Engine, LeafGetsItsGradient) {
  const Tensor x = leaf({2.0, 3.0});
  const Tensor y = (x * x).sum();
  EXPECT_EQ(y.grad_fn()->name(), "SumBackward0");
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{4, 6}));
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE(x.grad_fn());
}

TEST(Engine, ContributionsAccumulateAcrossBackwards) {
  const Tensor x = leaf({1.0});
  (x * 3).sum().backward();
  (x * 4).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{7}));
}

TEST(Engine, OneTensorUsedOften) {
  const Tensor x = leaf({1.5});
  Tensor y = x;
  for (int i = 0; i < 5; ++i) y = y * x + x;  // gradients of x come from eleven edges
  y.sum().backward();
  double v = 1.5, d = 1;
  for (int i = 0; i < 5; ++i) {
    d = d * 1.5 + v + 1;
    v = v * 1.5 + 1.5;
  }
  EXPECT_DOUBLE_EQ(values(x.grad())[0], d);
}

TEST(Engine, WhoWaitsForTheEndHearsOfAWalkThatNeverBegan) {
  int calls = 0;
  {
    autograd::GraphTask task(false, false);
    task.at_end([&](bool failed) { calls += failed; });
  }
  EXPECT_EQ(calls, 1);
}

TEST(Engine, GradLeavesGradAlone) {
  const Tensor x = leaf({1.0, 2.0}), w = leaf({3.0, 4.0});
  const Tensor y = (x * w).sum();
  const auto g = autograd::grad({y}, {x});
  EXPECT_EQ(values(g[0]), (std::vector<double>{3, 4}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
}

TEST(Engine, GradOfANonLeaf) {
  const Tensor x = leaf({2.0});
  const Tensor h = x * x, y = (h * h).sum();
  EXPECT_EQ(values(autograd::grad({y}, {h}, {}, true)[0]), (std::vector<double>{8}));
  EXPECT_EQ(values(autograd::grad({y}, {x})[0]), (std::vector<double>{32}));
}

TEST(Engine, UnusedInput) {
  const Tensor x = leaf({1.0}), z = leaf({1.0});
  const Tensor y = (x * 2).sum();
  EXPECT_ERROR_TEXT(autograd::grad({y}, {z}, {}, true),
                    "appears to not have been used in the graph");
  EXPECT_FALSE(autograd::grad({y}, {z}, {}, true, false, true)[0].defined());
}

TEST(Engine, BackwardIntoNamedInputsOnly) {
  const Tensor x = leaf({1.0}), w = leaf({5.0});
  const std::vector<Tensor> only = {x};
  (x * w).sum().backward({}, std::nullopt, false, TensorList(only));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{5}));
  EXPECT_FALSE(w.grad().defined());
}

// LibTorch retains the gradient of a non-leaf that is asked for.
TEST(Engine, BackwardIntoANonLeaf) {
  const Tensor x = leaf({1, 2}), y = x * 2;
  const std::vector<Tensor> only = {y};
  for (double times : {1., 2.}) {
    (y * y).sum().backward({}, {}, false, only);
    EXPECT_EQ(values(y.grad()), (std::vector<double>{4 * times, 8 * times}));
  }
  EXPECT_FALSE(x.grad().defined());
  (x * 3).sum().backward({}, {}, false, std::vector<Tensor>{x, x});
  EXPECT_EQ(values(x.grad()), (std::vector<double>{3, 3})) << "named twice, counted once";
  EXPECT_ERROR_TEXT(y.sum().backward({}, {}, false, std::vector<Tensor>{}),
                    "'inputs' argument to backward cannot be empty");
}

TEST(Engine, ErrorsNameWhatIsWrong) {
  const Tensor x = leaf({1.0, 2.0});
  EXPECT_ERROR_TEXT((x * 2).backward(), "grad can be implicitly created only for scalar outputs");
  EXPECT_ERROR_TEXT(x.detach().sum().backward(),
                    "does not require grad and does not have a grad_fn");
  EXPECT_ERROR_TEXT((x * 2).backward(constant({1.0})), "Mismatch in shape");
  EXPECT_ERROR_TEXT(Tensor().backward(), "undefined");
  EXPECT_ERROR_TEXT((x * 2).requires_grad_(false),
                    "you can only change requires_grad flags of leaf");
}

TEST(Engine, NoGradRecordsNothing) {
  const Tensor x = leaf({1.0});
  {
    NoGradGuard off;
    EXPECT_FALSE((x * 2).requires_grad());
    EnableGradGuard on;
    EXPECT_TRUE((x * 2).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
}

TEST(Engine, InferenceTensorsAreRefusedByBackward) {
  Tensor t;
  {
    InferenceMode mode;
    t = constant({1.0, 2.0}) * 2;
    EXPECT_TRUE(t.is_inference());
  }
  const Tensor x = leaf({1.0, 2.0});
  EXPECT_ERROR_TEXT(x * t, "Inference tensors cannot be saved for backward");
  EXPECT_ERROR_TEXT(t.add_(1), "Inplace update to inference tensor outside InferenceMode");
}

TEST(Engine, DoubleBackward) {
  const Tensor x = leaf({2.0});
  const Tensor y = (x * x * x).sum();
  const Tensor g = autograd::grad({y}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
  EXPECT_EQ(values(g), (std::vector<double>{12}));
  const Tensor h = autograd::grad({g.sum()}, {x}, {}, std::nullopt, true)[0];
  EXPECT_EQ(values(h), (std::vector<double>{12}));
  EXPECT_EQ(values(autograd::grad({h.sum()}, {x})[0]), (std::vector<double>{6}));
}

// With PyTorch's text. A grad() does not warn.
TEST(Engine, BackwardThatCreatesAGraphWarnsOnce) {
  const Tensor x = leaf({2.0});
  std::vector<std::string> heard;
  set_log_handler([&](LogLevel level, const std::string& m) {
    heard.push_back(ramet::detail::join(level, ": ", m));
  });
  (x * x).sum().backward();
  autograd::grad({(x * x).sum()}, {x}, {}, std::nullopt, /*create_graph=*/true);
  EXPECT_TRUE(heard.empty());
  for (int i = 0; i < 2; ++i) (x * x).sum().backward({}, std::nullopt, /*create_graph=*/true);
  set_log_handler({});
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0],
            "warning: Using backward() with create_graph=True will create a reference cycle "
            "between the parameter and its gradient which can cause a memory leak. We recommend "
            "using autograd.grad when creating the graph to avoid this. If you have to use this "
            "function, make sure to reset the .grad fields of your parameters to None after use "
            "to break the cycle and avoid the leak.");
  x.mutable_grad() = Tensor();
}

TEST(Engine, CreateGraphDoesNotChangeFirstOrderBits) {
  const Tensor x = leaf({0.3, -1.7, 2.9});
  auto loss = [&] { return (x.tanh() * x.exp()).sigmoid().sum(); };
  const Tensor plain = autograd::grad({loss()}, {x})[0],
               recorded = autograd::grad({loss()}, {x}, {}, std::nullopt, true)[0];
  EXPECT_EQ(values(plain), values(recorded));
}

TEST(Engine, TensorHooks) {
  const Tensor x = leaf({1.0, 2.0});
  const Tensor h = x * 2;
  int calls = 0;
  h.register_hook([&](Tensor g) {
    ++calls;
    return g * 10;
  });
  const unsigned id = h.register_hook([&](Tensor) { calls += 100; });
  h.sum().backward({}, true);
  EXPECT_EQ(calls, 101);
  EXPECT_EQ(values(x.grad()), (std::vector<double>{20, 20}));
  h.remove_hook(id);
  h.sum().backward();
  EXPECT_EQ(calls, 102);
}

TEST(Engine, LeafHookSeesTheWholeGradientOnce) {
  const Tensor x = leaf({1.0});
  int calls = 0;
  x.register_hook([&](Tensor g) {
    ++calls;
    return g * 2;
  });
  (x * 3 + x * 4).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(values(x.grad()), (std::vector<double>{14}));
}

TEST(Engine, HookMayNotChangeTheShape) {
  const Tensor x = leaf({1.0, 2.0});
  x.register_hook([](Tensor g) { return g.sum(); });
  EXPECT_ERROR_TEXT((x * 2).sum().backward(), "has changed the size, dtype or device");
}

TEST(Engine, AHookThatRemovesItselfSkipsNoOther) {
  for (const bool is_leaf : {true, false}) {
    const Tensor x = leaf({1});
    const Tensor h = is_leaf ? x : x * 2;
    unsigned first = 0;
    first = h.register_hook([&](const Tensor&) { h.remove_hook(first); });
    h.register_hook([](const Tensor& g) { return g * 10; });
    h.register_hook([](const Tensor& g) { return g + 1; });
    const Tensor loss = (h * 1).sum();
    loss.backward({}, /*retain_graph=*/true);
    EXPECT_EQ(values(x.grad()), (std::vector<double>{is_leaf ? 11.0 : 22.0}));
    loss.backward();
    EXPECT_EQ(values(x.grad()), (std::vector<double>{is_leaf ? 22.0 : 44.0}));
  }
}

TEST(Engine, AHookMayRegisterOthers) {
  const Tensor x = leaf({1});
  int before = 0, after = 0, added = 0;
  x.register_hook([&](const Tensor&) {
    ++before;
    for (int i = 0; i < 20; ++i) x.register_hook([&](const Tensor&) { ++added; });
  });
  x.register_post_accumulate_grad_hook([&](const Tensor& t) {
    ++after;
    for (int i = 0; i < 20; ++i)
      t.register_post_accumulate_grad_hook([&](const Tensor&) { ++added; });
  });
  (x * 1).backward();
  EXPECT_EQ(added, 0);
  (x * 1).backward();
  EXPECT_EQ(added, 40);
  EXPECT_EQ(before, 2);
  EXPECT_EQ(after, 2);
}

TEST(Engine, AHookMayDetachTheRoot) {
  const Tensor x = leaf({1, 2});
  Tensor loss = (x * x).sum();
  loss.register_hook([&](const Tensor&) { loss.detach_(); });
  loss.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 4}));
  EXPECT_FALSE(loss.requires_grad());
}

TEST(Engine, RetainGrad) {
  const Tensor x = leaf({3.0});
  const Tensor h = x * x;
  EXPECT_FALSE(h.grad().defined());
  h.retain_grad();
  EXPECT_TRUE(h.retains_grad());
  (h * 5).sum().backward();
  EXPECT_EQ(values(h.grad()), (std::vector<double>{5}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{30}));
}

TEST(Engine, PostAccumulateHookSeesTheLeafWithItsGradient) {
  const Tensor x = leaf({3.0});
  std::vector<double> seen;
  x.register_post_accumulate_grad_hook([&](const Tensor& t) {
    seen = values(t.grad());
    t.mutable_grad() = Tensor();  // as an optimizer inside backward does
  });
  (x * x).sum().backward();
  EXPECT_EQ(seen, (std::vector<double>{6}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, BackwardInsideAHook) {
  const Tensor x = leaf({2.0}), w = leaf({3.0});
  const Tensor h = x * 2;
  h.register_hook([&](Tensor) {
    EnableGradGuard on;  // hooks run in the backward's grad mode
    (w * w).sum().backward();
  });
  (h * h).sum().backward();
  EXPECT_EQ(values(w.grad()), (std::vector<double>{6}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{16}));
}

TEST(Engine, ExceptionLeavesTheGraphUsable) {
  const Tensor x = leaf({2.0});
  const Tensor h = x * 2;
  bool armed = true;
  h.register_hook([&](Tensor) {
    if (armed) throw std::logic_error("from a hook");
  });
  const Tensor y = (h * x).sum();
  EXPECT_THROW(y.backward({}, true), std::logic_error);
  EXPECT_FALSE(x.grad().defined());
  armed = false;
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{8}));
}

TEST(Engine, AnomalyModeNamesFunctionAndNan) {
  autograd::DetectAnomalyGuard guard;
  const Tensor x = leaf({0.0});
  const Tensor y = (x.sqrt() * 0).sum();
  const std::string what = error_of([&] { y.backward(); });
  expect_part(what, "returned nan values");
  expect_part(what, "SqrtBackward0");
}

struct MyError : Error {
  using Error::Error;
};
TEST(Engine, AnomalyModeKeepsTheTypeOfAnException) {
  autograd::DetectAnomalyGuard guard;
  const Tensor x = leaf({1.0}), y = x * 2;
  y.register_hook([](Tensor) { throw MyError("mine"); });
  EXPECT_THROW(y.sum().backward(), MyError);
}

// LibTorch casts it, too.
TEST(Engine, GradientOfAnotherFloatingDtype) {
  const Tensor x = constant({1, 1}).to(kFloat).requires_grad_();
  (x * 3).backward(constant({1.0, 2.0}).to(kDouble));
  EXPECT_EQ(x.grad().scalar_type(), kFloat);
  EXPECT_EQ(values(x.grad()), (std::vector<double>{3, 6}));
}

TEST(Engine, DataAndDetach) {
  const Tensor x = leaf({1.0, 2.0});
  const Tensor d = x.detach();
  EXPECT_FALSE(d.requires_grad());
  {
    NoGradGuard off;
    d.mul_(2);
  }
  EXPECT_EQ(values(x), (std::vector<double>{2, 4}));
  EXPECT_EQ(x._version(), d._version());
  const auto before = x._version();
  x.data().mul_(2);
  EXPECT_EQ(x._version(), before);  // .data() counts its own versions
  EXPECT_EQ(values(x), (std::vector<double>{4, 8}));
  x.set_data(constant({7.0, 8.0, 9.0}));
  EXPECT_EQ(x.numel(), 3);
  EXPECT_TRUE(x.requires_grad());
  x.sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1, 1}));
}

TEST(Engine, AssignmentToATemporaryCopies) {
  const Tensor x = constant({1.0, 2.0});
  x[0] = 5;
  EXPECT_EQ(values(x), (std::vector<double>{5, 2}));
  const Tensor w = leaf({1.0, 1.0});
  (w * 3).sum().backward();
  w.grad().data() = constant({9.0, 9.0});
  EXPECT_EQ(values(w.grad()), (std::vector<double>{9, 9}));
}

// Sanitizers triple the memory of a node and take ten times as long; a tenth is too many for
// recursion on that stack, too.
constexpr int kNodes = pool::kPassThrough ? 100000 : 1000000;

TEST(Engine, ChainOfAMillionNodesOnASmallStack) {
  on_small_stack([] {
    const Tensor x = leaf({1.0});
    Tensor y = x;
    for (int i = 0; i < kNodes / 2; ++i) y = (y * 1.0000001) + 0.0;
    y.backward(constant({1.0}), true);
    const double once = values(x.grad())[0];
    EXPECT_NEAR(once, std::pow(1.0000001, kNodes / 2), 1e-6);
    const Tensor g = autograd::grad({y}, {x}, {constant({1.0})}, true)[0];
    EXPECT_EQ(values(g)[0], once);
  });
}

TEST(Engine, MillionNodesDifferentiatedTwiceAndDropped) {
  on_small_stack([] {
    const Tensor x = leaf({1.0}), v = leaf({1.0});
    Tensor y = x;
    for (int i = 0; i < kNodes; ++i) y = y * 1.0000001;
    const Tensor g = autograd::grad({y}, {x}, {v}, true, /*create_graph=*/true)[0];
    EXPECT_NEAR(values(g)[0], std::pow(1.0000001, kNodes), 1e-6);
    g.sum().backward();
    EXPECT_NEAR(values(v.grad())[0], std::pow(1.0000001, kNodes), 1e-6);
    Tensor dropped = x;
    for (int i = 0; i < kNodes; ++i) dropped = dropped * 1.0;  // released without a backward
  });
}

// After two differentiations, each of these nodes is ten nodes, which all lead to the same leaf.
TEST(Engine, PowersDifferentiatedTwiceOnASmallStack) {
  constexpr int kPower = 50000;
  on_small_stack([] {
    const Tensor x = leaf({1.0});
    Tensor y = x;
    for (int i = 1; i < kPower; ++i) y = y * x;
    const Tensor g = autograd::grad({y}, {x}, {constant({1.0})}, true, /*create_graph=*/true)[0];
    EXPECT_NEAR(values(g)[0], kPower, 1e-6);
    g.sum().backward();
    EXPECT_NEAR(values(x.grad())[0], kPower * (kPower - 1.0), 1);
  });
}

// What an observer receives, as text.
struct Told final : autograd::GraphObserver {
  std::vector<std::string> lines;
  std::mutex mutex;
  bool alone = false;
  std::set<std::thread::id> threads;
  void say(const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
    threads.insert(std::this_thread::get_id());
  }
  bool wants_one_thread() const override { return alone; }
  void on_node_made(autograd::Node& n, ArrayRef<autograd::Input> in,
                    ArrayRef<autograd::Input> out) override {
    say("made " + n.name() + " " + std::to_string(in.size()) + " " + std::to_string(out.size()));
  }
  void on_saved(const Tensor& t) override { say("saved " + std::to_string(t.numel())); }
  void on_backward_begun(const void*, const std::vector<autograd::Root>& roots, bool) override {
    say("backward of " + roots.at(0).node->name());
  }
  void on_backward_ended(const void*, bool failed) override { say(failed ? "failed" : "over"); }
  void on_node_ready(const void*, autograd::Node& n) override { say("ready " + n.name()); }
  void on_node_begun(autograd::Node& n, Tensor*) override { say("begun " + n.name()); }
  void on_node_ended(autograd::Node& n, const Tensor*, bool failed) override {
    say((failed ? "broke " : "ended ") + n.name());
    if (failed) throw std::runtime_error("and the observer, too");  // logged, and else ignored
  }
  void on_delivered(const void*, autograd::Node& from, int edge, const Tensor& g) override {
    (void)g.add(1);  // changes no value
    say("from " + from.name() + " along " + std::to_string(edge));
  }
  void on_accumulated(autograd::Node&, const Tensor& g) override {
    say("leaf has " + std::to_string(g.sum().item<double>()));
  }
};
using Lines = std::vector<std::string>;

TEST(GraphObserver, IsToldOfTheGraphAndOfTheFastWalk) {
  const auto told = std::make_shared<Told>();
  const Tensor c = constant({5.0, 7.0});
  Tensor x;
  {
    const autograd::GraphObserverGuard guard(told);
    x = leaf({2.0, 3.0});
    (x * c).sum().backward();
  }
  (x * c).sum().backward();
  EXPECT_EQ(told->lines,
            (Lines{"made AccumulateGrad 0 1", "saved 2", "made MulBackward0 2 1",
                   "made SumBackward0 1 1", "backward of SumBackward0", "ready SumBackward0",
                   "begun SumBackward0", "ended SumBackward0", "from SumBackward0 along 0",
                   "ready MulBackward0", "begun MulBackward0", "ended MulBackward0",
                   "from MulBackward0 along 0", "ready AccumulateGrad", "begun AccumulateGrad",
                   "leaf has 12.000000", "ended AccumulateGrad", "over"}));
}

TEST(GraphObserver, LanesOfSeveralDevicesAndAFailure) {
  for (const bool alone : {false, true}) {
    const auto told = std::make_shared<Told>();
    told->alone = alone;
    const Tensor x = leaf({2.0, 3.0});
    const Tensor y = x.to(Device(kCPU, 1)) * 2;
    const Tensor sum = (y.to(Device(kCPU, 0)) + x).sum();
    y.register_hook([](const Tensor& g) { return g; });
    {
      const autograd::GraphObserverGuard guard(told), inner(std::make_shared<Told>());
      sum.backward();
    }
    EXPECT_EQ(std::ranges::count(told->lines, "from MulBackward1 along 0"), 1)
        << testing::PrintToString(told->lines);
    EXPECT_EQ(std::ranges::count(told->lines, "leaf has 6.000000"), 1);
    EXPECT_EQ(told->lines.back(), "over");
    EXPECT_EQ(told->threads.size(), alone ? 1u : 2u);
    told->lines.clear();
    const Tensor bad = autograd::DelayedError("on purpose", 1).apply({x})[0].sum();
    {
      const autograd::GraphObserverGuard guard(told);
      EXPECT_THROW(bad.backward(), Error);
    }
    const auto has = [&](const char* line) { return std::ranges::count(told->lines, line) == 1; };
    EXPECT_TRUE(has("broke Error") && has("failed") && !has("over"));
  }
}

TEST(GraphObserver, MayPutAnotherGradientInPlaceAndEndTheWalk) {
  struct Twice final : autograd::GraphObserver {
    int calls = 0, fails_at = 100;
    void on_node_begun(autograd::Node&, Tensor* in) override {
      if (++calls == fails_at) throw std::runtime_error("enough");
      if (calls == 1) in[0] = in[0] * 2;
    }
  };
  const auto twice = std::make_shared<Twice>();
  const Tensor x = leaf({2.0, 3.0});
  const autograd::GraphObserverGuard guard(twice);
  (x * 3).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{6, 6}));
  twice->calls = 0, twice->fails_at = 2;
  EXPECT_THROW((x * 3).sum().backward(), std::runtime_error);
  EXPECT_EQ(values(x.grad()), (std::vector<double>{6, 6}));
}

}  // namespace
}  // namespace ramet
