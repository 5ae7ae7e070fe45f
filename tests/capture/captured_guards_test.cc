// When a capture is used and when it is made again.
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/graph/captured.h"
#include "autograd/graph/reduce_bucket.h"
#include "nn/module/sequential.h"
#include "nn/utils/clip_grad.h"
#include "runtime/base/thread_pool.h"
#include "runtime/devices/devices.h"
#include "tests/capture/support.h"

namespace ramet {
namespace capture_tests {
namespace {

TEST(Guards, ShapesStridesTypes) {
  Captured step([](const Tensor& x) { return x + 1; });
  const Tensor x = ones({2, 3});
  for (const Tensor& t : {x, ones({3, 2}), ones({3, 2}).t(), x.to(kDouble), ones({6}),
                          ones({2, 3}, TensorOptions(Device(kCPU, 1)))})
    for (int i = 0; i < 2; ++i) EXPECT_EQ(bits(step(t)), bits(t + 1));
  Tensor wants = ones({2, 3}).requires_grad_();
  EXPECT_EQ(bits(step(wants)), bits(x + 1));
  EXPECT_EQ(step.counters().captures, 7u);
  EXPECT_EQ(step.counters().replays, 6u);
  EXPECT_EQ(step.counters().failed_guards, 0u);
}

// Each change is noticed, and taken back the first capture is used again.
template <class F, class G>
void expect_guarded(const char* what, F&& change, G&& back, nn::Sequential& net,
                    bool reused = true) {
  SCOPED_TRACE(what);
  const Tensor x = arange(8).to(kFloat).view({2, 4});
  const auto forward = [&](const Tensor& in) {
    Tensor out = net->forward(in);
    if (out.requires_grad()) out.sum().backward();
    return out;
  };
  net->zero_grad();
  Captured step(forward);
  const auto expect_eager = [&] {
    net->zero_grad();
    const GeneratorState g = default_generator(kHost).get_state();
    const std::string y = bits(forward(x)), grad = bits(net->parameters()[0].grad());
    net->zero_grad();
    default_generator(kHost).set_state(g);
    EXPECT_EQ(bits(step(x)), y);
    EXPECT_EQ(bits(net->parameters()[0].grad()), grad);
    net->zero_grad();
  };
  expect_eager();
  expect_eager();
  EXPECT_EQ(step.counters().captures, 1u);
  change();
  expect_eager();
  EXPECT_EQ(step.counters().captures, 2u);
  EXPECT_EQ(step.counters().failed_guards, 1u);
  EXPECT_NE(step.last_failed_guard(), nullptr);
  back();
  expect_eager();
  EXPECT_EQ(step.counters().captures, reused ? 2u : 3u);
}

nn::Sequential dense_net() {
  manual_seed(2);
  return nn::Sequential(nn::Linear(4, 4), nn::Dropout(0.5), nn::Linear(4, 2));
}

TEST(Guards, TrainingMode) {
  nn::Sequential net = dense_net();
  expect_guarded(
      "eval", [&] { net->eval(); }, [&] { net->train(); }, net);
}
TEST(Guards, RequiresGradOfParameters) {
  nn::Sequential net = dense_net();
  const Tensor w = net->parameters()[2];
  expect_guarded(
      "frozen", [&] { w.requires_grad_(false); }, [&] { w.requires_grad_(true); }, net);
}
TEST(Guards, StoragesOfParameters) {
  nn::Sequential net = dense_net();
  const Tensor w = net->parameters()[0], old = w.detach();
  expect_guarded(
      "set_data",
      [&] {
        w.set_data(randn({4, 4}));
      },
      [&] { w.set_data(old); }, net);
  expect_guarded(
      "to", [&] { net->to(kDouble), net->to(kFloat); }, [] {}, net);
}
TEST(Guards, DefinedGradients) {
  const Tensor w = ones({3}).requires_grad_();
  Captured step([&](const Tensor& x) { (w * x).sum().backward(); });
  const Tensor x = ones({3});
  step(x);  // no gradient before
  EXPECT_EQ(bits(w.grad()), bits(ones({3})));
  step(x);  // one: adds to it
  step(x);
  EXPECT_EQ(bits(w.grad()), bits(full({3}, 3.f)));
  EXPECT_EQ(step.counters().captures, 2u);
  EXPECT_STREQ(step.last_failed_guard(), "gradients");
  w.mutable_grad() = Tensor();
  step(x);
  EXPECT_EQ(bits(w.grad()), bits(ones({3})));
  EXPECT_EQ(step.counters().captures, 2u);
  w.mutable_grad() = full({3}, 10.f);  // other memory than the one that is added to
  step(x);
  EXPECT_EQ(bits(w.grad()), bits(full({3}, 11.f)));
  EXPECT_EQ(step.counters().captures, 3u);
}
// To a tensor that never wanted one, so that nothing was noted of it.
TEST(Guards, AGradientThatSomebodyGives) {
  const Tensor w = ones({3}).requires_grad_(), other = ones({3}), x = ones({3});
  Captured step([&](const Tensor& in) {
    (w * in).sum().backward();
    std::vector<Tensor> grads{w.grad()};
    if (other.grad().defined()) grads.push_back(other.grad());
    nn::utils::clip_grads_with_norm_({w, other}, 1, nn::utils::get_total_norm(grads));
  });
  for (int i = 0; i < 3; ++i) step(x);
  EXPECT_EQ(step.counters().replays, 1u);
  other.mutable_grad() = full({3}, 5.f);
  step(x);
  EXPECT_STREQ(step.last_failed_guard(), "gradients");
  // Norms of 5 each, and of a gradient of ones on top of the clipped rest of earlier ones.
  const double given = std::sqrt(75.0), own = 1 + std::sqrt(3.0), whole = std::hypot(given, own);
  EXPECT_NEAR(other.grad().norm().item<float>(), given / whole, 1e-5);
  EXPECT_NEAR(w.grad().norm().item<float>(), own / whole, 1e-5);
}
TEST(Guards, StateOfTheThread) {
  const Tensor w = ones({3}).requires_grad_();
  Captured step([&](const Tensor& x) {
    Tensor y = w * x;
    if (y.requires_grad()) y.sum().backward();
    return y + ones({3}, TensorOptions(get_default_dtype()));
  });
  const Tensor x = ones({3});
  w.mutable_grad() = zeros({3});
  step(x);
  {
    const NoGradGuard off;
    step(x);
    EXPECT_STREQ(step.last_failed_guard(), "state of the thread");
  }
  EXPECT_EQ(bits(w.grad()), bits(ones({3})));
  set_default_dtype(kDouble);
  EXPECT_EQ(step(x).scalar_type(), kDouble);
  set_default_dtype(kFloat);
  EXPECT_EQ(step(x).scalar_type(), kFloat);
  EXPECT_EQ(step.counters().captures, 3u);
  EXPECT_EQ(step.counters().replays, 1u);
}
// Each of them is noticed, and what was captured before is used again afterwards.
template <class Guard> void expect_thread_guard(const char* what, Guard&& with) {
  SCOPED_TRACE(what);
  const Tensor w = ones({3});
  Captured step([&](const Tensor& x) { return x * w + ones({3}).to(x.device()); });
  const Tensor x = ones({3});
  step(x);
  with([&] {
    EXPECT_EQ(bits(step(x)), bits(full({3}, 2.f)));
    EXPECT_EQ(step.counters().captures, 2u);
    EXPECT_EQ(step.counters().failed_guards, 1u);
    EXPECT_EQ(bits(step(x)), bits(full({3}, 2.f)));
    EXPECT_EQ(step.counters().captures, 2u);
  });
  step(x);
  EXPECT_EQ(step.counters().captures, 2u);
  EXPECT_EQ(step.counters().replays, 2u);
}
TEST(Guards, EverythingElseOfTheThread) {
  expect_thread_guard("grad mode", [](auto&& f) {
    const NoGradGuard off;
    f();
  });
  expect_thread_guard("inference mode", [](auto&& f) {
    const InferenceMode on;
    f();
  });
  expect_thread_guard("anomaly mode", [](auto&& f) {
    const autograd::DetectAnomalyGuard on(/*check_nan=*/false);
    f();
  });
  expect_thread_guard("current device", [](auto&& f) {
    const DeviceGuard other(Device(kCPU, 2));
    f();
  });
  const int threads = get_num_threads();
  expect_thread_guard("number of threads", [&](auto&& f) {
    set_num_threads(threads + 1);
    f();
    set_num_threads(threads);
  });
}

TEST(Guards, StatesOfAnOptimizer) {
  manual_seed(2);
  nn::Linear net(3, 2);
  optim::Adam adam(net->parameters(), optim::AdamOptions(0.1));
  Captured step([&](const Tensor& x) {
    adam.zero_grad();
    net->forward(x).sum().backward();
    adam.step();
  });
  const Tensor x = ones({2, 3});
  for (int i = 0; i < 3; ++i) step(x);
  EXPECT_EQ(step.counters().captures, 2u);
  EXPECT_EQ(static_cast<optim::AdamParamState&>(*adam.state().begin()->second).step(), 3);
  adam.state().clear();  // starts again
  const std::string before = bits(net->weight);
  step(x);
  EXPECT_STREQ(step.last_failed_guard(), "states of an optimizer");
  EXPECT_EQ(static_cast<optim::AdamParamState&>(*adam.state().begin()->second).step(), 1);
  EXPECT_NE(bits(net->weight), before);
  static_cast<optim::AdamOptions&>(adam.param_groups()[0].options()).lr(0);  // read at each replay
  for (int i = 0; i < 2; ++i) step(x);
  const std::string still = bits(net->weight);
  step(x);
  EXPECT_EQ(bits(net->weight), still);
}
// One kernel call updates parameters of one age. Where their ages part, it has to be two.
TEST(Guards, AgesOfStates) {
  std::vector<std::string> got[2];
  for (const bool captured : {false, true}) {
    const Tensor a = ones({3}).requires_grad_(), b = ones({3}).requires_grad_();
    optim::Adam adam({a, b}, optim::AdamOptions(0.1));
    bool both = true;
    const auto body = [&](const Tensor& x) {
      adam.zero_grad();
      Tensor loss = (a * a * x).sum();
      if (both) loss = loss + (b * b * x).sum();
      loss.backward();
      adam.step();
    };
    Captured step(body);
    for (int i = 0; i < 12; ++i) {
      const Tensor x = full({3}, 0.5f + static_cast<float>(i));
      both = i % 6 != 4;
      if (captured && both) step(x);
      else body(x);
      got[captured].push_back(bits(a) + bits(b));
    }
    // Making states; one age; a gradient that there was not; two ages.
    if (captured) { EXPECT_EQ(step.counters().captures, 4u); }
  }
  EXPECT_TRUE(got[0] == got[1]);
}
// The function searches for them each time; a replay has those that there were.
TEST(Guards, AnotherOptimizerOrSchedule) {
  std::vector<std::string> got[2];
  for (const bool captured : {false, true}) {
    manual_seed(2);
    nn::Linear net(3, 2);
    auto adam = std::make_unique<optim::Adam>(net->parameters(), optim::AdamOptions(0.1));
    auto schedule = std::make_unique<optim::StepLR>(*adam, 2, 0.5);
    const auto body = [&](const Tensor& x) {
      adam->zero_grad();
      net->forward(x).pow(2).sum().backward();
      adam->step();
      schedule->step();
    };
    Captured step(body);
    for (int i = 0; i < 12; ++i) {
      if (i == 4)
        adam = std::make_unique<optim::Adam>(net->parameters(), optim::AdamOptions(0.2)),
        schedule = std::make_unique<optim::StepLR>(*adam, 2, 0.5);
      if (i == 8) schedule = std::make_unique<optim::StepLR>(*adam, 1, 0.7);
      const Tensor x = full({2, 3}, static_cast<float>(i));
      if (captured) step(x);
      else body(x);
      got[captured].push_back(bits(net->weight) + bits(net->bias));
    }
    if (captured) { EXPECT_STREQ(step.last_failed_guard(), "a schedule"); }
  }
  EXPECT_TRUE(got[0] == got[1]);
}
TEST(Guards, HooksThatCameLater) {
  nn::Sequential net = dense_net();
  Captured step([&](const Tensor& x) { net->forward(x).sum().backward(); });
  const Tensor x = ones({2, 4});
  net->zero_grad();
  step(x);
  net->zero_grad();
  const unsigned id = net->parameters()[0].register_hook([](const Tensor& g) { return g; });
  EXPECT_ERROR_TEXT(step(x), "[register_hook] not capturable");
  net->parameters()[0].remove_hook(id);
  net->zero_grad();
  step(x);
  EXPECT_EQ(step.counters().replays, 1u);
  const unsigned module_hook = net[0]->register_forward_hook(
      [](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>&) {});
  net->zero_grad();
  EXPECT_ERROR_TEXT(step(x), "[register_forward_hook] not capturable");
  net[0]->remove_forward_hook(module_hook);

  // A list that had hooks once; the next but one may lie where it lay.
  net->zero_grad();
  step(x);
  unsigned again[2];
  for (unsigned& hook : again)
    hook = net[0]->register_forward_hook(
        [](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>&) {});
  net->zero_grad();
  EXPECT_ERROR_TEXT(step(x), "[register_forward_hook] not capturable");
  for (unsigned hook : again) net[0]->remove_forward_hook(hook);
}

TEST(Guards, HooksOnAGradientThatIsReturned) {
  const Tensor w = ones({3}).requires_grad_(), x = ones({3});
  Captured step([&](const Tensor& in) { return autograd::grad({(w * in).sum()}, {w})[0]; });
  EXPECT_EQ(bits(step(x)), bits(x));
  const unsigned id = w.register_hook([](const Tensor& g) { return g * 2; });
  EXPECT_ERROR_TEXT(step(x), "[register_hook] not capturable");
  w.remove_hook(id);
  EXPECT_EQ(bits(step(x)), bits(x));
  EXPECT_EQ(step.counters().replays, 1u);
}

// As those of processes, which are not captured.
struct Doubles final : autograd::LeafBucket {
  std::vector<Tensor> reduce(const std::vector<std::pair<autograd::Node*, std::vector<Tensor>>>& in,
                             autograd::GraphTask&) override {
    std::vector<Tensor> out;
    for (const auto& [node, gradients] : in) out.push_back(gradients[0] * 2);
    return out;
  }
};

TEST(Guards, AReductionThatCameLater) {
  const Tensor w = ones({3}).requires_grad_(), x = ones({3});
  Captured step([&](const Tensor& in) { (w * in).sum().backward(); });
  step(x);
  Doubles bucket;
  autograd::AccumulateGrad& leaf = *autograd::grad_accumulator(w.impl());
  autograd::set_reduce_bucket(leaf, &bucket);
  w.mutable_grad() = Tensor();
  step(x);
  EXPECT_STREQ(step.last_failed_guard(), "gradients");
  EXPECT_EQ(bits(w.grad()), bits(full({3}, 2.f)));
  autograd::set_reduce_bucket(leaf, nullptr);
  w.mutable_grad() = Tensor();
  step(x);
  EXPECT_EQ(bits(w.grad()), bits(x));
}

// A replay writes into the gradient. The backward of a node that saved it gets an error.
TEST(Guards, AGradientThatSomebodySaved) {
  const Tensor w = ones({3}).requires_grad_(), v = ones({3}).requires_grad_(), x = ones({3});
  Captured step([&](const Tensor& in) {
    autograd::zero_grad(w, /*set_to_none=*/true);
    (w * in).sum().backward();
  });
  step(x);
  step(x);
  const Tensor loss = (w.grad() * v).sum();
  step(x * 2);
  EXPECT_EQ(step.counters().captures, 2u);  // without a gradient, and with one
  EXPECT_ERROR_TEXT(loss.backward(), "Captured");
  // One that only reads it changes nothing.
  const Tensor other = (w.grad() * v).sum();
  Captured reads([&] { return w.grad() * 2; });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(bits(reads()), bits(full({3}, 4.f)));
  EXPECT_EQ(reads.counters().replays, 1u);
  other.backward();
  EXPECT_EQ(bits(v.grad()), bits(full({3}, 2.f)));
}

TEST(Guards, OnlySoManyCapturesAreKept) {
  Captured step([](const Tensor& x) { return x + 1; });
  step.set_max_captures(2);
  for (int64_t n : {1, 2, 3, 2, 3, 1}) step(ones({n}));
  EXPECT_EQ(step.size(), 2u);
  EXPECT_EQ(step.counters().captures, 4u);
  step.clear();
  EXPECT_EQ(step.size(), 0u);
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
