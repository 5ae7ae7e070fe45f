// What layers cut over ranks do on any device, against the whole ones, in double.
#pragma once
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/embedding.h"
#include "parallel/distributed/shard/tensor_parallel.h"
#include "tests/parallel/distributed/groups.h"

namespace ramet::distributed {

/// The same on every rank, made on the host.
inline Tensor normal(IntArrayRef sizes, uint64_t seed, Device device) {
  const Device host(kCPU, 0);
  return randn(sizes, Generator(host, seed), TensorOptions(kDouble).device(host)).to(device);
}

inline nn::Linear linear_of(int64_t in, int64_t out, bool bias, uint64_t seed, Device device) {
  nn::Linear l(nn::LinearOptions(in, out).bias(bias));
  l->to(device, kDouble);
  const NoGradGuard off;
  l->weight.copy_(normal({out, in}, seed, device));
  if (bias) l->bias.copy_(normal({out}, seed + 1, device));
  return l;
}

/// This rank's part of dimension d.
inline Tensor part(const Tensor& t, const Group& g, int64_t d) {
  const int64_t n = t.size(d) / g->size();
  return t.slice(d, n * g->rank(), n * (g->rank() + 1));
}

inline void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_TRUE(a.defined() && b.defined());
  ASSERT_EQ(a.sizes(), b.sizes());
  ASSERT_EQ(a.device(), b.device());
  EXPECT_TRUE(a.detach().allclose(b.detach(), 1e-12, 1e-12)) << a << b;
}

inline void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.device(), b.device());
  EXPECT_TRUE(same_bits(a, b)) << a << b;
}

/// Of two ranks.
inline void check_functions(const Group& g, Device device) {
  const auto mine = static_cast<uint64_t>(g->rank());
  const Tensor x0 = normal({3, 4}, 10, device), x1 = normal({3, 4}, 11, device);
  const Tensor v0 = normal({3, 4}, 20, device), v1 = normal({3, 4}, 21, device);
  const Tensor x = normal({3, 4}, 10 + mine, device).requires_grad_();
  const Tensor v = normal({3, 4}, 20 + mine, device);
  const auto grad_of = [&](const Tensor& y, const Tensor& w) {
    return autograd::grad({y}, {x}, {w})[0];
  };
  expect_same(copy_to_group(x, g).detach(), x.detach());
  expect_same(grad_of(copy_to_group(x, g), v), v0 + v1);
  expect_same(reduce_from_group(x, g).detach(), x0 + x1);
  expect_same(grad_of(reduce_from_group(x, g), v), v);
  for (int64_t d : {int64_t{0}, int64_t{1}, int64_t{-1}}) {
    const Tensor all = gather_from_group(x, g, d);
    expect_same(all.detach(), cat({x0, x1}, d));
    const Tensor w = normal(all.sizes(), 30, device);
    expect_same(grad_of(all, w), part(w, g, d));
  }
  expect_same(scatter_to_group(x, g).detach(), part(x.detach(), g, 1));
  expect_same(grad_of(scatter_to_group(x, g), v.slice(1, 0, 2)),
              cat({v0.slice(1, 0, 2), v1.slice(1, 0, 2)}, 1));
  EXPECT_ERROR_TEXT(scatter_to_group(x, g, 0), "expected a multiple of the 2 ranks");
  // The gradient of a gradient. Of one replicated x, the sum over the two ranks is 2 x^2: its
  // gradient is 4 x, and the gradient of that 4.
  const Tensor y = reduce_from_group(copy_to_group(x, g).pow(2), g);
  const Tensor first = autograd::grad({y.sum()}, {x}, {}, std::nullopt, true)[0];
  EXPECT_TRUE(first.requires_grad());
  expect_close(autograd::grad({first.sum()}, {x})[0],
               full({3, 4}, 4.0, TensorOptions(kDouble).device(device)));
}

inline void compare_linears(const Group& g, bool bias, Device device) {
  const nn::Linear up = linear_of(8, 12, bias, 1, device), down = linear_of(12, 8, bias, 5, device);
  ColumnParallelLinear column(up, g), gathered(up, g, true);
  RowParallelLinear row(down, g), cut(down, g, false);
  EXPECT_EQ(column->weight.device(), device);
  const Tensor data = normal({2, 3, 8}, 9, device), weights = normal({2, 3, 8}, 11, device);
  const Tensor x = data.clone().requires_grad_(), z = data.clone().requires_grad_();
  const Tensor want = down(up(x).tanh());
  (want * weights).sum().backward();
  for (bool in_pieces : {false, true}) {
    const auto& first = in_pieces ? column : gathered;
    const auto& second = in_pieces ? row : cut;
    z.mutable_grad() = Tensor();
    const Tensor got = second(first(z).tanh());
    expect_close(got, want);
    (got * weights).sum().backward();
    expect_close(z.grad(), x.grad());
    expect_close(first->weight.grad(), part(up->weight.grad(), g, 0));
    expect_close(second->weight.grad(), part(down->weight.grad(), g, 1));
    if (!bias) {
      EXPECT_FALSE(first->bias.defined() || second->bias.defined());
      continue;
    }
    expect_close(first->bias.grad(), part(up->bias.grad(), g, 0));
    expect_close(second->bias.grad(), down->bias.grad());
  }
}

inline void compare_embeddings(const Group& g, Device device) {
  nn::Embedding whole(nn::EmbeddingOptions(12, 5).padding_idx(4));
  whole->to(device, kDouble);
  {
    const NoGradGuard off;
    whole->weight.copy_(normal({12, 5}, 3, device));
  }
  ParallelEmbedding cut(whole, g);
  const auto longs = TensorOptions(kLong).device(device);
  const Tensor ids =
      tensor({0, 4, 11, 5, 6, 6, 3, 4}, TensorOptions(kLong)).view({2, 4}).to(device);
  const Tensor weights = normal({2, 4, 5}, 8, device);
  const Tensor a = whole(ids), b = cut(ids);
  expect_same(a.detach(), b.detach());
  (a * weights).sum().backward();
  (b * weights).sum().backward();
  expect_close(cut->weight.grad(), part(whole->weight.grad(), g, 0));
  EXPECT_ERROR_TEXT(cut(full({1}, 12, longs)), "got 12, expected 0 to 11");
  EXPECT_ERROR_TEXT(cut(full({1}, -1, longs)), "got -1, expected 0 to 11");
  EXPECT_EQ(cut(zeros({0, 2}, longs)).sizes(), IntArrayRef({0, 2, 5}));
}

/// Two layers cut over the ranks of `tp`.
struct CutBlockImpl : nn::Module {
  CutBlockImpl(const nn::Linear& a, const nn::Linear& b, const Group& tp) {
    up = register_module("up", ColumnParallelLinear(a, tp));
    down = register_module("down", RowParallelLinear(b, tp));
  }
  Tensor forward(const Tensor& x) { return down(up(x).tanh()); }
  ColumnParallelLinear up{nullptr};
  RowParallelLinear down{nullptr};
};

}  // namespace ramet::distributed
