// fully_shard with ranks as threads: training, gradients, what is in memory when.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograd/autograd.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/shard/shard_layout_internal.h"
#include "runtime/devices/devices.h"
#include "runtime/memory/allocator.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::distributed {
namespace {

TEST(ShardLayout, PiecesAreEqualAndPartsCoverEachTensorOnce) {
  for (int ranks : {1, 2, 3, 4, 7})
    for (const auto& numels : std::vector<std::vector<int64_t>>{
             {1}, {0, 5}, {1000, 3, 0, 17, 64}, {16, 16, 16}, {4096, 1, 4096, 1}, {}}) {
      const detail::ShardLayout layout(numels, 4, ranks);
      EXPECT_EQ(layout.total(), layout.piece() * ranks);
      EXPECT_EQ(layout.piece() * 4 % 64, 0);
      int64_t all = 0;
      for (size_t i = 0; i < numels.size(); ++i) {
        int64_t next = 0;
        for (int r = 0; r < ranks; ++r) {
          const auto part = layout.part(i, r);
          if (part.length == 0) continue;
          EXPECT_EQ(part.begin, next);
          next += part.length;
          const int64_t place = layout.place(i, r);
          EXPECT_EQ(place * 4 % 64, 0);
          EXPECT_GE(place, 0);
          EXPECT_LE(place + part.length, layout.piece());
        }
        EXPECT_EQ(next, numels[i]);
        all += (numels[i] * 4 + 63) / 64 * 16;
      }
      // No rank has more than its share and one line of a cache.
      EXPECT_LE(layout.piece(), (all + ranks - 1) / ranks + 16);
    }
}

template <class Optimizer> Optimizer optimizer_of(std::vector<Tensor> parameters);
template <> optim::SGD optimizer_of(std::vector<Tensor> parameters) {
  return optim::SGD(std::move(parameters),
                    optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.01));
}
template <> optim::AdamW optimizer_of(std::vector<Tensor> parameters) {
  return optim::AdamW(std::move(parameters), optim::AdamWOptions(0.01));
}

void expect_same_state(const nn::Module& sharded, const nn::Module& whole) {
  const auto state = full_state_dict(sharded);
  const auto expected = whole.named_parameters();
  ASSERT_EQ(state.keys(), expected.keys());
  for (const auto& item : expected)
    EXPECT_TRUE(same_bits(state[item.key()], item.value().detach())) << item.key();
}

// The bits of DistributedDataParallel over the same ranks.
template <class Optimizer> void train_beside_ddp(bool tree) {
  for (int n : {1, 2, 4})
    with_groups_of(n, [&](const Group& g) {
      FullyShardOptions options;
      DdpOptions ddp_options;
      if (tree) options.order = ddp_options.order = ReduceOrder::tree(n);
      // Rank 0's values win.
      TextNet whole = text_net(24, 7), net = text_net(24, g->rank() ? 99 : 7);
      DistributedDataParallel<TextNet> ddp(whole, g, ddp_options);
      shard_all(net, DeviceMesh(g), options);
      Optimizer a = optimizer_of<Optimizer>(whole->parameters()),
                b = optimizer_of<Optimizer>(net->parameters());
      for (int step = 0; step < 20; ++step) {
        const TextBatch batch = text_batch(g->rank(), step);
        a.zero_grad();
        b.zero_grad();
        const Tensor x = text_loss(ddp(batch.ids), batch), y = text_loss(net(batch.ids), batch);
        ASSERT_TRUE(same_bits(x.detach(), y.detach())) << "step " << step;
        x.backward();
        y.backward();
        a.step();
        b.step();
      }
      expect_same_state(*net, *whole);
    });
}
TEST(FullyShard, SgdTrainsAsDdp) { train_beside_ddp<optim::SGD>(false); }
TEST(FullyShard, AdamWTrainsAsDdp) { train_beside_ddp<optim::AdamW>(false); }
TEST(FullyShard, TreesAreTrees) { train_beside_ddp<optim::SGD>(true); }

