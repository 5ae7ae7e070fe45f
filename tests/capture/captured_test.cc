// What a replay does, and what owns which memory.
#include "autograd/graph/captured.h"

#include <limits>

#include "autograd/graph/node.h"
#include "nn/layers/basic/activation.h"
#include "nn/module/sequential.h"
#include "nn/utils/clip_grad.h"
#include "runtime/observe/observer.h"
#include "tests/capture/training.h"

using ramet::detail::tls;

namespace ramet {
namespace capture_tests {
namespace {

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

// A result that is an input's memory may be given to another input.
TEST(Captured, ResultsComeBackInOtherPlaces) {
  const auto body = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return std::make_tuple(c, a + b, a);
  };
  Captured step(body);
  Tensor a = full({3}, 1.f), b = full({3}, 2.f), c = full({3}, 5.f), x = a, y = b, z = c;
  for (int i = 0; i < 5; ++i) {
    std::tie(x, y, z) = body(x, y, z);
    std::tie(a, b, c) = step(a, b, c);
    EXPECT_EQ(bits(a), bits(x)) << i;
    EXPECT_EQ(bits(b), bits(y)) << i;
    EXPECT_EQ(bits(c), bits(z)) << i;
  }
  EXPECT_EQ(step.counters().captures, 1u);
}

TEST(Captured, LeavesThatTheFunctionMakesAndDrops) {
  const auto body = [](const Tensor& x) {
    const Tensor leaf = x.detach().requires_grad_();
    (leaf * leaf).sum().backward();
    return leaf.grad();
  };
  Captured step(body);
  for (const float v : {1.f, 2.f, 3.f})
    EXPECT_EQ(bits(step(full({300}, v))), bits(body(full({300}, v))));
  EXPECT_EQ(step.counters().captures, 1u);
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
TEST(Captured, TextsOfIndicesThatAreOutOfRangeAtAReplay) {
  Captured step([](const Tensor& x, const Tensor& i) { return x.index({i}); });
  const Tensor x = randn({4, 2}), bad = full({2}, 9, kLong);
  step(x, full({2}, 1, kLong));
  std::vector<std::string> others;  // where the text was
  for (int i = 0; i < 50; ++i) others.push_back(std::string(24, 'X') + std::to_string(i));
  EXPECT_ERROR_TEXT(step(x, bad), "expected [-4, 4) (size of dimension 0)");
  EXPECT_EQ(step.counters().captures, 1u);
}

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

TEST(Captured, GradientsAreClipped) {
  for (const double type : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
    const Tensor a = ones({3}).requires_grad_(), b = ones({2, 2}).requires_grad_();
    const auto body = [&](const Tensor& x) {
      a.mutable_grad() = b.mutable_grad() = Tensor();
      ((a * x.slice(0, 0, 3)).sum() + (b * x.sum()).sum()).backward();
      const Tensor norm = nn::utils::get_total_norm({a.grad(), b.grad()}, type);
      nn::utils::clip_grads_with_norm_({a, b}, 1, norm);
      return norm;
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
    // What the function read is gone for the program, not for the capture. No other tensor gets the
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

// What a deep net is done with serves it again: without that, a capture would take ten times the
// memory and more.
TEST(Memory, ServesAgainInsideACapture) {
  nn::Sequential net;
  for (int i = 0; i < 16; ++i) net->push_back(nn::Linear(32, 32)), net->push_back(nn::ReLU());
  for (const bool train : {false, true}) {
    const auto body = [&](const Tensor& x) {
      const ScopedValue<bool> mode(tls.grad_mode, train);
      net->zero_grad();
      const Tensor y = net->forward(x).pow(2);
      if (train) y.sum().backward();
      return y;
    };
    const Tensor x = randn({512, 32});
    body(x);
    const int64_t before = memory_stats(kHost).current;
    reset_peak_memory_stats(kHost);
    const std::string expected = bits(body(x));
    const int64_t eager = memory_stats(kHost).peak - before;
    net->zero_grad();
    Captured step(body);
    step(x);
    EXPECT_LT(memory_stats(kHost).current - before, eager * 2) << eager;
    step(ones({512, 32}));
    EXPECT_EQ(bits(step(x)), expected);
  }
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
  Pictures net;
  Captured step([&](const Tensor& x) { return net->forward(x).sum(); });
  const Tensor x = ones({2, 1, 12, 12});
  const int64_t with_net = autograd::nodes_alive();
  step(x);
  EXPECT_EQ(autograd::nodes_alive(), with_net);
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
