// Layers cut over ranks with an emulated GPU each, against the whole ones on one GPU, in double.
#include "parallel/distributed/shard/fully_shard.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"
#include "tests/parallel/distributed/shard/tensor_parallel_cases.h"

namespace ramet::testing {
namespace {

using distributed::check_functions;
using distributed::compare_embeddings;
using distributed::compare_linears;
using distributed::linear_of;
using distributed::normal;

TEST(TensorParallelOnGpus, Functions) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : all_ways())
    with_gpu_groups(way, 2, seconds(60),
                    [](const Group& g) { check_functions(g, gpu(g->rank())); });
}

TEST(TensorParallelOnGpus, Linear) {
  RAMET_NEEDS_CARDS(4);
  const Gpus gpus(rank_gpus(4));
  for (const Way& way : ways({kStagedThreads, kNcclThreads, kNcclGloo}))
    for (int n : {1, 2, 4})
      for (bool bias : {true, false})
        with_gpu_groups(way, n, seconds(60),
                        [bias](const Group& g) { compare_linears(g, bias, gpu(g->rank())); });
}

TEST(TensorParallelOnGpus, Embedding) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  for (const Way& way : ways({kStagedThreads, kNcclThreads, kNcclGloo}))
    for (int n : {1, 2, 3})
      with_gpu_groups(way, n, seconds(60),
                      [](const Group& g) { compare_embeddings(g, gpu(g->rank())); });
}

// Cut over one dimension of a mesh, sharded over the other: the whole parameters after some steps.
Groups trained_block(const Way& way, bool on_gpus) {
  Groups result;
  with_gpu_groups(way, 4, seconds(60), [&](const Group& g) {
    const Device device = on_gpus ? gpu(g->rank()) : kHost;
    const auto mesh = distributed::init_device_mesh(g, {2, 2}, {"shard", "tp"});
    const auto net = std::make_shared<distributed::CutBlockImpl>(
        linear_of(8, 12, true, 1, device), linear_of(12, 8, true, 5, device), mesh.group("tp"));
    distributed::fully_shard(net, mesh["shard"]);
    optim::SGD sgd(net->parameters(), optim::SGDOptions(0.01).momentum(0.9));
    Values norms;
    for (int step = 0; step < 4; ++step) {
      const auto seed = static_cast<uint64_t>(100 + 10 * step + mesh.coordinate("shard"));
      sgd.zero_grad();
      nn::call(*net, normal({4, 8}, seed, device)).pow(2).mean().backward();
      const Tensor norm = distributed::get_total_norm(*net);
      EXPECT_EQ(norm.device(), device);
      nn::utils::clip_grads_with_norm_(net->parameters(), 0.5, norm);
      norms.push_back(norm.item<double>());
      sgd.step();
    }
    const auto state = distributed::full_state_dict(*net);
    EXPECT_EQ(state["down.weight"].sizes(), IntArrayRef({8, 12}));
    if (g->rank() == 0) {
      result = {norms, {}};
      for (const auto& item : state)
        for (double v : all_values({item.value()})) result.back().push_back(v);
    }
    g->barrier().wait();
  });
  return result;
}

TEST(TensorParallelOnGpus, InsideShardedModules) {
  RAMET_NEEDS_NCCL(4);
  const Gpus gpus(rank_gpus(4));
  const Groups host = trained_block(kStagedThreads, false);
  const Groups staged = trained_block(kStagedThreads, true);
  EXPECT_LE(difference(host, staged), 1e-12);
  EXPECT_EQ(trained_block(kNcclThreads, true), staged);
}

// For every order of streams.
TEST(TensorParallelOnGpus, AnyOrderOfStreams) {
  RAMET_NEEDS_CARDS(2);
  for (const emulated::StreamMode mode :
       {emulated::StreamMode::Eager, emulated::StreamMode::Lazy, emulated::StreamMode::Random}) {
    const Gpus gpus(rank_gpus(2, mode));
    for (const Way& way : ways({kStagedThreads, kNcclThreads}))
      with_gpu_groups(way, 2, seconds(60), [](const Group& g) {
        compare_linears(g, true, gpu(g->rank()));
        compare_embeddings(g, gpu(g->rank()));
      });
  }
}

}  // namespace
}  // namespace ramet::testing