TEST(FullyShard, ParametersAreShards) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net();
    const auto before = net->named_parameters();
    const Tensor member = net->fc1->weight;
    shard_all(net, DeviceMesh(g));
    const auto after = net->named_parameters();
    EXPECT_EQ(after.keys(), before.keys());
    EXPECT_TRUE(net->fc1->weight.is_same(member));
    EXPECT_EQ(member.sizes(), IntArrayRef({24, 32}));
    for (const auto& item : after) {
      EXPECT_TRUE(item.value().is_leaf() && item.value().requires_grad());
      EXPECT_EQ(item.value().dim(), 1);
    }
    int64_t mine = 0;
    for (const Tensor& p : net->parameters()) mine += p.numel();
    Tensor all = full({}, static_cast<double>(mine), kDouble);
    g->all_reduce(all).wait();
    int64_t whole = 0;
    for (const auto& item : before) whole += item.value().numel();
    EXPECT_EQ(all.item<double>(), static_cast<double>(whole));
    // Shards of one group are equal up to a line of a cache for each parameter.
    EXPECT_LE(std::abs(2 * fully_shard_handle(net->fc2).local_numel() - (24 * 24 + 24)), 32);
  });
}

// Which groups are there while each of them computes, in forward and in backward.
TEST(FullyShard, GathersTheNextOneAndGivesBack) {
  for (bool prefetch : {true, false})
    with_groups_of(2, [prefetch](const Group& g) {
      TextNet net = text_net();
      FullyShardOptions options;
      options.prefetch = prefetch;
      for (const nn::Linear& layer : {net->fc1, net->fc2, net->fc3}) fully_shard(layer, g, options);
      fully_shard(net, g, options);
      std::vector<FullyShardHandle> handles;
      for (const nn::Linear& layer : {net->fc1, net->fc2, net->fc3})
        handles.push_back(fully_shard_handle(layer));
      std::vector<std::vector<int>> seen;
      const auto note = [&] {
        seen.emplace_back();
        for (const auto& h : handles) seen.back().push_back(h.state() != ShardState::sharded);
      };
      const std::vector<nn::Linear> layers = {net->fc1, net->fc2, net->fc3};
      for (nn::Linear layer : layers)
        layer->register_forward_hook(
            [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& y) {
              note();
              // When the layer before has its gradients, the one before that may be on its way.
              y[0].register_hook([&](const Tensor&) { note(); });
            });
      const TextBatch batch = text_batch(g->rank(), 0);
      for (int step = 0; step < 2; ++step) {
        seen.clear();
        net->zero_grad();
        text_loss(net(batch.ids), batch).backward();
        for (const auto& h : handles) EXPECT_EQ(h.state(), ShardState::sharded);
        EXPECT_EQ(fully_shard_handle(net).state(), ShardState::sharded);
      }
      const int next = prefetch ? 1 : 0;
      ASSERT_EQ(seen.size(), 6u);
      EXPECT_EQ(seen[0], (std::vector<int>{1, next, 0}));
      EXPECT_EQ(seen[1], (std::vector<int>{0, 1, next}));
      EXPECT_EQ(seen[2], (std::vector<int>{0, 0, 1}));
      // Backward: before a layer's own backward nothing has been asked for, or the layer after it
      // fetched it.
      EXPECT_EQ(seen[3], (std::vector<int>{0, 0, 0}));
      EXPECT_EQ(seen[4], (std::vector<int>{0, next, 0}));
      EXPECT_EQ(seen[5], (std::vector<int>{next, 0, 0}));
    });
}

