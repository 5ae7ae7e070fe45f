// Layers cut over ranks, against the whole ones, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "autograd/autograd.h"
#include "nn/activation.h"
#include "nn/optim/sgd.h"
#include "nn/sequential.h"
#include "parallel/distributed/tensor_parallel.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/sharded_nets.h"

namespace ramet::distributed {
namespace {

Tensor numbers(IntArrayRef sizes, uint64_t seed) {
  return randn(sizes, Generator(Device(kCPU, 0), seed), TensorOptions(kDouble));
}

nn::Linear linear_of(int64_t in, int64_t out, bool bias, uint64_t seed) {
  nn::Linear l(nn::LinearOptions(in, out).bias(bias));
  l->to(kDouble);
  const NoGradGuard off;
  l->weight.copy_(numbers({out, in}, seed));
  if (bias) l->bias.copy_(numbers({out}, seed + 1));
  return l;
}

// This rank's part of dimension d.
Tensor part(const Tensor& t, const Group& g, int64_t d) {
  const int64_t n = t.size(d) / g->size();
  return t.slice(d, n * g->rank(), n * (g->rank() + 1));
}

void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_TRUE(a.defined() && b.defined());
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_TRUE(a.detach().allclose(b.detach(), 1e-12, 1e-12)) << a << b;
}

TEST(TensorParallel, Functions) {
  with_groups_of(2, [](const Group& g) {
    const Tensor x = numbers({3, 4}, 10 + static_cast<uint64_t>(g->rank())).requires_grad_();
    const Tensor x0 = numbers({3, 4}, 10), x1 = numbers({3, 4}, 11);
    const auto grad_of = [&](const Tensor& y, const Tensor& v) {
      return autograd::grad({y}, {x}, {v})[0];
    };
    const Tensor v = numbers({3, 4}, 20 + static_cast<uint64_t>(g->rank()));
    const Tensor v0 = numbers({3, 4}, 20), v1 = numbers({3, 4}, 21);
    EXPECT_TRUE(same_bits(copy_to_group(x, g).detach(), x.detach()));
    EXPECT_TRUE(same_bits(grad_of(copy_to_group(x, g), v), v0 + v1));
    EXPECT_TRUE(same_bits(reduce_from_group(x, g).detach(), x0 + x1));
    EXPECT_TRUE(same_bits(grad_of(reduce_from_group(x, g), v), v));
    for (int64_t d : {int64_t{0}, int64_t{1}, int64_t{-1}}) {
      const Tensor all = gather_from_group(x, g, d);
      EXPECT_TRUE(same_bits(all.detach(), cat({x0, x1}, d)));
      const Tensor w = numbers(all.sizes(), 30);
      EXPECT_TRUE(same_bits(grad_of(all, w), part(w, g, d)));
    }
    EXPECT_TRUE(same_bits(scatter_to_group(x, g).detach(), part(x.detach(), g, 1)));
    EXPECT_TRUE(same_bits(grad_of(scatter_to_group(x, g), v.slice(1, 0, 2)),
                          cat({v0.slice(1, 0, 2), v1.slice(1, 0, 2)}, 1)));
    expect_part(error_of([&] { scatter_to_group(x, g, 0); }), "expected a multiple of the 2 ranks");
    // The gradient of a gradient. Of one replicated x, the sum over the two ranks is 2 x^2: its
    // gradient is 4 x, and the gradient of that 4.
    const Tensor y = reduce_from_group(copy_to_group(x, g).pow(2), g);
    const Tensor first = autograd::grad({y.sum()}, {x}, {}, std::nullopt, true)[0];
    EXPECT_TRUE(first.requires_grad());
    expect_close(autograd::grad({first.sum()}, {x})[0], full({3, 4}, 4.0, kDouble));
  });
}

TEST(TensorParallel, Linear) {
  for (int n : {1, 2, 4})
    for (bool bias : {true, false})
      with_groups_of(n, [bias](const Group& g) {
        const nn::Linear up = linear_of(8, 12, bias, 1), down = linear_of(12, 8, bias, 5);
        ColumnParallelLinear column(up, g), gathered(up, g, true);
        RowParallelLinear row(down, g), cut(down, g, false);
        const Tensor data = numbers({2, 3, 8}, 9), weights = numbers({2, 3, 8}, 11);
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
      });
}

TEST(TensorParallel, Embedding) {
  for (int n : {1, 2, 3})
    with_groups_of(n, [](const Group& g) {
      nn::Embedding whole(nn::EmbeddingOptions(12, 5).padding_idx(4));
      whole->to(kDouble);
      {
        const NoGradGuard off;
        whole->weight.copy_(numbers({12, 5}, 3));
      }
      ParallelEmbedding cut(whole, g);
      const Tensor ids = tensor({0, 4, 11, 5, 6, 6, 3, 4}, TensorOptions(kLong)).view({2, 4});
      const Tensor weights = numbers({2, 4, 5}, 8);
      const Tensor a = whole(ids), b = cut(ids);
      EXPECT_TRUE(same_bits(a.detach(), b.detach()));
      (a * weights).sum().backward();
      (b * weights).sum().backward();
      expect_close(cut->weight.grad(), part(whole->weight.grad(), g, 0));
      expect_part(error_of([&] { cut(full({1}, 12, kLong)); }), "got 12, expected 0 to 11");
      expect_part(error_of([&] { cut(full({1}, -1, kLong)); }), "got -1, expected 0 to 11");
      EXPECT_EQ(cut(zeros({0, 2}, TensorOptions(kLong))).sizes(), IntArrayRef({0, 2, 5}));
    });
}

TEST(TensorParallel, FrozenLayersAndRefusals) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear whole(4, 6);
    whole->weight.set_requires_grad(false);
    ColumnParallelLinear column(whole, g);
    EXPECT_FALSE(column->weight.requires_grad());
    EXPECT_TRUE(column->bias.requires_grad());
    RowParallelLinear row(whole, g);
    EXPECT_FALSE(row->weight.requires_grad());
    expect_part(error_of([&] { ColumnParallelLinear(nn::Linear(4, 5), g); }), "float32[5, 4]");
    expect_part(error_of([&] { RowParallelLinear(nn::Linear(5, 4), g); }), "float32[4, 5]");
    expect_part(error_of([&] {
                  ParallelEmbedding(
                      nn::Embedding(nn::EmbeddingOptions(4, 2).scale_grad_by_freq(true)), g);
                }),
                "scale_grad_by_freq");
    std::ostringstream text;
    text << column << row;
    EXPECT_EQ(text.str(),
              "ramet::distributed::ColumnParallelLinear(in_features=4, out_features=6, bias=true, "
              "ranks=2)ramet::distributed::RowParallelLinear(in_features=4, out_features=6, "
              "bias=true, ranks=2)");
  });
}

