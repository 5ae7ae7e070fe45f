// What sharded modules hold on GPUs, and when; what they refuse.
#include "autograd/graph/captured.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "runtime/memory/allocator.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::testing {
namespace {

using distributed::DeviceMesh;
using distributed::fully_shard;
using distributed::fully_shard_handle;
using distributed::FullyShardHandle;
using distributed::FullyShardOptions;
using distributed::ShardState;
using distributed::text_batch;
using distributed::text_net;
using distributed::TextBatch;
using distributed::TextNet;

int64_t bytes_of(const std::vector<Tensor>& list) {
  int64_t n = 0;
  for (const Tensor& t : list) n += static_cast<int64_t>(t.nbytes());
  return n;
}

// Bytes of parameters, gradients and optimizer state between steps, counted by the allocator. With
// NCCL, staging memory for at most one group lies on the GPU, too.
TEST(ShardedMemoryOnGpus, BytesBetweenSteps) {
  RAMET_NEEDS_CARDS(4);
  const Gpus gpus(rank_gpus(4));
  for (const Way& way : ways({kStagedThreads, kNcclThreads}))
    for (int n : {2, 4})
      with_gpu_groups(way, n, seconds(120), [&](const Group& g) {
        const Device device = gpu(g->rank());
        const int64_t before = memory_stats(device).current;
        TextNet net = text_net(256);
        net->to(device);
        const int64_t whole = bytes_of(net->parameters()),
                      largest = bytes_of(net->fc2->parameters());
        EXPECT_GE(memory_stats(device).current - before, whole);
        shard_all(net, DeviceMesh(g));
        optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(0.01));
        for (int step = 0; step < 3; ++step) {
          optimizer.zero_grad();
          {
            const TextBatch batch = text_batch(g->rank(), step, 6, device);
            text_loss(net(batch.ids), batch).backward();
          }
          optimizer.step();
          const int64_t held = memory_stats(device).current - before;
          // Parameters, gradients, two moments; nothing is gathered.
          const double share = 4.0 * static_cast<double>(whole) / n;
          EXPECT_LE(static_cast<double>(held),
                    1.05 * share + (way.nccl() ? static_cast<double>(largest) : 0))
              << way << ", " << n << " ranks, step " << step << ", whole " << whole;
          EXPECT_GE(static_cast<double>(held), 0.95 * share);
        }
      });
}

// Which groups are there while each of them computes, in forward and in backward.
TEST(ShardedMemoryOnGpus, GathersTheNextOneAndGivesBack) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : ways({kStagedThreads, kNcclThreads}))
    for (bool prefetch : {true, false})
      with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
        const Device device = gpu(g->rank());
        FullyShardOptions options;
        options.prefetch = prefetch;
        std::vector<nn::Linear> layers;
        nn::Sequential net;
        for (int i = 0; i < 3; ++i) {
          layers.emplace_back(8, 8);
          net->push_back(layers.back());
        }
        net->to(device);
        std::vector<std::vector<int>> seen;
        const auto note = [&] {
          seen.emplace_back();
          for (const nn::Linear& l : layers)
            seen.back().push_back(fully_shard_handle(l).state() != ShardState::sharded);
        };
        for (nn::Linear& l : layers) {
          fully_shard(l, g, options);
          l->register_forward_hook(
              [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& y) {
                note();
                // The layer after this one has its gradients; the next one of the backward may be
                // on its way.
                y[0].register_hook([&](const Tensor&) { note(); });
              });
        }
        fully_shard(net, g, options);
        const int next = prefetch ? 1 : 0;
        for (int step = 0; step < 2; ++step) {
          seen.clear();
          net(ones({2, 8}, device).requires_grad_()).sum().backward();
          for (const nn::Linear& l : layers)
            EXPECT_EQ(fully_shard_handle(l).state(), ShardState::sharded);
        }
        const std::vector<std::vector<int>> expected = {{1, next, 0}, {0, 1, next}, {0, 0, 1},
                                                        {0, 0, 0},    {0, next, 0}, {next, 0, 0}};
        EXPECT_EQ(seen, expected) << way;
      });
}

// In the middle of a step: of equal layers two are gathered at a time, in forward and in backward.
TEST(ShardedMemoryOnGpus, LargestDuringAStep) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : ways({kStagedThreads, kNcclThreads}))
    with_gpu_groups(way, 2, seconds(120), [&](const Group& g) {
      constexpr int kLayers = 12;
      const Device device = gpu(g->rank());
      const int64_t before = memory_stats(device).current;
      nn::Sequential net;
      for (int i = 0; i < kLayers; ++i) net->push_back(nn::Linear(256, 256));
      net->to(device);
      const int64_t layer = bytes_of(net->parameters()) / kLayers;
      for (const auto& child : net->children()) fully_shard(child, g);
      fully_shard(net, g);
      const Tensor x = ones({1, 256}, device);
      for (int step = 0; step < 3; ++step) {
        net->zero_grad();
        reset_peak_memory_stats(device);
        net(x).sum().backward();
        // Pieces of parameters and gradients. In addition: two layers' values; two layers'
        // gradients, one of which is being reduced, with what that receives; activations.
        const int64_t pieces = 2 * kLayers * layer / 2;
        EXPECT_LE(static_cast<double>(memory_stats(device).peak - before),
                  1.05 * static_cast<double>(pieces + 6 * layer))
            << way << ", step " << step << ", layer " << layer;
      }
    });
}

}  // namespace
}  // namespace ramet::testing
