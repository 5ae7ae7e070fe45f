// Random numbers in parts that a backward computes again: the forward's.
#include <gtest/gtest.h>

#include <memory>

#include "autograd/autograd.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/cloneable.h"
#include "parallel/apply/data_parallel.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/ddp/recomputed.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

// Dropout in parts that are computed again, one of them in another.
struct DroppingImpl : nn::Cloneable<DroppingImpl> {
  explicit DroppingImpl(How how = How::plain) : how(how) { DroppingImpl::reset(); }
  void reset() override {
    a = register_module("a", nn::Linear(6, 8));
    b = register_module("b", nn::Linear(8, 8));
    c = register_module("c", nn::Linear(8, 2));
    for (const nn::Linear& l : {a, b, c})
      for (const Tensor& p : l->parameters()) {
        const NoGradGuard off;
        p.fill_(0.25);
      }
    drop = register_module("drop", nn::Dropout(0.5));
  }
  Tensor forward(const Tensor& x) {
    const Piece inner{[this](const Tensor& t) { return drop(b(t)); }, b->parameters()};
    const Piece outer{
        [this, inner](const Tensor& t) { return drop(part(how, inner, drop(t)) + drop(t)); },
        b->parameters()};
    return c(drop(part(how, outer, drop(a(x)))));
  }
  How how;
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  nn::Dropout drop{nullptr};
};
RAMET_MODULE(Dropping);

using AllBits = std::vector<Tensor>;
// Gradients of three steps, the first one's twice, and what the generator draws then.
template <class Wrap> AllBits drawn(How how, const Wrap& wrap) {
  manual_seed(11);
  Dropping net(how);
  const auto ddp = wrap(net);
  AllBits out;
  for (int step = 0; step < 3; ++step) {
    const Generator of_step(Device(kCPU, 0), static_cast<uint64_t>(step));
    const Tensor y = (*ddp)(randn({8, 6}, of_step)).pow(2).sum();
    if (step == 0) y.backward({}, /*retain_graph=*/true);
    y.backward();
    for (const Tensor& p : net->parameters()) out.push_back(p.grad().clone());
  }
  out.push_back(rand({4}));
  return out;
}
void expect_same_bits(const AllBits& a, const AllBits& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << i;
}

TEST(NestedRandom, OfReplicas) {
  const auto replicas = [](Dropping& net) {
    return std::make_unique<nn::parallel::DataParallel<Dropping>>(
        net, nn::parallel::DataParallelOptions(std::vector<Device>{"cpu:0", "cpu:1"}));
  };
  const auto plain = drawn(How::plain, replicas);
  for (const How how : kHows) expect_same_bits(drawn(how, replicas), plain);
}

TEST(NestedRandom, OfOneReplicaOfSeveralProcesses) {
  with_groups(1, seconds(60), [](const Group& g) {
    const auto alone = [&g](Dropping& net) {
      return std::make_unique<DistributedDataParallel<Dropping>>(net, g);
    };
    const auto plain = drawn(How::plain, alone);
    for (const How how : kHows) expect_same_bits(drawn(how, alone), plain);
  });
}

// A Function that draws in its backward alone gets new numbers each time.
struct Noise : autograd::Function<Noise> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x * 1; }
  static tensor_list backward(autograd::AutogradContext*, tensor_list g) {
    return {g[0] + rand(g[0].sizes())};
  }
};
struct NoisyImpl : nn::Cloneable<NoisyImpl> {
  NoisyImpl() { NoisyImpl::reset(); }
  void reset() override { drop = register_module("drop", nn::Dropout(0.5)); }
  Tensor forward(const Tensor& x) { return Noise::apply(drop(x)); }
  nn::Dropout drop{nullptr};
};
RAMET_MODULE(Noisy);

TEST(NestedRandom, WhatABackwardDrawsItself) {
  Noisy net;
  nn::parallel::DataParallelOptions o(std::vector<Device>{"cpu:0"});
  nn::parallel::DataParallel<Noisy> dp(net, o);
  const Tensor x = ones({2, 64}).set_requires_grad(true);
  const Tensor y = dp(x).sum();
  const Tensor one = autograd::grad({y}, {x}, {}, /*retain_graph=*/true)[0],
               two = autograd::grad({y}, {x})[0];
  EXPECT_FALSE(one.equal(two));
}

}  // namespace
}  // namespace ramet::distributed
