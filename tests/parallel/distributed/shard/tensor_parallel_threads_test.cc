// Layers cut over ranks, against the whole ones, in double.
#include <gtest/gtest.h>

#include <sstream>

#include "nn/layers/basic/activation.h"
#include "nn/module/sequential.h"
#include "nn/optim/sgd.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"
#include "tests/parallel/distributed/shard/tensor_parallel_cases.h"

namespace ramet::distributed {
namespace {

const Device kHere(kCPU, 0);

TEST(TensorParallel, Functions) {
  with_groups_of(2, [](const Group& g) { check_functions(g, kHere); });
}

TEST(TensorParallel, Linear) {
  for (int n : {1, 2, 4})
    for (bool bias : {true, false})
      with_groups_of(n, [bias](const Group& g) { compare_linears(g, bias, kHere); });
}

TEST(TensorParallel, Embedding) {
  for (int n : {1, 2, 3}) with_groups_of(n, [](const Group& g) { compare_embeddings(g, kHere); });
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
    EXPECT_ERROR_TEXT(ColumnParallelLinear(nn::Linear(4, 5), g), "float32[5, 4]");
    EXPECT_ERROR_TEXT(RowParallelLinear(nn::Linear(5, 4), g), "float32[4, 5]");
    nn::Linear branched(4, 6);
    branched->add_lora(nn::LoRAOptions(2, 1));
    EXPECT_ERROR_TEXT(ColumnParallelLinear(branched, g), "expected one without a LoRA branch");
    EXPECT_ERROR_TEXT(RowParallelLinear(branched, g), "expected one without a LoRA branch");
    EXPECT_ERROR_TEXT(
        ParallelEmbedding(nn::Embedding(nn::EmbeddingOptions(4, 2).scale_grad_by_freq(true)), g),
        "scale_grad_by_freq");
    std::ostringstream text;
    text << column << row;
    EXPECT_EQ(text.str(),
              "ramet::distributed::ColumnParallelLinear(in_features=4, out_features=6, bias=true, "
              "ranks=2)ramet::distributed::RowParallelLinear(in_features=4, out_features=6, "
              "bias=true, ranks=2)");
  });
}

// Seeds that differ from rank to rank.
TEST(TensorParallel, IsMadeOfRankZerosLayer) {
  with_groups_of(2, [](const Group& g) {
    const auto filled = [](auto layer, int rank) {
      const NoGradGuard off;
      for (const Tensor& p : layer->parameters())
        p.copy_(arange(p.numel()).to(kFloat).view(p.sizes()).add(rank).sin());
      return layer;
    };
    nn::Linear first = filled(nn::Linear(4, 6), 0), mine = filled(nn::Linear(4, 6), g->rank());
    nn::Embedding words = filled(nn::Embedding(6, 3), g->rank());
    const Tensor x = arange(8).to(kFloat).view({2, 4}), y = first->forward(x), ids = arange(6);
    EXPECT_TRUE(ColumnParallelLinear(mine, g, true)->forward(x).allclose(y));
    EXPECT_TRUE(RowParallelLinear(mine, g, false)->forward(x).allclose(y));
    EXPECT_TRUE(ParallelEmbedding(words, g)->forward(ids).equal(
        filled(nn::Embedding(6, 3), 0)->forward(ids)));
  });
}

// Cut over one dimension of a mesh, sharded over the other.
TEST(TensorParallel, InsideShardedModules) {
  with_groups_of(4, [](const Group& g) {
    const DeviceMesh mesh = init_device_mesh(g, {2, 2}, {"shard", "tp"});
    nn::Linear a = linear_of(8, 12, true, 1, kHere), b = linear_of(12, 8, true, 5, kHere);
    const auto net = std::make_shared<CutBlockImpl>(a, b, mesh.group("tp"));
    fully_shard(net, mesh["shard"]);
    nn::Sequential whole(a, nn::Tanh(), b);
    DistributedDataParallel<nn::Sequential> ddp(whole, mesh.group("shard"));
    optim::SGD x(whole->parameters(), optim::SGDOptions(0.01).momentum(0.9)),
        y(net->parameters(), optim::SGDOptions(0.01).momentum(0.9));
    for (int step = 0; step < 5; ++step) {
      const Tensor data =
          normal({4, 8}, static_cast<uint64_t>(100 + 10 * step + mesh.coordinate("shard")), kHere);
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
