// fully_shard over GPUs: ranks as threads, an emulated GPU each.
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::testing {
namespace {

using distributed::DdpOptions;
using distributed::DeviceMesh;
using distributed::DistributedDataParallel;
using distributed::fully_shard;
using distributed::fully_shard_handle;
using distributed::FullyShardOptions;
using distributed::text_batch;
using distributed::text_net;
using distributed::TextBatch;
using distributed::TextNet;
using parallel::ReduceOrder;

enum class Sharding { replicated, sharded, hybrid };

struct ShardedTraining {
  Sharding how = Sharding::sharded;
  int ranks = 2;
  bool on_gpus = true, adam = false, tree = false, clips = false;
  int steps = 6;
  bool accumulates = false;  // over two backwards; the first does not wait
  // Of the gathered values and of the reduction.
  std::optional<ScalarType> param_dtype = std::nullopt, reduce_dtype = std::nullopt;
};

/// All losses of rank 0, then the parameters after some steps.
Groups trained_shards(const Way& way, const ShardedTraining& run) {
  Groups result;
  with_gpu_groups(way, run.ranks, seconds(120), [&](const Group& g) {
    const Device device = run.on_gpus ? gpu(g->rank()) : kHost;
    TextNet net = text_net(24, g->rank() ? 99 : 7);  // rank 0's values win
    net->to(device);
    const ReduceOrder order = run.tree ? ReduceOrder::tree(run.ranks) : ReduceOrder();
    std::optional<DistributedDataParallel<TextNet>> ddp;
    if (run.how == Sharding::replicated) {
      DdpOptions o;
      o.order = order;
      ddp.emplace(net, g, o);
    } else {
      FullyShardOptions o;
      o.order = order;
      o.mp_policy.param_dtype = run.param_dtype;
      o.mp_policy.reduce_dtype = run.reduce_dtype;
      const DeviceMesh mesh = run.how == Sharding::sharded
                                  ? DeviceMesh(g)
                                  : init_device_mesh(g, {2, run.ranks / 2}, {"replicate", "shard"});
      shard_all(net, mesh, o);
    }
    std::optional<optim::SGD> sgd;
    std::optional<optim::AdamW> adam;
    if (run.adam) adam.emplace(net->parameters(), optim::AdamWOptions(0.01));
    else sgd.emplace(net->parameters(), optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.01));
    Values losses, weights;
    if (run.accumulates && !ddp) {
      const auto handle = fully_shard_handle(net), fc1 = fully_shard_handle(net->fc1),
                 fc2 = fully_shard_handle(net->fc2);
      handle.set_modules_to_forward_prefetch({fc2, fc1});
      fc2.set_modules_to_backward_prefetch({handle, fc1});
      fc1.set_reshard_after_backward(false);
    }
    for (int step = 0; step < run.steps; ++step) {
      net->zero_grad();
      for (int micro = run.accumulates ? 0 : 1; micro < 2; ++micro) {
        if (run.accumulates && !ddp) fully_shard_handle(net).set_is_last_backward(micro == 1);
        const TextBatch batch = text_batch(g->rank(), step + 100 * (1 - micro), 6, device);
        const Tensor y = ddp ? (*ddp)(batch.ids) : net(batch.ids);
        const Tensor loss = text_loss(y, batch);
        loss.backward();
        losses.push_back(loss.item<double>());
      }
      if (run.adam) adam->step();
      else sgd->step();
    }
    if (ddp) {
      weights = all_values(net->parameters());
    } else {
      const auto state = full_state_dict(*net);
      for (const auto& item : state) {
        EXPECT_EQ(item.value().device(), device) << item.key();
        for (double v : all_values({item.value()})) weights.push_back(v);
      }
    }
    g->barrier().wait();
    if (g->rank() == 0) result = {losses, weights};
  });
  return result;
}

TEST(ShardedOnGpus, TrainsAsDdpAndAsTheHost) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (bool adam : {false, true}) {
    ShardedTraining run;
    run.adam = adam;
    run.on_gpus = false;
    const Groups host = trained_shards(kStagedThreads, run);
    run.on_gpus = true;
    ShardedTraining ddp = run;
    ddp.how = Sharding::replicated;
    const Groups expected = trained_shards(kStagedThreads, ddp);
    EXPECT_LE(difference(host, expected), 1e-5);
    for (const Way& way : all_ways()) EXPECT_EQ(trained_shards(way, run), expected) << way;
  }
}

