// Layers cut over ranks with an emulated GPU each, against the whole ones on one GPU, in double.
#include "parallel/distributed/tensor_parallel.h"

#include "autograd/autograd.h"
#include "nn/embedding.h"
#include "parallel/distributed/fully_shard.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"

namespace ramet::testing {
namespace {

using distributed::ColumnParallelLinear;
using distributed::copy_to_group;
using distributed::full_state_dict;
using distributed::fully_shard;
using distributed::gather_from_group;
using distributed::init_device_mesh;
using distributed::ParallelEmbedding;
using distributed::reduce_from_group;
using distributed::RowParallelLinear;
using distributed::scatter_to_group;

// The same on every rank, made on the host.
Tensor normal(IntArrayRef sizes, uint64_t seed, Device device) {
  return randn(sizes, Generator(kHost, seed), TensorOptions(kDouble).device(kHost)).to(device);
}

nn::Linear linear_of(int64_t in, int64_t out, bool bias, uint64_t seed, Device device) {
  nn::Linear l(nn::LinearOptions(in, out).bias(bias));
  l->to(device, kDouble);
  const NoGradGuard off;
  l->weight.copy_(normal({out, in}, seed, device));
  if (bias) l->bias.copy_(normal({out}, seed + 1, device));
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
  ASSERT_EQ(a.device(), b.device());
  EXPECT_TRUE(a.detach().allclose(b.detach(), 1e-12, 1e-12)) << a << b;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.device() == b.device() && distributed::same_bits(a, b);
}

TEST(TensorParallelOnGpus, Functions) {
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : all_ways())
    with_gpu_groups(way, 2, seconds(60), [](const Group& g) {
      const Device device = gpu(g->rank());
      const auto mine = static_cast<uint64_t>(g->rank());
      const Tensor x0 = normal({3, 4}, 10, device), x1 = normal({3, 4}, 11, device);
      const Tensor v0 = normal({3, 4}, 20, device), v1 = normal({3, 4}, 21, device);
      const Tensor x = normal({3, 4}, 10 + mine, device).requires_grad_();
      const Tensor v = normal({3, 4}, 20 + mine, device);
      const auto grad_of = [&](const Tensor& y, const Tensor& w) {
        return autograd::grad({y}, {x}, {w})[0];
      };
      EXPECT_TRUE(same_bits(copy_to_group(x, g).detach(), x.detach()));
      EXPECT_TRUE(same_bits(grad_of(copy_to_group(x, g), v), v0 + v1));
      EXPECT_TRUE(same_bits(reduce_from_group(x, g).detach(), x0 + x1));
      EXPECT_TRUE(same_bits(grad_of(reduce_from_group(x, g), v), v));
      for (int64_t d : {int64_t{0}, int64_t{1}}) {
        const Tensor all = gather_from_group(x, g, d);
        EXPECT_TRUE(same_bits(all.detach(), cat({x0, x1}, d)));
        const Tensor w = normal(all.sizes(), 30, device);
        EXPECT_TRUE(same_bits(grad_of(all, w), part(w, g, d)));
      }
      EXPECT_TRUE(same_bits(scatter_to_group(x, g).detach(), part(x.detach(), g, 1)));
      EXPECT_TRUE(same_bits(grad_of(scatter_to_group(x, g), v.slice(1, 0, 2)),
                            cat({v0.slice(1, 0, 2), v1.slice(1, 0, 2)}, 1)));
      // The gradient of a gradient. Of one replicated x, the sum over the two ranks is 2 x^2: its
      // gradient is 4 x, and the gradient of that 4.
      const Tensor y = reduce_from_group(copy_to_group(x, g).pow(2), g);
      const Tensor first = autograd::grad({y.sum()}, {x}, {}, std::nullopt, true)[0];
      expect_close(autograd::grad({first.sum()}, {x})[0],
                   full({3, 4}, 4.0, TensorOptions(kDouble).device(device)));
    });
}

void compare_linears(const Group& g, bool bias) {
  const Device device = gpu(g->rank());
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
    if (!bias) continue;
    expect_close(first->bias.grad(), part(up->bias.grad(), g, 0));
    expect_close(second->bias.grad(), down->bias.grad());
  }
}

TEST(TensorParallelOnGpus, Linear) {
  const Gpus gpus(rank_gpus(4));
  for (const Way& way : {kStagedThreads, kNcclThreads, kNcclGloo})
    for (int n : {1, 2, 4})
      for (bool bias : {true, false})
        with_gpu_groups(way, n, seconds(60), [bias](const Group& g) { compare_linears(g, bias); });
}

