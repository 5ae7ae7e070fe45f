// autograd::checkpoint: the same bits as without, less memory, and what it refuses.
#include "autograd/checkpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <future>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "runtime/memory/allocator.h"
#include "tests/error_text.h"
#include "tests/values.h"

namespace ramet {
namespace {

using autograd::checkpoint;

Tensor random_leaf(IntArrayRef sizes, uint64_t seed, ScalarType dtype = kFloat) {
  return randn(sizes, Generator(Device(kCPU, 0), seed), dtype).set_requires_grad(true);
}

// Products, views, in-place operations, saved inputs and saved results.
Tensor mixed(const Tensor& x, const Tensor& w) {
  Tensor h = matmul(x, w).tanh();
  h = h.t().reshape({h.numel()}) * h.flatten();
  Tensor part = h.clone();
  part.slice(0, 0, 3).mul_(h.slice(0, 3, 6));
  return part.softmax(0).reshape(x.sizes()).sigmoid() * x;
}

// Calls fn(x, w) as it is or through a checkpoint; the result and the gradients of x and w.
template <class F> std::array<Tensor, 3> run(bool again, const F& fn) {
  const Tensor x = random_leaf({4, 4}, 1), w = random_leaf({4, 4}, 2);
  const Tensor y = again ? checkpoint(fn, x * 1, w) : fn(x * 1, w);
  (y * y).sum().backward();
  return {y, x.grad(), w.grad()};
}
template <class F> void expect_same(const F& fn) {
  const auto plain = run(false, fn), again = run(true, fn);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(plain[i].defined() && again[i].defined()) << i;
    EXPECT_EQ(values(plain[i]), values(again[i])) << i;
  }
}

TEST(Checkpoint, HasTheSameBits) {
  expect_same([](const Tensor& x, const Tensor& w) { return mixed(x, w); });
}

TEST(Checkpoint, RunsTheFunctionOnceMore) {
  int runs = 0, recomputed = 0;
  const auto fn = [&](const Tensor& x) {
    ++runs;
    recomputed += autograd::is_recomputing() ? 1 : 0;
    return x.exp().sin();
  };
  const Tensor x = random_leaf({3}, 1);
  const Tensor y = checkpoint(fn, x);
  EXPECT_EQ(runs, 1);
  y.sum().backward();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(recomputed, 1);
  EXPECT_FALSE(autograd::is_recomputing());
}

TEST(Checkpoint, OnlyCallsTheFunctionWhereNothingIsRecorded) {
  int runs = 0;
  const auto fn = [&](const Tensor& x) {
    ++runs;
    return x.exp();
  };
  {
    const NoGradGuard off;
    EXPECT_FALSE(checkpoint(fn, random_leaf({3}, 1)).requires_grad());
  }
  {
    const InferenceMode inference;
    EXPECT_EQ(values(checkpoint(fn, zeros({2}))), (std::vector<double>{1, 1}));
  }
  EXPECT_FALSE(checkpoint(fn, zeros({2})).requires_grad());
  EXPECT_EQ(runs, 3);
}

TEST(Checkpoint, ArgumentsAndResultsOfAnyKind) {
  const Tensor x = random_leaf({3}, 1), constant = full({3}, 2.f), none;
  const auto fn = [](const std::tuple<Tensor, Tensor>& pair, const std::vector<Tensor>& list,
                     const std::optional<Tensor>& maybe, const Tensor& undefined, double factor) {
    EXPECT_FALSE(undefined.defined());
    const auto& [a, b] = pair;
    return std::make_tuple(a.exp() * b, std::vector<Tensor>{list[0].sin() * factor, *maybe * a});
  };
  const auto [first, rest] = checkpoint(fn, std::make_tuple(x, constant), std::vector<Tensor>{x},
                                        std::optional<Tensor>(x), none, 3.0);
  (first + rest[0] + rest[1]).sum().backward();
  const Tensor want = x.detach().exp() * 2 + x.detach().cos() * 3 + x.detach() * 2;
  expect_values(x.grad(), values(want), 1e-6);
  EXPECT_FALSE(constant.grad().defined());
}

TEST(Checkpoint, GradAndGradientsOfGradients) {
  const auto fn = [](const Tensor& a, const Tensor& b) { return (a * b).tanh() * a.exp(); };
  for (const bool again : {false, true}) {
    SCOPED_TRACE(again);
    static std::vector<double> first, second, mixed_second;
    const Tensor x = random_leaf({5}, 1, kDouble), w = random_leaf({5}, 2, kDouble);
    const Tensor y = again ? checkpoint(fn, x, w) : fn(x, w);
    const Tensor g = autograd::grad({y.sum()}, {x}, {}, true, true)[0];
    const auto gg = autograd::grad({(g * g).sum()}, {x, w});
    if (!again) {
      first = values(g), second = values(gg[0]), mixed_second = values(gg[1]);
    } else {
      EXPECT_EQ(values(g), first);
      EXPECT_EQ(values(gg[0]), second);
      EXPECT_EQ(values(gg[1]), mixed_second);
    }
    EXPECT_FALSE(x.grad().defined());
  }
}

TEST(Checkpoint, RetainedGraphsRunTwiceAndComputeOnce) {
  int runs = 0;
  const Tensor x = random_leaf({3}, 1);
  const Tensor y = checkpoint(
      [&](const Tensor& a) {
        ++runs;
        return a.exp().sin();
      },
      x);
  y.sum().backward({}, /*retain_graph=*/true);
  const Tensor once = x.grad().clone();
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), values(once * 2));
  EXPECT_EQ(runs, 2);
  EXPECT_ERROR_TEXT(y.sum().backward(), "backward through the graph a second time");
}