// Cut over one dimension of a mesh, sharded over the other.
TEST(TensorParallel, InsideShardedModules) {
  struct BlockImpl : nn::Module {
    BlockImpl(const nn::Linear& a, const nn::Linear& b, const Group& tp) {
      up = register_module("up", ColumnParallelLinear(a, tp));
      down = register_module("down", RowParallelLinear(b, tp));
    }
    Tensor forward(const Tensor& x) { return down(up(x).tanh()); }
    ColumnParallelLinear up{nullptr};
    RowParallelLinear down{nullptr};
  };
  with_groups_of(4, [](const Group& g) {
    const DeviceMesh mesh = init_device_mesh(g, {2, 2}, {"shard", "tp"});
    nn::Linear a = linear_of(8, 12, true, 1), b = linear_of(12, 8, true, 5);
    const auto net = std::make_shared<BlockImpl>(a, b, mesh.group("tp"));
    fully_shard(net, mesh["shard"]);
    nn::Sequential whole(a, nn::Tanh(), b);
    DistributedDataParallel<nn::Sequential> ddp(whole, mesh.group("shard"));
    optim::SGD x(whole->parameters(), optim::SGDOptions(0.01).momentum(0.9)),
        y(net->parameters(), optim::SGDOptions(0.01).momentum(0.9));
    for (int step = 0; step < 5; ++step) {
      const Tensor data =
          numbers({4, 8}, static_cast<uint64_t>(100 + 10 * step + mesh.coordinate("shard")));
      x.zero_grad();
      y.zero_grad();
      ddp(data).pow(2).mean().backward();
      nn::call(*net, data).pow(2).mean().backward();
      const double expected = nn::utils::clip_grad_norm_(whole->parameters(), 0.5),
                   norm = clip_grad_norm_(*net, 0.5);
      EXPECT_GT(expected, 0.5);
      EXPECT_NEAR(norm, expected, 1e-10 * expected);
      x.step();
      y.step();
    }
    const auto state = full_state_dict(*net);
    for (size_t i = 0; i < state.size(); ++i)
      expect_close(state[i].value(), whole->named_parameters()[i].value());
    EXPECT_EQ(state.keys(),
              (std::vector<std::string>{"up.weight", "up.bias", "down.weight", "down.bias"}));
    const auto parts = tensor_parts(*net);
    EXPECT_EQ(parts[0].sizes, (std::vector<int64_t>{12, 8}));
    EXPECT_EQ(parts[0].cuts.size(), 2u);
    EXPECT_EQ(parts[2].cuts[0].outer, 8);
    EXPECT_EQ(parts[2].cuts[0].length, 6);
    EXPECT_EQ(parts[3].cuts.size(), 1u);
    // Back in, from other values.
    auto other = state;
    for (auto& item : other) item.value() = item.value() * 2;
    load_full_state_dict(*net, other);
    const auto loaded = full_state_dict(*net);
    for (const auto& item : other) EXPECT_TRUE(same_bits(loaded[item.key()], item.value()));
  });
}

}  // namespace
}  // namespace ramet::distributed
