// When a capture is used and when it is made again, what cannot be captured, whose memory is whose.
#include "autograd/captured.h"

#include <cmath>
#include <limits>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "nn/data/samplers.h"
#include "nn/init.h"
#include "nn/sequential.h"
#include "nn/serialize/archive.h"
#include "nn/utils/clip_grad.h"
#include "runtime/allocator.h"
#include "runtime/devices.h"
#include "runtime/gpu.h"
#include "runtime/observer.h"
#include "runtime/print.h"
#include "runtime/thread_pool.h"
#include "tests/capture/support.h"

namespace ramet {
namespace capture_tests {
namespace {

// ---- what a replay does -------------------------------------------------------------------------

TEST(Captured, RunsTheFunctionOnce) {
  int runs = 0;
  Captured step([&](const Tensor& x) {
    ++runs;
    return x * 2 + 1;
  });
  EXPECT_EQ(bits(step(tensor({1.f, 2.f}))), bits(tensor({3.f, 5.f})));
  EXPECT_EQ(bits(step(tensor({3.f, 4.f}))), bits(tensor({7.f, 9.f})));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(step.counters().captures, 1u);
  EXPECT_EQ(step.counters().replays, 1u);
  EXPECT_EQ(step.counters().failed_guards, 0u);
  EXPECT_EQ(step.last_failed_guard(), nullptr);
}

TEST(Captured, ResultsOfAnyKind) {
  Captured pair([](const Tensor& a, const Tensor& b) { return std::make_tuple(a + b, a * b); });
  Captured list([](const Tensor& a) { return std::vector<Tensor>{a + 1, Tensor(), a + 2}; });
  Captured array([](const Tensor& a) { return std::array<Tensor, 2>{a, a.neg()}; });
  const Tensor written = zeros({2});
  Captured nothing([&] { written.add_(1); });
  for (float v : {2.f, 3.f}) {
    const Tensor x = full({2}, v);
    const auto [sum, product] = pair(x, x);
    EXPECT_EQ(bits(sum), bits(x + x));
    EXPECT_EQ(bits(product), bits(x * x));
    const std::vector<Tensor>& three = list(x);
    EXPECT_EQ(bits(three[0]), bits(x + 1));
    EXPECT_FALSE(three[1].defined());
    EXPECT_EQ(bits(three[2]), bits(x + 2));
    EXPECT_EQ(bits(array(x)[0]), bits(x));
    EXPECT_EQ(bits(array(x)[1]), bits(-x));
    nothing();
  }
  EXPECT_EQ(bits(written), bits(full({2}, 2.f)));
}

TEST(Captured, WithoutKernels) {
  Captured same([](const Tensor& x) { return x.view({4}); });
  Captured none([] {});
  for (float v : {1.f, 2.f}) {
    EXPECT_EQ(bits(same(full({2, 2}, v))), bits(full({4}, v)));
    none();
  }
  EXPECT_EQ(none.counters().replays, 1u);
}

TEST(Captured, InputsAreCopiedAndResultsStayUntilTheNextCall) {
  Captured step([](const Tensor& x) { return x.add_(1); });
  const Tensor x = zeros({3});
  const Tensor y = step(x);
  EXPECT_EQ(bits(x), bits(zeros({3})));
  const Tensor kept = y.clone();
  step(full({3}, 5.f));
  EXPECT_EQ(bits(kept), bits(ones({3})));
  EXPECT_EQ(bits(y), bits(full({3}, 6.f)));  // the same memory
  EXPECT_EQ(bits(step(step(x))), bits(full({3}, 2.f)));
}

TEST(Captured, ResultsThatWereSavedAreSeenToChange) {
  Captured step([](const Tensor& x) { return x * 2; });
  Tensor w = ones({3}).requires_grad_();
  Tensor loss = (w * step(ones({3}))).sum();
  step(ones({3}));
  EXPECT_ERROR_TEXT(loss.backward(), "modified by an inplace operation");
}

TEST(Captured, ZeroDimensionalOperandsAreRead) {
  // On a CPU a number of one element is read by the host: here it must not be.
  const Tensor scale = tensor(2.f);
  Captured step([&](const Tensor& x, const Tensor& y) { return x * y.sum() + scale; });
  for (float v : {1.f, 3.f}) {
    scale.fill_(v);
    const Tensor x = full({2}, v), y = full({3}, v + 1);
    EXPECT_EQ(bits(step(x, y)), bits(x * y.sum() + scale));
  }
  EXPECT_EQ(step.counters().replays, 1u);
}

TEST(Captured, ValuesOfTheProgramComeBackAtEachReplay) {
  Captured step([](const Tensor& x) {
    Tensor t = tensor({1.f, 2.f});
    t.add_(x);
    return t;
  });
  for (float v : {1.f, 2.f, 3.f})
    EXPECT_EQ(bits(step(full({2}, v))), bits(tensor({1.f + v, 2.f + v})));
}

TEST(Captured, EveryLayoutOfAnInput) {
  Captured step([](const Tensor& x) { return x * 2; });
  const Tensor m = arange(12).to(kFloat).view({3, 4});
  for (const Tensor& x :
       {m, m.t(), m.slice(1, 0, 4, 2), m.select(0, 1), m.select(0, 1).expand({5, 4})})
    for (int i = 0; i < 2; ++i) EXPECT_EQ(bits(step(x)), bits(x * 2));
  EXPECT_EQ(step.counters().captures, 5u);
  EXPECT_EQ(step.counters().replays, 5u);
}

TEST(Captured, IndicesAreCheckedAtEachReplay) {
  const Tensor w = randn({4, 2});
  Captured step([&](const Tensor& i) { return embedding(w, i); });
  for (int64_t at : {1, 3}) {
    const Tensor i = full({2}, at, kLong);
    EXPECT_EQ(bits(step(i)), bits(embedding(w, i)));
  }
  EXPECT_THROW(step(full({2}, 4, kLong)), IndexError);
  EXPECT_EQ(bits(step(full({2}, 2, kLong))), bits(embedding(w, full({2}, 2, kLong))));
  EXPECT_EQ(step.counters().captures, 1u);
}

// What came before the index that is out of range has happened, and is seen to.
TEST(Captured, AReplayThatFailsHasWritten) {
  const Tensor w = randn({4, 2}), count = zeros({1});
  Captured step([&](const Tensor& i) {
    count.add_(1);
    return embedding(w, i);
  });
  step(zeros({2}, kLong));
  const auto version = count.version();
  EXPECT_THROW(step(full({2}, 4, kLong)), IndexError);
  EXPECT_EQ(count.item<float>(), 2);
  EXPECT_GT(count.version(), version);
}

TEST(Captured, RandomNumbersGoOn) {
  Generator own(kHost, 9);
  const auto draw = [&] {
    Tensor t = rand({5}) + randn({5}) + randint(0, 9, {5}, TensorOptions(kFloat));
    t = t + multinomial(ones({5}), 5) + bernoulli(full({5}, 0.5));
    return t + dropout(ones({5}), 0.5, true) + rand({5}, own, TensorOptions()) + randperm(5);
  };
  Captured step(draw);
  std::vector<std::string> got[2];
  GeneratorState after[2], own_after[2];
  for (const bool captured : {false, true}) {
    manual_seed(4);
    own.set_current_seed(9);
    for (int i = 0; i < 5; ++i) {
      got[captured].push_back(bits(captured ? step() : draw()));
      got[captured].push_back(bits(rand({3})));  // others draw between steps
    }
    after[captured] = default_generator(kHost).get_state();
    own_after[captured] = own.get_state();
  }
  EXPECT_TRUE(got[0] == got[1]);
  EXPECT_TRUE(after[0] == after[1]);
  EXPECT_TRUE(own_after[0] == own_after[1]);
  EXPECT_EQ(step.counters().replays, 4u);
}

TEST(Captured, ObserversSeeReplays) {
  Captured step([](const Tensor& x) { return x.exp(); });
  const Tensor x = ones({3});
  step(x);
  int seen = 0;
  Observer observer;
  observer.kernel_end = [&](const KernelCall&) { ++seen; };
  const uint64_t number = add_observer(std::move(observer));
  step(x);
  EXPECT_EQ(seen, 2);  // the input's copy and exp
  Captured while_observed([](const Tensor& x) { return x.log(); });
  while_observed(x);
  EXPECT_EQ(seen, 4);
  remove_observer(number);
}

// ---- guards -------------------------------------------------------------------------------------

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

// ---- refusals -----------------------------------------------------------------------------------

TEST(Refusals, WhatTheHostReads) {
  const Tensor x = arange(4).to(kFloat);
  const auto refused = [&](const char* op, std::function<void(const Tensor&)> f) {
    Captured step([&](const Tensor& in) { f(in); });
    EXPECT_ERROR_TEXT(step(x), std::string("[") + op + "] not capturable");
    EXPECT_EQ(step.size(), 0u);
    f(x);  // and works outside
  };
  refused("item", [](const Tensor& t) { t.sum().item<float>(); });
  refused("item", [](const Tensor& t) { (void)t.sum().is_nonzero(); });
  refused("item", [](const Tensor& t) { (void)equal(t, t); });
  refused("nonzero", [](const Tensor& t) { nonzero(t); });
  refused("nonzero", [](const Tensor& t) { t.index({t > 1}); });
  refused("nonzero", [](const Tensor& t) { t.masked_select(t > 1); });
  refused("print", [](const Tensor& t) { std::ostringstream() << t; });
  refused("data_ptr", [](const Tensor& t) { t.data_ptr<float>(); });
  refused("data_ptr", [](const Tensor& t) { t.accessor<float, 1>(); });
  refused("item", [](const Tensor&) { one_hot(zeros({2}, kLong), 3); });
  // The norm as a number; as a tensor it may be used.
  for (const bool nonfinite : {false, true})
    refused("item", [nonfinite](const Tensor&) {
      Tensor p = ones({2}).requires_grad_();
      p.mutable_grad() = ones({2});
      const double norm = nn::utils::clip_grad_norm_(p, 1, 2, nonfinite);
      EXPECT_NEAR(norm, std::sqrt(2.0), 1e-6);
    });
}

TEST(Captured, GradientsAreClipped) {
  for (const double type : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
    const Tensor a = ones({3}).requires_grad_(), b = ones({2, 2}).requires_grad_();
    const auto body = [&](const Tensor& x) {
      a.mutable_grad() = b.mutable_grad() = Tensor();
      ((a * x.slice(0, 0, 3)).sum() + (b * x.sum()).sum()).backward();
      return nn::utils::clip_grad_norm_({a, b}, 1, type).tensor();
    };
    Captured step(body);
    for (const float v : {0.01f, 2.f, -3.f}) {  // the first is below the limit
      const Tensor x = arange(4).to(kFloat) * v;
      const auto gradients = [&] { return bits(a.grad()) + bits(b.grad()); };
      const std::string norm = bits(body(x)), expected = gradients();
      a.mutable_grad() = b.mutable_grad() = Tensor();
      EXPECT_EQ(bits(step(x)), norm);
      EXPECT_EQ(gradients(), expected);
    }
    EXPECT_EQ(step.counters().captures, 1u);
  }
}

// The same on a GPU, and nothing is left behind there.
TEST(Refusals, OnAGpu) {
  if (!gpu::library() || gpu::library()->device_count() == 0)
    GTEST_SKIP() << "no GPU: " << (gpu::library() ? gpu::library()->why_none() : "not linked");
  const Tensor x = arange(4).to(kFloat).to(Device(kCUDA, 0));
  const auto refused = [&](const char* op, std::function<void(const Tensor&)> f) {
    const int64_t before = memory_stats(x.device()).current;
    {
      Captured step([&](const Tensor& in) { f(in * 2); });
      EXPECT_ERROR_TEXT(step(x), std::string("[") + op + "] not capturable");
      EXPECT_EQ(step.size(), 0u);
    }
    EXPECT_EQ(memory_stats(x.device()).current, before) << op;
    f(x);
  };
  refused("item", [](const Tensor& t) { t.sum().item<float>(); });
  refused("item", [](const Tensor& t) { (void)equal(t, t); });
  refused("nonzero", [](const Tensor& t) { nonzero(t); });
  refused("nonzero", [](const Tensor& t) { t.index({t > 1}); });
  refused("print", [](const Tensor& t) { std::ostringstream() << t; });
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
  const auto refused = [&](const char* op, std::function<void(const Tensor&)> f) {
    Captured step([&](const Tensor& in) { f(in); });
    EXPECT_ERROR_TEXT(step(x), std::string("[") + op + "] not capturable");
  };
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

TEST(Refusals, OptimizersWithoutAKernel) {
  Tensor p = ones({2}, TensorOptions(kBFloat16)).requires_grad_();
  p.mutable_grad() = ones({2}, TensorOptions(kBFloat16));
  optim::SGD sgd({p}, optim::SGDOptions(0.1));
  Captured step([&] { sgd.step(); });
  EXPECT_ERROR_TEXT(step(), "[SGD.step] not capturable");
  EXPECT_EQ(bits(p), bits(ones({2}, TensorOptions(kBFloat16))));
}

// ---- failures -----------------------------------------------------------------------------------

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
    // And it can be captured after all, with an eager twin's result.
    const std::string grad = bits(loose.grad());
    step(x, good);
    EXPECT_NE(bits(loose.grad()), grad);
    EXPECT_EQ(step.counters().captures, 1u);
  }
}

// ---- memory -------------------------------------------------------------------------------------

TEST(Memory, ACaptureKeepsWhatItNamesAndNothingLonger) {
  const int64_t before = memory_stats(kHost).current;
  {
    Tensor big = full({1000}, 3.f);
    Captured step([&](const Tensor& x) {
      Tensor t = x * 2;
      return t + big;
    });
    const Tensor x = full({1000}, 1.f);
    EXPECT_EQ(bits(step(x)), bits(full({1000}, 5.f)));
    // What the function read is gone for the program, not for the capture, and nobody else gets the
    // memory of its temporaries.
    big = Tensor();
    std::vector<Tensor> others;
    for (int i = 0; i < 50; ++i) others.push_back(full({1000}, 100.f));
    EXPECT_EQ(bits(step(x)), bits(full({1000}, 5.f)));
    for (const Tensor& t : others) ASSERT_EQ(bits(t), bits(full({1000}, 100.f)));
    EXPECT_EQ(step.counters().replays, 1u);
  }
  EXPECT_EQ(memory_stats(kHost).current, before);
}

TEST(Memory, GradientsOutliveTheCapture) {
  const Tensor w = ones({1000}).requires_grad_();
  {
    Captured step([&](const Tensor& x) { (w * x).sum().backward(); });
    step(full({1000}, 2.f));
  }
  std::vector<Tensor> others;
  for (int i = 0; i < 20; ++i) others.push_back(full({1000}, 9.f));
  EXPECT_EQ(bits(w.grad()), bits(full({1000}, 2.f)));
}

TEST(Memory, NoNodesStay) {
  const int64_t before = autograd::nodes_alive();
  Net net;
  Captured step([&](const Tensor& x) { return net->forward(x).sum(); });
  const Tensor x = ones({2, 1, 12, 12});
  const int64_t with_net = autograd::nodes_alive();
  step(x);
  EXPECT_EQ(autograd::nodes_alive(), with_net);
  (void)before;
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
