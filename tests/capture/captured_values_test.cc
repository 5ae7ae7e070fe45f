// Operations that read values in an eager step. A capture takes a way without a question, with the
// same bits, or refuses them in their own name.
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "nn/layers/sequence/packed_sequence.h"
#include "nn/layers/sequence/recurrent.h"
#include "tests/capture/support.h"

namespace ramet {
namespace capture_tests {
namespace {

// Three rows: without a zero, with one in the middle, and with two.
Tensor with_zeros(int which) {
  const Tensor x = arange(1, 13).to(kFloat).div(7).view({3, 4});
  if (which >= 1) x.select(1, 2).fill_(0);
  if (which >= 2) x.select(0, 0).narrow(0, 0, 3).fill_(0);
  return x;
}

// f of inputs without, with one and with two zeros, eagerly and by one capture.
void expect_same(const std::function<Tensor(const Tensor&)>& f) {
  for (const bool transposed : {false, true}) {
    const auto input = [&](int which) {
      return transposed ? with_zeros(which).t().contiguous().t() : with_zeros(which);
    };
    Captured step([&](const Tensor& x) { return f(x); });
    for (const int which : {0, 1, 2, 0, 1}) {
      const Tensor x = input(which), want = f(x);
      EXPECT_EQ(bits(step(x)), bits(want)) << which << '\n' << want;
    }
    EXPECT_EQ(step.counters().captures, 1u);
  }
}
Tensor first_order(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  const Tensor leaf = x.detach().clone().requires_grad_(), y = f(leaf);
  return autograd::grad({y}, {leaf}, {arange(1, y.numel() + 1).to(kFloat).view(y.sizes())})[0];
}
Tensor second_order(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  const Tensor leaf = x.detach().clone().requires_grad_(), y = f(leaf);
  const Tensor g = autograd::grad({y.sum()}, {leaf}, {}, true, true)[0];
  return autograd::grad({g.square().sum()}, {leaf})[0];
}

TEST(Values, GradientsOfProductsAskNothing) {
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& t) { return t.prod(); }, [](const Tensor& t) { return t.prod(1); },
           [](const Tensor& t) { return t.prod(0, true); },
           [](const Tensor& t) { return t.cumprod(1); },
           [](const Tensor& t) { return t.cumprod(0); }}) {
    expect_same([&](const Tensor& x) { return first_order(x, f); });
    expect_same([&](const Tensor& x) { return second_order(x, f); });
  }
}

// One zero in the group of (a, b, 0): only its own gradient is not 0, by hand.
TEST(Values, GradientOfAProductWithAZero) {
  Captured step(
      [](const Tensor& x) { return first_order(x, [](const Tensor& t) { return t.prod(); }); });
  EXPECT_EQ(bits(step(tensor({2.f, 3.f, 5.f}))), bits(tensor({15.f, 10.f, 6.f})));
  EXPECT_EQ(bits(step(tensor({2.f, 3.f, 0.f}))), bits(tensor({0.f, 0.f, 6.f})));
  EXPECT_EQ(bits(step(tensor({2.f, 0.f, 0.f}))), bits(tensor({0.f, 0.f, 0.f})));
}

// The plain average of all batches: the counter is a tensor, which replays count on.
TEST(Values, BatchNormWithoutMomentum) {
  for (const Device device : {kHost, Device(kCUDA, 0)}) {
    if (device.is_cuda() && !why_no_gpu().empty()) continue;
    nn::BatchNorm1d norm(nn::BatchNorm1dOptions(3).momentum(std::nullopt)), eager(norm->options);
    norm->to(device), eager->to(device);
    Captured step([&](const Tensor& x) { return norm(norm(x)); });
    double mean = 0;  // of channel 0, over the batches that came in, not those of the second call
    for (int i = 0; i < 4; ++i) {
      const Tensor x = arange(15).to(kFloat).mul(i + 1).view({5, 3}).to(device);
      const Tensor want = eager(eager(x));
      EXPECT_EQ(bits(step(x)), bits(want)) << i;
      EXPECT_EQ(bits(norm->running_mean), bits(eager->running_mean)) << i;
      EXPECT_EQ(bits(norm->running_var), bits(eager->running_var)) << i;
      EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 2 * i + 2);
      mean += 6.0 * (i + 1);
    }
    // The second call's batches have the mean 0.
    EXPECT_NEAR(norm->running_mean.to(kHost)[0].item<double>(), mean / 8, 1e-5);
    EXPECT_EQ(step.counters().captures, 1u);
    EXPECT_EQ(step.counters().replays, 3u);
  }
}

TEST(Values, WhatIsRefusedIsRefusedInItsName) {
  const Tensor x = arange(12).to(kFloat).view({4, 3});
  const auto refused = [&](const char* op, const Use& f) { expect_refused(op, x, f), f(x); };
  namespace rnn = nn::utils::rnn;
  nn::GRU gru(1, 2);
  const auto packed = rnn::pack_padded_sequence(x.unsqueeze(2), tensor({4, 3, 1}));
  refused("pack_padded_sequence", [&](const Tensor& t) {
    rnn::pack_padded_sequence(t.unsqueeze(2), tensor({4, 3, 1}));
  });
  refused("pack_sequence", [](const Tensor& t) { rnn::pack_sequence({t}); });
  refused("pad_packed_sequence", [&](const Tensor&) { rnn::pad_packed_sequence(packed); });
  refused("GRU", [&](const Tensor&) { gru->forward_with_packed_input(packed); });
  refused("linspace", [](const Tensor& t) { linspace(t[0][0], t[0][1], 3); });
  refused("logspace", [](const Tensor& t) { logspace(t[0][0], 1, 3); });
  refused("narrow", [](const Tensor& t) { t.narrow(0, scalar_tensor(1, kLong), 2); });
  refused("tensor_split", [](const Tensor& t) { tensor_split(t, tensor({1, 2}), 0); });
  refused("bincount", [](const Tensor& t) { t.to(kLong).view({-1}).bincount({}, 2); });
  refused("histc", [](const Tensor& t) { histc(t, 4); });
  refused("index", [](const Tensor& t) { t.index({scalar_tensor(1, kLong)}); });
  refused("index_put_", [](const Tensor& t) { t.clone().index_put_({t > 1}, 0); });
  refused("masked_select", [](const Tensor& t) { t.masked_select(t > 1); });
  refused("masked_scatter", [](const Tensor& t) { t.masked_scatter(t > 1, t); });
  refused("argwhere", [](const Tensor& t) { argwhere(t); });
  refused("where", [](const Tensor& t) { where(t > 1); });
  refused("nonzero_numpy", [](const Tensor& t) { t.nonzero_numpy(); });
  refused("_unique2", [](const Tensor& t) { _unique2(t); });
  refused("allclose", [](const Tensor& t) { (void)t.allclose(t); });
  refused("randint_like", [](const Tensor& t) { randint_like(t, scalar_tensor(3, kLong)); });
  refused("repeat_interleave", [](const Tensor& t) {
    t.repeat_interleave(tensor({1, 2, 0, 1}), 0);
  });
  refused("logdet", [](const Tensor& t) { logdet(t.narrow(0, 0, 3).add(eye(3).mul(20))); });
  refused("pinverse", [](const Tensor& t) { pinverse(t); });
  refused("nuclear_norm", [](const Tensor& t) { nuclear_norm(t); });
  refused("linalg_matrix_rank", [](const Tensor& t) { linalg_matrix_rank(t); });
  refused("DetectAnomalyGuard", [](const Tensor& t) {
    const autograd::DetectAnomalyGuard on;
    t.clone().requires_grad_().sum().backward();
  });
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
