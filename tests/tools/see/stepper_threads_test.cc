// Stepping through a backward: the engine's own nodes and bits, one at a time.
#include "tools/see/stepper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "autograd/graph/node.h"
#include "parallel/apply/data_parallel.h"
#include "ramet.h"
#include "tests/autograd/check.h"
#include "tests/error_text.h"

namespace ramet {
namespace see {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(const Stepper& s) {
  std::ostringstream out;
  out << s;
  return out.str();
}

// Two layers and a loss. The same for the same seed.
struct Net {
  nn::Sequential net{nn::Linear(6, 5), nn::ReLU(), nn::Linear(5, 3)};
  Tensor x, y;
  Net() {
    manual_seed(3);
    for (Tensor& p : net->parameters()) {
      const NoGradGuard off;
      p.normal_();
    }
    x = randn({12, 6});
    y = randint(3, {12}, kLong);
  }
  Tensor loss() { return nn::functional::cross_entropy(net(x), y); }
  std::vector<std::vector<double>> gradients() const {
    std::vector<std::vector<double>> all;
    for (const Tensor& p : net->parameters())
      all.push_back(p.grad().defined() ? values(p.grad()) : std::vector<double>());
    return all;
  }
};

std::vector<std::vector<double>> expected_gradients() {
  Net twin;
  twin.loss().backward();
  return twin.gradients();
}

TEST(Stepper, StepsThroughAnExpressionAndSaysWhatIsThere) {
  const Tensor x = tensor({2.0, 3.0}, kDouble).requires_grad_();
  const Tensor w = tensor({5.0, 7.0}, kDouble);
  Stepper s((x * w).sum(), {{"x", x}});
  EXPECT_EQ(text_of(s), "no step was made yet\n");
  std::string all;
  while (s.next()) all += text_of(s);
  EXPECT_EQ(all,
            "#0 SumBackward0 on cpu\n"
            "   <- float64[] {1}\n"
            "   -> MulBackward0: float64[2] {1, 1}\n"
            "#1 MulBackward0 on cpu\n"
            "   <- float64[2] {1, 1}\n"
            "   -> AccumulateGrad x: float64[2] {5, 7}\n"
            "#2 AccumulateGrad x on cpu\n"
            "   <- float64[2] {5, 7}\n"
            "   gradient now: float64[2] {5, 7}\n");
  EXPECT_TRUE(s.over());
  EXPECT_EQ(text_of(s), "the backward is over\n");
  EXPECT_FALSE(s.next());
  EXPECT_EQ(values(x.grad()), (std::vector<double>{5, 7}));
}

TEST(Stepper, HasTheBitsOfAnOrdinaryBackward) {
  Net net;
  Stepper s(net.loss(), *net.net);
  std::vector<std::string> leaves;
  int n = 0;
  while (s.next()) {
    ++n;
    EXPECT_EQ(s.steps(), n);
    EXPECT_EQ(s.depth(), 0);
    EXPECT_FALSE(s.before());
    if (!s.leaf().empty()) leaves.push_back(s.leaf());
  }
  std::sort(leaves.begin(), leaves.end());
  EXPECT_THAT(leaves, ElementsAre("0.bias", "0.weight", "2.bias", "2.weight"));
  EXPECT_EQ(net.gradients(), expected_gradients());
}

TEST(Stepper, StopsBeforeANodeAndChangesWhatComesIn) {
  const Tensor x = tensor({2.0, 3.0}, kDouble).requires_grad_();
  Stepper s((x * 4).sum());
  ASSERT_TRUE(s.into());
  EXPECT_TRUE(s.before());
  EXPECT_EQ(s.node(), "SumBackward0");
  EXPECT_EQ(text_of(s), "#0 SumBackward0 on cpu, before it runs\n   <- float64[] {1}\n");
  ASSERT_TRUE(s.into());  // the next one, not the same again
  EXPECT_EQ(s.node(), "MulBackward1");
  s.set_incoming(0, s.incoming(0) * tensor({10.0, 1.0}, kDouble));
  ASSERT_TRUE(s.next());  // the one it stands before
  EXPECT_EQ(s.node(), "MulBackward1");
  EXPECT_EQ(values(s.outgoing(0)), (std::vector<double>{40, 4}));
  s.finish();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{40, 4}));
}

TEST(Stepper, ChangesWhatANodeDelivers) {
  for (const bool several_devices : {false, true}) {
    const Tensor x = tensor({2.0, 3.0}, kDouble).requires_grad_();
    const Tensor there = several_devices ? x.to(Device(kCPU, 1)) : x * 1;
    Stepper s((there * 4).sum());
    while (s.next())
      if (s.node() == "MulBackward1" && values(s.outgoing(0))[0] == 4)
        s.set_outgoing(0, full_like(s.outgoing(0), -1));
    EXPECT_EQ(values(x.grad()), (std::vector<double>{-1, -1})) << several_devices;
  }
}