TEST(ShardedOnGpus, OnAMeshOfTwoDimensions) {
  RAMET_NEEDS_CARDS(4);
  const Gpus gpus(rank_gpus(4));
  ShardedTraining run{Sharding::replicated, 4, true, false, true};
  const Groups expected = trained_shards(kStagedThreads, run);
  for (const Sharding how : {Sharding::sharded, Sharding::hybrid})
    for (const Way& way : ways({kStagedThreads, kNcclThreads})) {
      run.how = how;
      EXPECT_EQ(trained_shards(way, run), expected) << way;
    }
}

// 16 bits round differently than on the host, so losses and weights are only near.
TEST(ShardedOnGpus, WithAMixedPrecisionPolicy) {
  RAMET_NEEDS_CARDS(4);
  const Gpus gpus(rank_gpus(4));
  for (const ScalarType param : {kBFloat16, kHalf})
    for (const auto& reduce : {std::optional<ScalarType>(), std::optional(kFloat)}) {
      ShardedTraining run{Sharding::sharded, 4, false, false, true};
      run.param_dtype = param;
      run.reduce_dtype = reduce;
      run.steps = 3;
      const Groups host = trained_shards(kStagedThreads, run);
      run.on_gpus = true;
      const Groups expected = trained_shards(kStagedThreads, run);
      EXPECT_LE(difference(host, expected), 2e-2);
      for (const Sharding how : {Sharding::sharded, Sharding::hybrid})
        for (const Way& way : ways({kStagedThreads, kNcclThreads})) {
          run.how = how;
          EXPECT_EQ(trained_shards(way, run), expected) << way;
        }
    }
}

// For every order of streams: in the lazy one nothing is there by luck.
void expect_same_in_any_order_of_streams(const ShardedTraining& run) {
  ShardedTraining ddp = run;
  if (!run.param_dtype) ddp.how = Sharding::replicated;
  const Groups expected = [&] {
    const Gpus gpus(rank_gpus(2));
    return trained_shards(kStagedThreads, ddp);
  }();
  for (const emulated::StreamMode mode : {emulated::StreamMode::Async, emulated::StreamMode::Eager,
                                          emulated::StreamMode::Lazy, emulated::StreamMode::Random})
    for (uint64_t seed : {1, 2}) {
      if (seed == 2 && mode != emulated::StreamMode::Random) continue;
      emulated::Settings settings = rank_gpus(2, mode);
      settings.stream_seed = seed;
      const Gpus gpus(settings);
      for (const Way& way : ways({kStagedThreads, kNcclThreads}))
        EXPECT_EQ(trained_shards(way, run), expected) << way << ", mode " << static_cast<int>(mode);
    }
}
TEST(ShardedOnGpus, AnyOrderOfStreams) {
  RAMET_NEEDS_CARDS(2);
  ShardedTraining run;
  run.steps = 3;
  expect_same_in_any_order_of_streams(run);
}
TEST(ShardedOnGpus, CastsInAnyOrderOfStreams) {
  RAMET_NEEDS_CARDS(2);
  ShardedTraining run;
  run.steps = 2;
  run.param_dtype = kBFloat16;
  run.reduce_dtype = kFloat;
  expect_same_in_any_order_of_streams(run);
}
TEST(ShardedOnGpus, ABackwardThatIsNotTheLast) {
  RAMET_NEEDS_CARDS(2);
  ShardedTraining run;
  run.steps = 2;
  run.accumulates = true;
  expect_same_in_any_order_of_streams(run);
}

}  // namespace
}  // namespace ramet::testing
