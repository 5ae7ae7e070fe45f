// Checkpoints under autocast: a function that runs again has the dtypes of its forward pass, and
// casts its parameters for itself.
#include <gtest/gtest.h>

#include <thread>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/checkpoint.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "tests/autograd/autocast/calls.h"
#include "tests/error_text.h"
#include "tests/values.h"

namespace ramet {
namespace {

using autograd::checkpoint;

Tensor drawn(IntArrayRef sizes, uint64_t seed) {
  return randn(sizes, Generator(Device(kCPU, 0), seed), kFloat);
}
Tensor drawn_parameter(IntArrayRef sizes, uint64_t seed) {
  return drawn(sizes, seed).set_requires_grad(true);
}

// A net with two weights, of which the first one is used twice. It notes the dtypes of its results.
struct Net {
  Tensor first = drawn_parameter({6, 6}, 1), bias = drawn_parameter({6}, 2),
         last = drawn_parameter({3, 6}, 3);
  std::vector<ScalarType> seen;

  Tensor operator()(const Tensor& x) {
    const Tensor h = linear(x, first, bias).tanh(), again = linear(h, first) * h;
    const Tensor normed = layer_norm(again, 6).softmax(1);
    Tensor y = linear(normed, last);
    for (const Tensor& t : {h, again, normed, y, mse_loss(y, y.detach())})
      seen.push_back(t.scalar_type());
    return y;
  }
};

struct Result {
  std::vector<std::vector<double>> bits;  // of the result and the gradients
  std::vector<ScalarType> seen;
};

// A step of a Net: its forward by `forward(call, x)`, where call(x) runs the net, through a
// checkpoint if `again`. `guard` stays for the backward pass if `inside`.
template <class F> Result stepped(bool again, bool inside, const F& forward) {
  Net net;
  const Tensor x = drawn_parameter({4, 6}, 4);
  const auto call = [&](const Tensor& t) {
    const auto fn = [&net](const Tensor& in) { return net(in); };
    return again ? checkpoint(fn, t) : fn(t);
  };
  std::optional<AutocastGuard> guard;
  const Tensor y = forward(guard, call, x * 1);
  const Tensor loss = y.to(kFloat).square().sum();
  if (!inside) guard.reset();
  loss.backward();
  Result result{{values(y)}, net.seen};
  for (const Tensor& t : {x, net.first, net.bias, net.last}) {
    EXPECT_EQ(t.grad().scalar_type(), kFloat);
    result.bits.push_back(values(t.grad()));
  }
  return result;
}

// The same bits with and without a checkpoint, and the same dtypes each time that the net runs.
template <class F> void expect_same(bool casts, const F& forward) {
  for (const bool inside : {false, true}) {
    SCOPED_TRACE(inside);
    const Result plain = stepped(false, inside, forward), again = stepped(true, inside, forward);
    EXPECT_EQ(again.bits, plain.bits);
    EXPECT_EQ(plain.seen[0] != kFloat, casts);
    std::vector<ScalarType> twice = plain.seen;
    twice.insert(twice.end(), plain.seen.begin(), plain.seen.end());
    EXPECT_EQ(again.seen, twice);
  }
}

TEST(AutocastCheckpoint, SameBitsUnderAGuard) {
  for (const ScalarType dtype : {kBFloat16, kHalf})
    for (const bool kept : {true, false})
      expect_same(true, [&](auto& guard, const auto& call, const Tensor& x) {
        guard.emplace(kCPU, dtype, true, kept);
        return call(x);
      });
}

// What a guard inside of the function does, it does again.
TEST(AutocastCheckpoint, GuardsInsideTheFunction) {
  for (const bool enabled : {true, false}) {
    const auto run = [&](bool again, bool inside) {
      return stepped(false, inside, [&](auto& guard, const auto& call, const Tensor& x) {
        guard.emplace(kCPU, kHalf, !enabled);
        const auto fn = [&](const Tensor& in) {
          const Tensor h = in.mm(in.t()).mm(in);  // as the guard around says
          const AutocastGuard own(kCPU, kBFloat16, enabled);
          return call(h.to(kFloat)) + call(in);
        };
        return again ? checkpoint(fn, x) : fn(x);
      });
    };
    for (const bool inside : {false, true}) {
      const Result plain = run(false, inside), again = run(true, inside);
      EXPECT_EQ(again.bits, plain.bits);
      EXPECT_EQ(plain.seen[0], enabled ? kBFloat16 : kFloat);
      ASSERT_EQ(again.seen.size(), 2 * plain.seen.size());
      for (size_t i = 0; i < again.seen.size(); ++i)
        EXPECT_EQ(again.seen[i], plain.seen[i % plain.seen.size()]) << i;
    }
  }
}

// Each level has the state in which it was called.
TEST(AutocastCheckpoint, CheckpointsInsideCheckpoints) {
  const auto run = [](bool again, bool inside) {
    return stepped(again, inside, [&](auto& guard, const auto& call, const Tensor& x) {
      guard.emplace(kCPU);
      const auto middle = [&call](const Tensor& in) {
        const AutocastGuard half(kCPU, kHalf);
        return call(in);
      };
      const auto outer = [middle, &call, again](const Tensor& in) {
        const Tensor h = again ? checkpoint(middle, in) : middle(in);
        return h.to(kFloat) + call(in).to(kFloat);
      };
      return again ? checkpoint(outer, x) : outer(x);
    });
  };
  for (const bool inside : {false, true}) {
    const Result plain = run(false, inside), again = run(true, inside);
    EXPECT_EQ(again.bits, plain.bits);
    EXPECT_EQ(plain.seen[0], kHalf);
    EXPECT_EQ(plain.seen[5], kBFloat16);
    // The outer function runs twice, and calls the net twice. Each of these runs again once more.
    std::vector<ScalarType> sorted = again.seen, want;
    for (int i = 0; i < 2; ++i) want.insert(want.end(), plain.seen.begin(), plain.seen.end());
    ASSERT_GT(sorted.size(), want.size());
    sorted.resize(want.size());
    EXPECT_EQ(sorted, want);
  }
}

// The backward pass of a thread that knows nothing of autocast.
TEST(AutocastCheckpoint, BackwardOnAnotherThread) {
  const auto gradient = [](bool again) {
    Net net;
    const Tensor x = drawn_parameter({4, 6}, 4);
    Tensor loss;
    {
      const AutocastGuard guard(kCPU, kHalf);
      const auto fn = [&net](const Tensor& in) { return net(in); };
      loss = (again ? checkpoint(fn, x) : fn(x)).to(kFloat).square().sum();
    }
    std::thread([&] {
      loss.backward();
      EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
      EXPECT_EQ(autocast::get_autocast_dtype(kCPU), kBFloat16);
    }).join();
    return values(net.first.grad());
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST(AutocastCheckpoint, GradientsOfGradients) {
  const auto second = [](bool again) {
    const Tensor x = drawn_parameter({4, 6}, 4), w = drawn_parameter({6, 6}, 1);
    Tensor loss;
    {
      const AutocastGuard guard(kCPU);
      const auto fn = [&w](const Tensor& in) { return linear(linear(in, w).tanh(), w); };
      loss = (again ? checkpoint(fn, x) : fn(x)).to(kFloat).square().sum();
    }
    const Tensor g = autograd::grad({loss}, {x}, {}, true, true)[0];
    g.square().sum().backward();
    return std::pair(values(g), values(w.grad()));
  };
  EXPECT_EQ(second(true), second(false));
}

// ---- casts of parameters ------------------------------------------------------------------------

// Casts made before a checkpoint serve its forward pass. The run again makes its own and drops
// them. Those of the region stay.
TEST(AutocastCheckpoint, RunAgainItCastsForItself) {
  const Tensor x = drawn({4, 6}, 4), w = drawn_parameter({6, 6}, 1),
               other = drawn_parameter({6, 6}, 2);
  const AutocastGuard guard(kCPU);
  const Tensor before = linear(x, w);
  std::vector<const void*> casts;
  const uint32_t refs = w->refs.load();
  const auto fn = [&](const Tensor& in) {
    const Tensor h = linear(in, w), y = linear(h, w);
    casts.insert(casts.end(), {cast_in(h), cast_in(y)});
    return linear(y, other).sin();
  };
  const Tensor y = checkpoint(fn, linear(x, w));
  y.sum().backward();
  ASSERT_EQ(casts.size(), 4u);
  EXPECT_EQ(casts[0], cast_in(before));
  EXPECT_EQ(casts[1], casts[0]);
  EXPECT_NE(casts[2], casts[0]);
  EXPECT_EQ(casts[3], casts[2]);
  EXPECT_EQ(cast_in(linear(x, w)), cast_in(before));
  EXPECT_EQ(w->refs.load(), refs);
}

// Nothing stays of a backward pass outside of all regions.
TEST(AutocastCheckpoint, OutsideOfRegionsNothingIsKept) {
  const Tensor x = drawn({4, 6}, 4), w = drawn_parameter({6, 6}, 1);
  const uint32_t refs = w->refs.load();
  Tensor y;
  {
    const AutocastGuard guard(kCPU);
    y = checkpoint([](const Tensor& in, const Tensor& by) { return linear(in, by).sin(); }, x, w);
  }
  y.sum().backward();
  y = Tensor();
  EXPECT_EQ(w->refs.load(), refs);
}

// A parameter that the function refers to has changed since: its values of now are used, not those
// of a cast from the forward pass. The gradient reaches the parameter.
TEST(AutocastCheckpoint, ChangedParametersAreCastAgain) {
  for (const bool inside : {false, true}) {
    const Tensor x = full({1, 1}, 1.f).set_requires_grad(true),
                 w = full({1, 1}, 2.f).set_requires_grad(true);
    std::vector<float> results;
    std::optional<AutocastGuard> guard;
    guard.emplace(kCPU);
    const Tensor y = checkpoint(
        [&](const Tensor& in) {
          const Tensor h = linear(in, w);
          results.push_back(h.item<float>());
          return linear(h, w);
        },
        x);
    {
      const NoGradGuard off;
      w.fill_(3.f);
    }
    if (!inside) guard.reset();
    y.sum().backward();
    EXPECT_EQ(results, (std::vector<float>{2, 3}));
    EXPECT_EQ(w.grad().scalar_type(), kFloat);
    EXPECT_EQ(w.grad().item<float>(), 6);  // h + w x, with the new w
    EXPECT_EQ(x.grad().item<float>(), 9);
  }
}

TEST(AutocastCheckpoint, OtherDtypesAreRefused) {
  const Tensor x = drawn_parameter({2, 3}, 4), w = drawn_parameter({3, 3}, 1);
  int runs = 0;
  Tensor y;
  {
    const AutocastGuard guard(kCPU);
    y = checkpoint(
        [&](const Tensor& in) {
          const AutocastGuard as(kCPU, ++runs == 1 ? kBFloat16 : kHalf);
          return linear(in, w).sin();
        },
        x);
  }
  EXPECT_ERROR_TEXT(y.sum().backward(),
                    "run again, the function saved another tensor as number 0: got float16");
  EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
  EXPECT_FALSE(w.grad().defined());
}

}  // namespace
}  // namespace ramet