TEST(Stepper, RunsToNodesAndToParametersByName) {
  Net net;
  Stepper s(net.loss(), *net.net);
  s.break_at("ReluBackward0");
  s.break_at("0.bias");
  s.break_at("never");
  ASSERT_TRUE(s.run());
  EXPECT_EQ(s.node(), "ReluBackward0");
  EXPECT_TRUE(s.before());
  ASSERT_TRUE(s.run());
  EXPECT_EQ(s.leaf(), "0.bias");
  EXPECT_EQ(values(s.incoming(0)), expected_gradients()[1]);
  s.clear_breaks();
  EXPECT_FALSE(s.run());
  EXPECT_TRUE(s.over());
  EXPECT_EQ(net.gradients(), expected_gradients());
}

// A Stepper that goes leaves what an exception leaves.
TEST(Stepper, GoesInTheMiddle) {
  Net net;
  const Tensor loss = net.loss();
  for (int steps = 0; steps < 4; ++steps) {
    Stepper s(loss, *net.net, StepperOptions().retain_graph(true));
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(i % 2 ? s.into() : s.next());
  }
  for (const auto& g : net.gradients()) EXPECT_TRUE(g.empty());
  loss.backward(Tensor(), true);  // no destroyed Stepper still claims a node
  EXPECT_EQ(net.gradients(), expected_gradients());
  {
    Stepper s(loss);
    ASSERT_TRUE(s.next() && s.next());
  }
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("second time"));
  EXPECT_EQ(net.gradients(), expected_gradients());
}

TEST(Stepper, ThrowsWhatTheBackwardThrowsAndIsOver) {
  const Tensor x = tensor({2.0}, kDouble).requires_grad_();
  const Tensor y = x * 3;
  const std::thread::id here = std::this_thread::get_id();
  y.register_hook([&](const Tensor&) -> Tensor {
    EXPECT_NE(std::this_thread::get_id(), here);
    throw std::runtime_error("of a hook");
  });
  Stepper s(y.sum());
  ASSERT_TRUE(s.next());
  EXPECT_EQ(error_of([&] { s.next(); }), "of a hook");
  EXPECT_TRUE(s.over());
  EXPECT_FALSE(s.next());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Stepper, GoesWhileAnExceptionUnwinds) {
  const Tensor x = tensor({2.0}, kDouble).requires_grad_();
  EXPECT_EQ(error_of([&] {
              Stepper s((x * 3).sum());
              s.next();
              throw std::runtime_error("of the user");
            }),
            "of the user");
  EXPECT_FALSE(x.grad().defined());
}

TEST(Stepper, SecondDerivativesOfAWalkThatWasStepped) {
  const auto second = [](bool stepped) {
    const Tensor x = tensor({2.0, 3.0}, kDouble).requires_grad_();
    const Tensor y = (x * x * x).sum();
    if (stepped) {
      Stepper s(y, StepperOptions().create_graph(true));
      while (s.next()) {}
    } else {
      y.backward(Tensor(), std::nullopt, true);
    }
    const Tensor g = x.grad().clone();
    EXPECT_TRUE(x.grad().requires_grad());
    x.mutable_grad() = Tensor();  // its history leads to x, and x to it
    return values(autograd::grad({g.sum()}, {x})[0]);
  };
  EXPECT_EQ(second(true), (std::vector<double>{12, 18}));
  EXPECT_EQ(second(true), second(false));
}

// Computes its forward again in its backward, as activation checkpoints do.
struct Again : autograd::Function<Again> {
  static Tensor of(const Tensor& x) { return (x * x).exp(); }
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return of(x);
  }
  static autograd::tensor_list backward(autograd::AutogradContext* ctx, autograd::tensor_list g) {
    const AutoGradMode on(true);
    const Tensor x = ctx->get_saved_variables()[0].detach().requires_grad_();
    return {autograd::grad({of(x)}, {x}, {g[0]})[0]};
  }
};

TEST(Stepper, GoesIntoTheBackwardThatANodeRuns) {
  const Tensor x = tensor({2.0, 3.0}, kDouble).requires_grad_();
  const Tensor y = Again::apply(x).sum();
  Stepper s(y, {{"x", x}});
  std::vector<int> depths;
  while (s.next()) depths.push_back(s.depth());
  EXPECT_EQ(depths.front(), 0);
  EXPECT_EQ(depths.back(), 0);
  EXPECT_EQ(*std::max_element(depths.begin(), depths.end()), 1);
  const double a = 2 * 2 * std::exp(4.0), b = 2 * 3 * std::exp(9.0);
  EXPECT_DOUBLE_EQ(values(x.grad())[0], a);
  EXPECT_DOUBLE_EQ(values(x.grad())[1], b);
}