// Bytes of parameters, gradients and optimizer state between steps, counted by the allocator: each
// rank computes on a device of its own.
TEST(FullyShard, BytesBetweenSteps) {
  for (int n : {2, 4})
    with_groups_of(n, [n](const Group& g) {
      const Device device(kCPU, static_cast<DeviceIndex>(g->rank() + 1));
      const DeviceGuard here(device);
      constexpr int64_t width = 256;
      TextNet net = text_net(width);
      net->to(device);
      int64_t whole = 0;
      for (const Tensor& p : net->parameters()) whole += static_cast<int64_t>(p.nbytes());
      const int64_t before = memory_stats(device).current;
      EXPECT_GE(before, whole - 8 * 768);
      shard_all(net, DeviceMesh(g));
      optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(0.01));
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        {
          TextBatch batch = text_batch(g->rank(), step);
          batch.labels = batch.labels.to(device);
          text_loss(net(batch.ids.to(device)), batch).backward();
        }
        optimizer.step();
        const int64_t held = memory_stats(device).current - (before - whole);
        // Parameters, gradients, two moments; nothing is gathered.
        EXPECT_LE(static_cast<double>(held), 1.05 * 4.0 * static_cast<double>(whole) / n)
            << "step " << step << ", whole " << whole;
        EXPECT_GE(held, 3 * whole / n);
      }
      // Tensor by tensor.
      int64_t counted = 0;
      for (const Tensor& p : net->parameters())
        counted += static_cast<int64_t>(2 * p.nbytes() + p.grad().nbytes() * 2);
      EXPECT_LE(static_cast<double>(counted), 1.05 * 4.0 * static_cast<double>(whole) / n);
    });
}

// What is not gathered cannot be read.
TEST(FullyShard, ValuesThatAreNotHere) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net();
    shard_all(net, DeviceMesh(g));
    const TextBatch batch = text_batch(0, 0);
    const std::string text = error_of([&] { net->fc1->forward(ones({1, 32})); });
    expect_part(text, "[fully_shard] parameter 'weight' is sharded");
    expect_part(text, "->forward() bypasses the hook");
    EXPECT_ERROR_TEXT(net->fc2->weight.sum(), "is sharded");
    EXPECT_ERROR_TEXT(net->fc2->weight.clone(), "is sharded");
    // In a handle's hands.
    const FullyShardHandle handle = fully_shard_handle(net->fc1);
    for (bool async : {false, true}) {
      handle.unshard(async);
      EXPECT_EQ(handle.state(), async ? ShardState::gathering : ShardState::gathered);
      const Tensor early = net->fc1->weight.detach();
      EXPECT_TRUE(same_bits(net->fc1->weight, text_net()->fc1->weight));
      if (async) EXPECT_ERROR_TEXT(early.sum(), "taken while that was sharded");
      EXPECT_EQ(handle.state(), ShardState::gathered);
      net(batch.ids).sum().backward();
      EXPECT_EQ(handle.state(), ShardState::gathered);
      handle.reshard();
      EXPECT_EQ(handle.state(), ShardState::sharded);
    }
    EXPECT_ERROR_TEXT(net->fc1->weight.sum(), "is sharded");
  });
}

TEST(FullyShard, WithoutGradients) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net(), whole = text_net();
    shard_all(net, DeviceMesh(g));
    const TextBatch batch = text_batch(g->rank(), 3);
    for (bool inference : {false, true}) {
      std::optional<NoGradGuard> off;
      std::optional<InferenceMode> mode;
      if (inference) mode.emplace();
      else off.emplace();
      EXPECT_TRUE(same_bits(net(batch.ids), whole(batch.ids)));
      for (const FullyShardHandle& h : {fully_shard_handle(net), fully_shard_handle(net->fc1)})
        EXPECT_EQ(h.state(), ShardState::sharded);
    }
    const Tensor y = net(batch.ids);
    EXPECT_TRUE(y.requires_grad());
    EXPECT_EQ(fully_shard_handle(net->fc1).state(), ShardState::sharded);
    EXPECT_EQ(fully_shard_handle(net).state(), ShardState::gathered);  // the outermost
  });
}

}  // namespace
}  // namespace ramet::distributed
