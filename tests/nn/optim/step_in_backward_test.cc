// Hooks on accumulated gradients in one process: an optimizer's step inside the backward, and what
// hooks put in a gradient's place. No two leaves share a gradient.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "nn/optim/gradient_accumulation.h"
#include "nn/optim/sgd.h"
#include "runtime/devices/generator.h"
#include "tests/error_text.h"

namespace ramet {
namespace {

nn::Sequential deep() {
  manual_seed(5);
  nn::Sequential net;
  for (int i = 0; i < 6; ++i) net->push_back(nn::Linear(8, 8));
  return net;
}
Tensor loss_of(nn::Sequential& net, int step, const std::function<void(const Tensor&)>& seen = {}) {
  manual_seed(100 + static_cast<uint64_t>(step));
  Tensor x = randn({4, 8});
  for (auto& layer : *net) {
    x = layer.forward<Tensor>(x).tanh();
    if (seen) seen(x);
  }
  return x.pow(2).sum();
}
void expect_same(const nn::Sequential& a, const nn::Sequential& b) {
  for (size_t i = 0; i < a->parameters().size(); ++i)
    EXPECT_TRUE(a->parameters()[i].equal(b->parameters()[i])) << i;
}

TEST(StepInBackward, IsTheStepAfterIt) {
  for (const bool one_optimizer : {false, true}) {
    nn::Sequential net = deep(), twin = deep();
    const optim::AdamOptions options = optim::AdamOptions(0.01).weight_decay(0.1);
    optim::Adam all(net->parameters(), options), after(twin->parameters(), options);
    std::vector<std::unique_ptr<optim::Adam>> each;
    int steps = 0;
    for (const Tensor& p : net->parameters()) {
      if (!one_optimizer)
        each.push_back(std::make_unique<optim::Adam>(std::vector<Tensor>{p}, options));
      optim::Adam& its = one_optimizer ? all : *each.back();
      p.register_post_accumulate_grad_hook([&its, &steps](const Tensor&) {
        its.step();
        its.zero_grad();
        ++steps;
      });
    }
    for (int step = 0; step < 5; ++step) {
      loss_of(net, step).backward();
      loss_of(twin, step).backward();
      after.step();
      after.zero_grad();
    }
    EXPECT_EQ(steps, 5 * 12);
    expect_same(net, twin);
  }
}

// A layer's step comes before the backward of the layer below it, so that never more gradients are
// there than those of one layer.
TEST(StepInBackward, NoBackwardHoldsAllGradients) {
  nn::Sequential net = deep();
  std::vector<std::string> order;
  size_t most = 0;
  for (const auto& item : net->named_parameters())
    item.value().register_post_accumulate_grad_hook([&, name = item.key()](const Tensor& p) {
      size_t held = 0;
      for (const Tensor& q : net->parameters()) held += q.grad().defined();
      most = std::max(most, held);
      order.push_back(name);
      p.mutable_grad().reset();
    });
  int layer = 0;
  const Tensor loss = loss_of(net, 0, [&](const Tensor& y) {
    y.register_hook(
        [&order, n = layer++](const Tensor&) { order.push_back("of " + std::to_string(n)); });
  });
  loss.backward();
  EXPECT_LE(most, 2u);
  ASSERT_EQ(order.size(), 18u);
  for (int n = 5; n >= 0; --n) {
    const size_t at = static_cast<size_t>(5 - n) * 3;
    EXPECT_EQ(order[at], "of " + std::to_string(n));
    EXPECT_EQ(order[at + 1].substr(0, 2), std::to_string(n) + ".");
    EXPECT_EQ(order[at + 2].substr(0, 2), std::to_string(n) + ".");
  }
}

// Its gradient is complete when all uses have come. An earlier step would use a part of it, and
// would change what the other use has saved.
TEST(StepInBackward, OfAParameterThatIsUsedTwice) {
  const Tensor w = full({2}, 3.0).requires_grad_(), x = full({2}, 2.0).requires_grad_();
  optim::SGD sgd({w}, 0.5);
  int steps = 0;
  w.register_post_accumulate_grad_hook([&](const Tensor&) {
    sgd.step();
    sgd.zero_grad();
    ++steps;
  });
  (w * x * w).sum().backward();
  EXPECT_EQ(steps, 1);
  EXPECT_TRUE(w.equal(full({2}, 3.0 - 0.5 * 12)));
  EXPECT_TRUE(x.grad().equal(full({2}, 9.0)));
}

TEST(AccumulatedGradients, UnderCreateGraphAreEachLeafsOwn) {
  const Tensor w = ones({4}).requires_grad_(), v = ones({2, 2}).requires_grad_(),
               u = ones({4}).requires_grad_(), seed = full({4}, 2.0);
  const auto expect = [&](const std::vector<double>& values) {
    const std::vector<Tensor> all = {w.grad(), v.grad(), u.grad(), seed};
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(all[i].detach().equal(full(all[i].sizes(), values[i]))) << i;
  };
  for (const bool spread : {true, false}) {  // the sum's gradient is one number for all elements
    for (const Tensor& t : {w, v, u}) t.mutable_grad() = Tensor();
    if (spread) (w + v.view({4}) + u).sum().backward({}, true, /*create_graph=*/true);
    else (w + v.view({4}) + u).backward(seed, true, /*create_graph=*/true);
    for (const Tensor& t : {w, v, u}) EXPECT_TRUE(t.grad().is_contiguous());
    if (spread) autograd::zero_grad(w, /*set_to_none=*/false);
  }
  expect({2, 2, 2, 2});
  const NoGradGuard off;
  w.grad().zero_();
  expect({0, 2, 2, 2});
  v.grad().mul_(3);
  expect({0, 6, 2, 2});
  u.grad().add_(1);
  expect({0, 6, 3, 2});
  autograd::zero_grad(u, /*set_to_none=*/false);
  expect({0, 6, 0, 2});
}

// Of another size it would be spread over the parameter, as silently in a step as in a backward.
TEST(AccumulatedGradients, OfAnotherSizeAreRefused) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{1}, std::vector<int64_t>{1, 3}, std::vector<int64_t>{}}) {
    const Tensor w = ones({3}).requires_grad_();
    w.mutable_grad() = ones(sizes);
    EXPECT_ERROR_TEXT((w * 2).sum().backward(), "[backward] the gradient that a leaf has: got");
    optim::SGD sgd({w}, 0.1);
    optim::Adam adam(std::vector<Tensor>{w}, optim::AdamOptions(0.1));
    EXPECT_ERROR_TEXT(sgd.step(), "[optim] the gradient of float32[3]");
    EXPECT_ERROR_TEXT(adam.step(), "[optim] the gradient of float32[3]");
    EXPECT_TRUE(w.equal(ones({3})));
    w.mutable_grad() = ones({3});
    sgd.step();
    EXPECT_TRUE(w.allclose(full({3}, 0.9)));
  }
}