TEST(Checkpoint, CheckpointsInsideCheckpoints) {
  const auto inner = [](const Tensor& x) { return x.exp().sin(); };
  expect_same([&](const Tensor& x, const Tensor& w) {
    const Tensor h = checkpoint(inner, matmul(x, w));
    return checkpoint([&](const Tensor& t) { return checkpoint(inner, t.cos()) * t; }, h);
  });
  // Each level is computed again once for each level above it.
  int runs = 0;
  const Tensor x = random_leaf({3}, 1);
  checkpoint(
      [&](const Tensor& a) {
        return checkpoint(
            [&](const Tensor& b) {
              ++runs;
              return b.exp().sin();
            },
            a.cos());
      },
      x)
      .sum()
      .backward();
  EXPECT_EQ(runs, 3);
}

TEST(Checkpoint, RandomNumbersAreRepeated) {
  for (const bool own : {false, true}) {
    const auto drops = [&](bool again) {
      manual_seed(7);
      Generator mine(Device(kCPU, 0), 5);
      const Tensor x = random_leaf({64}, 1);
      const auto fn = [&](const Tensor& t) {
        const Tensor noise = own ? randn({64}, mine) : randn({64});
        return dropout(t.exp() * noise, 0.5, true).sin();
      };
      const Tensor y = again ? checkpoint(fn, x) : fn(x);
      const Tensor next = rand({4});
      y.sum().backward();
      return std::array<std::vector<double>, 3>{values(x.grad()), values(next), values(rand({4}))};
    };
    EXPECT_EQ(drops(false), drops(true));
  }
}

struct Square : autograd::Function<Square> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    const Tensor y = x * x;
    ctx->save_for_backward({x, y});
    return y;
  }
  static tensor_list backward(autograd::AutogradContext* ctx, tensor_list g) {
    const tensor_list saved = ctx->get_saved_variables();
    return {g[0] * saved[0] * 2 + 0 * saved[1]};
  }
};

TEST(Checkpoint, FunctionsOfTheUser) {
  expect_same([](const Tensor& x, const Tensor& w) { return Square::apply(matmul(x, w)).exp(); });
}

TEST(Checkpoint, HooksRunOnce) {
  int hooks = 0;
  const Tensor x = random_leaf({3}, 1);
  const Tensor y = checkpoint(
      [&](const Tensor& a) {
        const Tensor h = a.exp();
        h.register_hook([&](const Tensor& g) {
          ++hooks;
          return g * 2;
        });
        return h.sin();
      },
      x);
  y.sum().backward();
  EXPECT_EQ(hooks, 1);
  const Tensor e = x.detach().exp();
  expect_values(x.grad(), values(e.cos() * e * 2), 1e-6);
}

TEST(Checkpoint, KeepsNoActivations) {
  const auto deep = [](Tensor x) {
    for (int i = 0; i < 16; ++i) x = x.sin();
    return x;
  };
  const auto kept_and_peak = [&](bool again) {
    const Tensor x = random_leaf({1 << 18}, 1);
    reset_peak_memory_stats(Device(kCPU, 0));
    const int64_t before = memory_stats(Device(kCPU, 0)).current;
    Tensor y = x;
    for (int i = 0; i < 4; ++i) y = again ? checkpoint(deep, y) : deep(y);
    const int64_t kept = memory_stats(Device(kCPU, 0)).current - before;
    y.sum().backward();
    return std::pair(kept >> 20, (memory_stats(Device(kCPU, 0)).peak - before) >> 20);
  };
  const auto plain = kept_and_peak(false), again = kept_and_peak(true);
  EXPECT_GE(plain.first, 64);  // 64 tensors of 1 MiB
  EXPECT_LE(again.first, 6);
  EXPECT_LE(again.second, 28);  // one block of 16, its gradients, and the inputs of four
}

TEST(Checkpoint, FreesEverything) {
  const int64_t nodes = autograd::nodes_alive(), bytes = memory_stats(Device(kCPU, 0)).current;
  for (const bool backward : {false, true}) {
    const Tensor x = random_leaf({1000}, 1);
    const Tensor y = checkpoint([](const Tensor& a) { return a.exp().sin(); }, x * 2);
    if (backward) y.sum().backward();
  }
  EXPECT_EQ(autograd::nodes_alive(), nodes);
  EXPECT_EQ(memory_stats(Device(kCPU, 0)).current, bytes);
}