// One thread serves the lanes: the order is the same each time, and reductions are steps.
TEST(Stepper, ServesTheLanesOfReplicas) {
  const auto gradients = [](std::vector<std::string>* nodes) {
    Net net;
    nn::parallel::DataParallel<nn::Sequential> parallel(net.net, {"cpu:0", "cpu:1"});
    const Tensor loss = nn::functional::cross_entropy(parallel(net.x), net.y);
    if (!nodes) {
      loss.backward();
      return net.gradients();
    }
    Stepper s(loss, *net.net);
    while (s.next()) nodes->push_back(s.node() + " " + s.leaf() + " " + s.device().str());
    return net.gradients();
  };
  std::vector<std::string> first, again;
  const auto ordinary = gradients(nullptr);
  EXPECT_EQ(gradients(&first), ordinary);
  EXPECT_EQ(gradients(&again), ordinary);
  EXPECT_EQ(first, again);
  EXPECT_THAT(first, testing::Contains("ReluBackward0  cpu:1"));
  EXPECT_THAT(first, testing::Contains(testing::StartsWith("ReduceAdd ")));
  EXPECT_THAT(first, testing::Contains("AccumulateGrad 2.bias cpu"));
}

TEST(Stepper, OfReplicasGoesInTheMiddle) {
  Net net;
  nn::parallel::DataParallel<nn::Sequential> parallel(net.net, {"cpu:0", "cpu:1"});
  {
    Stepper s(nn::functional::cross_entropy(parallel(net.x), net.y), *net.net);
    s.break_at("ReluBackward0");
    ASSERT_TRUE(s.run() && s.run());
  }
  for (const auto& g : net.gradients()) EXPECT_TRUE(g.empty());
  nn::functional::cross_entropy(parallel(net.x), net.y).backward();
  for (const auto& g : net.gradients()) EXPECT_FALSE(g.empty());
}

TEST(Stepper, CarriesTheCallersState) {
  const Tensor x = tensor({2.0}, kDouble).requires_grad_();
  const Tensor y = x * 3;
  ScalarType seen = kFloat;
  y.register_hook([&](const Tensor& g) {
    seen = ramet::detail::tls.default_dtype;
    return g;
  });
  const ScopedValue<ScalarType> dtype(ramet::detail::tls.default_dtype, kHalf);
  Stepper(y.sum()).finish();
  EXPECT_EQ(seen, kHalf);
}

TEST(Stepper, Errors) {
  const Tensor x = tensor({2.0, 3.0}, kDouble).requires_grad_();
  EXPECT_THAT(error_of([] { Stepper s((Tensor())); }), HasSubstr("[Stepper] loss: it has no"));
  EXPECT_THAT(error_of([&] { Stepper s(x.detach()); }), HasSubstr("[Stepper] loss: it has no"));
  EXPECT_THAT(error_of([&] { Stepper s(x * 2); }), HasSubstr("only a scalar needs no gradient"));
  Stepper s(x * 2, StepperOptions().gradient(tensor({1.0, 1.0}, kDouble)));
  EXPECT_THAT(error_of([&] { s.node(); }), HasSubstr("no step was made yet"));
  ASSERT_TRUE(s.into());
  const Tensor one = tensor({1.0, 1.0}, kDouble);
  EXPECT_THAT(error_of([&] { s.incoming(1); }), HasSubstr("slot: got 1, expected less than 1"));
  EXPECT_THAT(error_of([&] { s.set_incoming(0, one.to(kFloat)); }),
              HasSubstr("another size, dtype"));
  EXPECT_THAT(error_of([&] { s.set_outgoing(0, one); }), HasSubstr("expected less than 0"));
  ASSERT_TRUE(s.next());
  EXPECT_THAT(error_of([&] { s.set_incoming(0, one); }), HasSubstr("the node has run"));
  ASSERT_TRUE(s.next());  // the leaf
  EXPECT_THAT(error_of([&] { s.set_outgoing(0, one); }), HasSubstr("a leaf delivers nothing"));
  s.finish();
  EXPECT_THAT(error_of([&] { s.outgoing(); }), HasSubstr("the backward is over"));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 2}));
}

TEST(Stepper, AStepperWithoutAStepDoesNothing) {
  const Tensor x = tensor({2.0, 3.0}, kDouble).requires_grad_();
  const Tensor y = (x * 2).sum();
  { Stepper s(y); }
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 2}));
}

}  // namespace
}  // namespace see
}  // namespace ramet