void compare_embeddings(const Group& g) {
  const Device device = gpu(g->rank());
  nn::Embedding whole(nn::EmbeddingOptions(12, 5).padding_idx(4));
  whole->to(device, kDouble);
  {
    const NoGradGuard off;
    whole->weight.copy_(normal({12, 5}, 3, device));
  }
  ParallelEmbedding cut(whole, g);
  const auto long_on_gpu = TensorOptions(kLong).device(device);
  const Tensor ids =
      tensor({0, 4, 11, 5, 6, 6, 3, 4}, TensorOptions(kLong)).view({2, 4}).to(device);
  const Tensor weights = normal({2, 4, 5}, 8, device);
  const Tensor a = whole(ids), b = cut(ids);
  EXPECT_TRUE(same_bits(a.detach(), b.detach()));
  (a * weights).sum().backward();
  (b * weights).sum().backward();
  expect_close(cut->weight.grad(), part(whole->weight.grad(), g, 0));
  expect_part(error_of([&] { cut(full({1}, 12, long_on_gpu)); }), "got 12, expected 0 to 11");
  expect_part(error_of([&] { cut(full({1}, -1, long_on_gpu)); }), "got -1, expected 0 to 11");
  EXPECT_EQ(cut(zeros({0, 2}, long_on_gpu)).sizes(), IntArrayRef({0, 2, 5}));
}

TEST(TensorParallelOnGpus, Embedding) {
  const Gpus gpus(rank_gpus(3));
  for (const Way& way : {kStagedThreads, kNcclThreads, kNcclGloo})
    for (int n : {1, 2, 3}) with_gpu_groups(way, n, seconds(60), compare_embeddings);
}

// Cut over one dimension of a mesh, sharded over the other: the whole parameters after some steps.
Values trained_block(const Way& way, bool on_gpus) {
  struct BlockImpl : nn::Module {
    BlockImpl(const nn::Linear& a, const nn::Linear& b, const Group& tp) {
      up = register_module("up", ColumnParallelLinear(a, tp));
      down = register_module("down", RowParallelLinear(b, tp));
    }
    Tensor forward(const Tensor& x) { return down(up(x).tanh()); }
    ColumnParallelLinear up{nullptr};
    RowParallelLinear down{nullptr};
  };
  Values result;
  with_gpu_groups(way, 4, seconds(60), [&](const Group& g) {
    const Device device = on_gpus ? gpu(g->rank()) : kHost;
    const auto mesh = init_device_mesh(g, {2, 2}, {"shard", "tp"});
    const auto net = std::make_shared<BlockImpl>(
        linear_of(8, 12, true, 1, device), linear_of(12, 8, true, 5, device), mesh.group("tp"));
    fully_shard(net, mesh["shard"]);
    optim::SGD sgd(net->parameters(), optim::SGDOptions(0.01).momentum(0.9));
    Values norms;
    for (int step = 0; step < 4; ++step) {
      const auto seed = static_cast<uint64_t>(100 + 10 * step + mesh.coordinate("shard"));
      sgd.zero_grad();
      nn::call(*net, normal({4, 8}, seed, device)).pow(2).mean().backward();
      norms.push_back(distributed::clip_grad_norm_(*net, 0.5));
      sgd.step();
    }
    const auto state = full_state_dict(*net);
    EXPECT_EQ(state["down.weight"].sizes(), IntArrayRef({8, 12}));
    if (g->rank() == 0) {
      result = norms;
      for (const auto& item : state)
        for (double v : all_values({item.value()})) result.push_back(v);
    }
    g->barrier().wait();
  });
  return result;
}
TEST(TensorParallelOnGpus, InsideShardedModules) {
  const Gpus gpus(rank_gpus(4));
  const Values host = trained_block(kStagedThreads, false);
  const Values staged = trained_block(kStagedThreads, true);
  EXPECT_LE(difference(host, staged), 1e-12);
  EXPECT_EQ(trained_block(kNcclThreads, true), staged);
}

// In whatever order streams run.
TEST(TensorParallelOnGpus, AnyOrderOfStreams) {
  for (const emulated::StreamMode mode :
       {emulated::StreamMode::Eager, emulated::StreamMode::Lazy, emulated::StreamMode::Random}) {
    const Gpus gpus(rank_gpus(2, mode));
    for (const Way& way : {kStagedThreads, kNcclThreads})
      with_gpu_groups(way, 2, seconds(60), [](const Group& g) {
        compare_linears(g, true);
        compare_embeddings(g);
      });
  }
}

}  // namespace
}  // namespace ramet::testing