TEST(AccumulatedGradients, ARetainedOneOfAnotherSizeIsRefused) {
  const Tensor w = ones({3}).requires_grad_(), h = w * 2;
  h.retain_grad();
  h.mutable_grad() = ones({1, 3});
  EXPECT_ERROR_TEXT(h.sum().backward(), "retains: got float32[1, 3]");
}

// LibTorch: "hook ... has changed the type of value".
TEST(AccumulatedGradients, AHookDoesNotChangeTheDtype) {
  const Tensor w = ones({3}).requires_grad_();
  w.register_hook([](const Tensor& g) { return g.to(kDouble); });
  EXPECT_ERROR_TEXT((w * 2).sum().backward(), "has changed the size, dtype or device");
  EXPECT_FALSE(w.grad().defined());
}

// What GradientAccumulation switches.
struct Switched {
  void set_requires_gradient_sync(bool on) { seen.push_back(on); }
  std::vector<bool> seen;
};

TEST(GradientAccumulation, IsTheMeanOfTheLosses) {
  nn::Sequential net = deep(), twin = deep();
  Switched parallel;
  optim::GradientAccumulation step(3, parallel);
  for (int round = 0; round < 2; ++round) {
    net->zero_grad(), twin->zero_grad();
    EXPECT_FALSE(step.backward(loss_of(net, 0)));
    EXPECT_FALSE(step.backward(loss_of(net, 1)));
    EXPECT_ANY_THROW(step.backward(ones({2}, kDouble)));  // does not count
    EXPECT_TRUE(step.backward(loss_of(net, 2)));
    ((loss_of(twin, 0) + loss_of(twin, 1) + loss_of(twin, 2)) / 3).backward();
    for (size_t i = 0; i < net->parameters().size(); ++i)
      EXPECT_TRUE(net->parameters()[i].grad().allclose(twin->parameters()[i].grad())) << i;
  }
  const std::vector<bool> once{false, true, false, true, true, true, true, true};
  EXPECT_EQ(std::vector<bool>(parallel.seen.begin(), parallel.seen.begin() + 8), once);
  EXPECT_EQ(std::vector<bool>(parallel.seen.begin() + 8, parallel.seen.end()), once);

  optim::GradientAccumulation alone(1);
  net->zero_grad(), twin->zero_grad();
  EXPECT_TRUE(alone.backward(loss_of(net, 4)));
  loss_of(twin, 4).backward();
  for (size_t i = 0; i < net->parameters().size(); ++i)
    EXPECT_TRUE(net->parameters()[i].grad().equal(twin->parameters()[i].grad())) << i;
  EXPECT_ERROR_TEXT(optim::GradientAccumulation(0),
                    "[GradientAccumulation] k: got 0, expected at least 1");
}

}  // namespace
}  // namespace ramet