// What the function keeps dies under no lock: its destructor may wait for another thread that frees
// a value of the same checkpoint.
TEST(Checkpoint, TheFunctionDiesUnderNoLock) {
  std::future<void> freed;
  std::future_status seen = std::future_status::deferred;
  Tensor other;
  std::shared_ptr<void> kept(nullptr, [&](void*) {
    freed = std::async(std::launch::async, [&] { other = Tensor(); });
    seen = freed.wait_for(std::chrono::seconds(20));
  });
  const Tensor x = random_leaf({1000}, 1);
  Tensor one;
  std::tie(one, other) = checkpoint(
      [kept = std::move(kept)](const Tensor& a) { return std::tuple(a.exp(), a.sin()); }, x * 2);
  one.sum().backward();
  ASSERT_TRUE(freed.valid()) << "the backward pass frees the function";
  freed.get();
  EXPECT_EQ(seen, std::future_status::ready);
}

TEST(Checkpoint, WhatItRefuses) {
  const auto backward_of = [](auto fn) {
    const Tensor x = random_leaf({3}, 1);
    const Tensor y = checkpoint(fn, x);
    y.sum().backward();
  };
  int runs = 0;
  const auto later = [&] { return runs++ > 0; };
  EXPECT_ERROR_TEXT(backward_of([&](const Tensor& a) { return later() ? a.sin() : a.exp().sin(); }),
                    "run again, the function saved fewer tensors: got 0, expected 2");
  runs = 0;
  EXPECT_ERROR_TEXT(backward_of([&](const Tensor& a) { return later() ? a.exp().sin() : a.exp(); }),
                    "run again, the function saved more tensors: got");
  runs = 0;
  EXPECT_ERROR_TEXT(
      backward_of([&](const Tensor& a) { return (later() ? a.repeat({2}) : a).exp().sin().sum(); }),
      "run again, the function saved another tensor as number 0: got float32[6] on cpu");
  runs = 0;
  EXPECT_ERROR_TEXT(
      backward_of([&](const Tensor& a) { return (later() ? a.to(kDouble) : a).exp(); }),
      "expected float32[3] on cpu");
  runs = 0;
  EXPECT_ERROR_TEXT(backward_of([&](const Tensor& a) {
                      const Tensor h = a.exp();
                      if (later()) rand({2});
                      return h;
                    }),
                    "draws random numbers once more: got 1 draws, expected 0");
  runs = 0;
  EXPECT_ERROR_TEXT(backward_of([&](const Tensor& a) {
                      const Tensor h = a.exp();
                      if (!later()) rand({2});
                      return h;
                    }),
                    "draws fewer random numbers: got 0 draws, expected 1");
  runs = 0;
  EXPECT_ERROR_TEXT(backward_of([&](const Tensor& a) {
                      if (later()) throw Error("its own mistake");
                      return a.exp();
                    }),
                    "its own mistake");
  // As without a checkpoint.
  EXPECT_ERROR_TEXT(backward_of([&](const Tensor& a) {
                      const Tensor h = a.exp(), y = h.sin();
                      h.mul_(2);
                      return y;
                    }),
                    "modified by an inplace operation");
}

TEST(Checkpoint, InputsMustNotBeWritten) {
  const Tensor x = random_leaf({3}, 1), input = x * 1, other = zeros({3});
  const Tensor y =
      checkpoint([](const Tensor& a, const Tensor& b) { return (a + b).exp(); }, input, other);
  other.add_(1);
  EXPECT_ERROR_TEXT(y.sum().backward(),
                    "input tensor 1 was changed by add_: got float32[3] on cpu");
  EXPECT_FALSE(x.grad().defined());
}

TEST(Checkpoint, ARetryAfterAnError) {
  int runs = 0;
  const Tensor x = random_leaf({3}, 1);
  const Tensor y = checkpoint(
      [&](const Tensor& a) {
        if (++runs == 2) throw Error("out of luck");
        return a.exp().sin();
      },
      x);
  EXPECT_ERROR_TEXT(y.sum().backward(), "out of luck");
  EXPECT_FALSE(autograd::is_recomputing());
  y.sum().backward();
  const Tensor e = x.detach().exp();
  expect_values(x.grad(), values(e.cos() * e), 1e-6);
}

TEST(Checkpoint, TheStateOfTheForwardPass) {
  const Tensor x = random_leaf({3}, 1);
  Tensor y;
  std::thread([&] {
    y = checkpoint(
        [](const Tensor& a) {
          EXPECT_TRUE(GradMode::is_enabled());
          return a.exp().sin();
        },
        x);
  }).join();
  const Tensor loss = y.sum();
  const NoGradGuard off;
  loss.backward();
  EXPECT_TRUE(x.grad().defined());
}

}  // namespace
}  // namespace ramet
