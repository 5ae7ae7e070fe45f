// What cannot be captured, and what a failure leaves.
#include <cmath>
#include <sstream>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/graph/captured.h"
#include "nn/data/samplers.h"
#include "nn/init.h"
#include "nn/module/sequential.h"
#include "nn/serialize/archive.h"
#include "nn/utils/clip_grad.h"
#include "runtime/tensor/print.h"
#include "tests/capture/support.h"

namespace ramet {
namespace capture_tests {
namespace {

TEST(Refusals, WhatTheHostReads) {
  const Tensor x = arange(4).to(kFloat);
  const std::pair<const char*, Use> everywhere[] = {
      {"item", [](const Tensor& t) { t.sum().item<float>(); }},
      {"equal", [](const Tensor& t) { (void)equal(t, t); }},
      {"nonzero", [](const Tensor& t) { nonzero(t); }},
      {"index", [](const Tensor& t) { t.index({t > 1}); }},
      {"print", [](const Tensor& t) { std::ostringstream() << t; }},
  };
  for (const Device device : {kHost, Device(kCUDA, 0)}) {
    if (device.is_cuda() && !why_no_gpu().empty()) continue;
    for (const auto& [op, f] : everywhere) {
      expect_refused(op, x.to(device), [&f = f](const Tensor& t) { f(t * 2); });
      f(x.to(device));  // and works outside
    }
  }
  const auto refused = [&](const char* op, const Use& f) { expect_refused(op, x, f), f(x); };
  refused("is_nonzero", [](const Tensor& t) { (void)t.sum().is_nonzero(); });
  refused("data_ptr", [](const Tensor& t) { t.data_ptr<float>(); });
  refused("data_ptr", [](const Tensor& t) { t.accessor<float, 1>(); });
  refused("one_hot", [](const Tensor&) { one_hot(zeros({2}, kLong)); });
  // The norm as a number, even of nothing; as a tensor it may be used.
  for (const bool nonfinite : {false, true})
    for (const bool has : {false, true})
      refused("clip_grad_norm_", [=](const Tensor&) {
        Tensor p = ones({2}).requires_grad_();
        if (has) p.mutable_grad() = ones({2});
        const double norm = nn::utils::clip_grad_norm_(p, 1, 2, nonfinite);
        EXPECT_NEAR(norm, has ? std::sqrt(2.0) : 0, 1e-6);
      });
  Captured step([] { nn::utils::clip_grad_norm_(ones({2}).requires_grad_(), 1); });
  EXPECT_ERROR_TEXT(step(), "get_total_norm and clip_grads_with_norm_ leave it on the device");
}

// Which may have other nodes, hooks and retained gradients at a replay.
TEST(Refusals, AGraphThatWasMadeOutside) {
  const Tensor w = ones({3}).requires_grad_(), y = w * 2;
  y.retain_grad();
  for (const bool general : {false, true}) {
    Captured step([&] {
      if (general) autograd::grad({y.sum()}, {w}, {}, /*retain_graph=*/true);
      else y.sum().backward({}, /*retain_graph=*/true);
    });
    EXPECT_ERROR_TEXT(step(), "[backward] not capturable: a graph that was made outside of it");
    EXPECT_FALSE(y.grad().defined());
    EXPECT_FALSE(w.grad().defined());
  }
  // Where the gradient does not go there it may be used.
  const Tensor v = ones({3}).requires_grad_();
  Captured step([&] { (y.detach() * v).sum().backward(); });
  step();
  EXPECT_EQ(bits(v.grad()), bits(full({3}, 2.f)));
  y.sum().backward();
  EXPECT_EQ(bits(w.grad()), bits(full({3}, 2.f)));
  EXPECT_EQ(bits(y.grad()), bits(ones({3})));
}

TEST(Refusals, Files) {
  const Tensor x = ones({2});
  Captured step([](const Tensor& t) {
    serialize::OutputArchive archive;
    archive.write("t", t);
    std::ostringstream out;
    archive.save_to(out);
  });
  EXPECT_ERROR_TEXT(step(x), "[data_ptr] not capturable");
}

TEST(Refusals, NaNsThatTheHostLooksFor) {
  const Tensor w = ones({2}).requires_grad_();
  const autograd::DetectAnomalyGuard on;
  Captured step([&](const Tensor& x) { (w * x).sum().backward(); });
  EXPECT_ERROR_TEXT(step(ones({2})), "not capturable");
  EXPECT_FALSE(w.grad().defined());
}

TEST(Refusals, HooksSeedsAndOthers) {
  const Tensor x = ones({2});
  const auto refused = [&](const char* op, const Use& f) { expect_refused(op, x, f); };
  const Tensor w = ones({2}).requires_grad_();
  refused("register_hook", [&](const Tensor& t) {
    Tensor y = w * t;
    y.register_hook([](const Tensor& g) { return g; });
    y.sum().backward();
  });
  const Tensor v = ones({2}).requires_grad_();
  v.register_post_accumulate_grad_hook([](const Tensor&) {});
  refused("register_post_accumulate_grad_hook", [&](const Tensor& t) { (v * t).sum().backward(); });
  nn::Sequential net(nn::Linear(2, 2));
  refused("train", [&](const Tensor&) { net->eval(); });
  refused("set_data", [&](const Tensor&) { net->to(kDouble); });
  net[0]->register_forward_pre_hook([](nn::Module&, std::vector<Tensor>&) {});
  refused("register_forward_pre_hook", [&](const Tensor& t) { net->forward(t); });
  refused("Generator::set_state", [](const Tensor&) { manual_seed(1); });
  refused("Captured", [&](const Tensor& t) {
    Captured inner([](const Tensor& in) { return in; });
    inner(t);
  });
  refused("init", [](const Tensor& t) { nn::init::orthogonal_(t.view({1, 2})); });
  refused("RandomSampler", [](const Tensor&) { data::samplers::RandomSampler(4).reset(); });
  Tensor fresh = ones({2}).requires_grad_();
  refused("flatten_parameters", [&](const Tensor&) { optim::SGD({fresh}, optim::SGDOptions(1)); });
  optim::SGD sgd({fresh}, optim::SGDOptions(1));
  optim::ReduceLROnPlateauScheduler plateau(sgd);
  refused("ReduceLROnPlateauScheduler", [&](const Tensor&) { plateau.step(1.f); });
  Captured ready([](const Tensor& in) { return in + 1; });
  ready(x);
  refused("Captured", [&](const Tensor& t) { ready(t); });
  Captured undefined([](const Tensor& in) { return in; });
  EXPECT_ERROR_TEXT(undefined(Tensor()), "[Captured] input 0: got an undefined tensor");
}

// Else later calls would go on with what the function did then.
TEST(Refusals, ThatTheFunctionCatches) {
  Captured step([](const Tensor& x) {
    try {
      x.sum().item<float>();
    } catch (const Error&) {}
    return x + 1;
  });
  EXPECT_ERROR_TEXT(step(ones({3})), "[item] not capturable");
  EXPECT_EQ(step.size(), 0u);
}

TEST(Refusals, GeneratorsThatTheFunctionMakes) {
  Captured step([] { return rand({5}, Generator(kHost, 9), TensorOptions()); });
  EXPECT_ERROR_TEXT(step(), "[Generator] not capturable: its numbers would start again");
}

// A replay would leave them as they are.
TEST(Refusals, ChangesOfTensorsFromOutside) {
  const Tensor w = ones({3}), p = ones({3}).requires_grad_();
  const Tensor x = ones({3});
  Captured wants([&](const Tensor& in) {
    w.requires_grad_(!w.requires_grad());
    return in + 1;
  });
  EXPECT_ERROR_TEXT(wants(x),
                    "[Captured] not capturable: a tensor from outside changes its requires_grad");
  EXPECT_FALSE(w.requires_grad());
  Captured history([&](const Tensor& in) { w.mul_(in * p); });
  EXPECT_ERROR_TEXT(history(x), "changes its requires_grad");
  Captured shape([&](const Tensor& in) {
    w.unsqueeze_(0);
    return in + 1;
  });
  EXPECT_ERROR_TEXT(shape(x), "changes its shapes");
  EXPECT_TRUE(w.is_leaf());
  EXPECT_TRUE(w.requires_grad_().is_leaf());  // no history is left
  // Of its own it may, also where the program keeps it.
  Tensor kept;
  Captured keeps([&](const Tensor& in) {
    kept = in * p;
    return kept.sum();
  });
  EXPECT_EQ(bits(keeps(x)), bits(full({}, 3.f)));
  Captured makes_a_leaf([](const Tensor& in) {
    in.requires_grad_();
    in.mul(in).sum().backward();
    return in.grad().clone();
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(bits(makes_a_leaf(x)), bits(full({3}, 2.f)));
  Captured own([](const Tensor& in) {
    Tensor leaf = in.detach().clone().requires_grad_();
    leaf.mul(leaf).sum().backward();
    return leaf.grad().unsqueeze_(0);
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(bits(own(x)), bits(full({1, 3}, 2.f)));
}

TEST(Failures, LeaveEverythingAsBefore) {
  for (const bool bad_index : {false, true}) {
    manual_seed(6);
    nn::Linear net(3, 2);
    nn::BatchNorm1d norm(3);
    optim::Adam adam(net->parameters(), optim::AdamOptions(0.1));
    optim::StepLR schedule(adam, 2, 0.5);
    const Tensor loose = ones({3}).requires_grad_();
    loose.mutable_grad() = full({3}, 7.f);
    const Tensor w = randn({4, 3});
    bool fails = true;
    const auto body = [&](const Tensor& x, const Tensor& i) {
      adam.zero_grad();
      (net->forward(norm->forward(dropout(x, 0.5, true))).sum() + (x * loose).sum() +
       embedding(w, i).sum())
          .backward();
      adam.step();
      schedule.step();
      if (fails && !bad_index) fail("body", "on purpose");
    };
    const auto state = [&] {
      std::string s;
      for (const Tensor& t : net->parameters()) s += bits(t) + bits(t.grad());
      for (const Tensor& t : norm->buffers()) s += bits(t);
      const GeneratorState g = default_generator(kHost).get_state();
      return s + bits(loose.grad()) + std::to_string(g.offset) + "," +
             std::to_string(adam.state().size()) + "," + std::to_string(schedule.step_count()) +
             "," + std::to_string(adam.param_groups()[0].options().get_lr());
    };
    const auto counts = [&] {
      std::string s;
      for (auto& [p, st] : adam.state())
        s += std::to_string(static_cast<optim::AdamParamState&>(*st).step()) + ",";
      return s;
    };
    Captured step(body);
    const Tensor x = randn({4, 3}), good = zeros({2}, kLong), bad = full({2}, 9, kLong);
    const std::string first = state();
    for (int i = 0; i < 2; ++i) {
      if (bad_index) EXPECT_THROW(step(x, bad), IndexError);
      else EXPECT_ERROR_TEXT(step(x, good), "on purpose");
      EXPECT_EQ(state(), first);
      EXPECT_EQ(step.size(), 0u);
    }
    // With states of the optimizer there.
    fails = false;
    for (int i = 0; i < 3; ++i) body(x, good);
    fails = true;
    const std::string later = state(), steps = counts();
    if (bad_index) EXPECT_THROW(step(x, bad), IndexError);
    else EXPECT_ERROR_TEXT(step(x, good), "on purpose");
    EXPECT_EQ(state(), later);
    EXPECT_EQ(counts(), steps);
    fails = false;
    // And it can be captured after all, with the result of the eager reference.
    const std::string grad = bits(loose.grad());
    step(x, good);
    EXPECT_NE(bits(loose.grad()), grad);
    EXPECT_EQ(step.counters().captures, 1u);
  }
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
