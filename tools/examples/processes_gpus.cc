// Processes with a GPU each: gradients travel from GPU to GPU by NCCL. On a host with four GPUs
//
//   tools/launch --nproc 4 -- bazel-bin/tools/examples/processes_gpus
//
// Started alone it is as many ranks as there are GPUs (two at most), each a thread.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "ramet.h"

using namespace ramet;

void train(const std::shared_ptr<distributed::ProcessGroup>& group, Device device) {
  nn::Sequential model(nn::Linear(10, 32), nn::ReLU(), nn::Linear(32, 2));
  model->to(device);
  // Takes over rank 0's values; each rank's model stays where it is.
  distributed::DistributedDataParallel<nn::Sequential> ddp(model, group);
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.05));

  Tensor x = empty({64, 10});
  for (int64_t i = 0; i < x.numel(); ++i)  // rows of this rank's own
    x.data_ptr<float>()[i] = static_cast<float>((i * 37 + group->rank() * 11) % 101) / 50 - 1;
  const Tensor y = x.slice(1, 0, 1).gt(0).to(kLong).view({-1}).to(device);
  x = x.to(device);

  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy_loss(ddp(x), y);
    loss.backward();  // a bucket's sum over the ranks runs concurrently with the backward
    optimizer.step();

    Tensor mean = loss.detach().clone();
    group->all_reduce(mean, distributed::ReduceOp::average).wait();
    if (step % 20 == 19 && group->rank() == 0)
      std::printf("step %d: mean loss of %d ranks %.4f, by %s\n", step + 1, group->size(),
                  mean.item<double>(), group->backend(kCUDA));
  }
  group->barrier().wait();  // no rank leaves while others still need it
}

// The same, with 1/N of the parameters, gradients and optimizer state on each GPU: a layer's values
// are gathered while it computes.
void train_sharded(const std::shared_ptr<distributed::ProcessGroup>& group, Device device) {
  nn::Linear first(10, 32), last(32, 2);
  nn::Sequential model(first, nn::ReLU(), last);
  model->to(device);
  const distributed::DeviceMesh mesh(group);
  distributed::fully_shard(first, mesh);
  distributed::fully_shard(model, mesh);
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(0.01));

  const Tensor x = ones({16, 10}, device) * (group->rank() + 1.0);
  const Tensor y = full({16}, group->rank() % 2, TensorOptions(kLong).device(device));
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy_loss(model(x), y);
    loss.backward();
    optimizer.step();
    if (step % 10 == 9 && group->rank() == 0)
      std::printf("sharded, step %d: loss of rank 0 %.4f\n", step + 1, loss.item<double>());
  }
  group->barrier().wait();
}

int main() try {
  // Real GPUs do not read it. The emulated NCCL connects threads only, so under a launcher only
  // real GPUs count.
  setenv("RAMET_EMULATED_DEVICES", std::getenv("RANK") ? "0" : "2", /*overwrite=*/0);
  manual_seed(1);
  if (!cuda::is_available()) {
    std::printf("no GPU\n");
    return 0;
  }
  distributed::GroupOptions options;
  options.backend = "cpu:gloo,cuda:nccl";
  if (std::getenv("RANK")) {
    const auto group = distributed::init_process_group("env://", options);
    const char* local = std::getenv("LOCAL_RANK");
    const Device device(kCUDA, static_cast<DeviceIndex>(local ? std::atoi(local) : 0));
    train(group, device);
    train_sharded(group, device);
    return 0;
  }
  const int ranks = std::min<int>(cuda::device_count(), 2);
  const auto groups = distributed::make_local_groups(ranks, options);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&groups, r] {
      const Device device(kCUDA, static_cast<DeviceIndex>(r));
      train(groups[static_cast<size_t>(r)], device);
      train_sharded(groups[static_cast<size_t>(r)], device);
    });
  for (std::thread& t : threads) t.join();
  return 0;
} catch (const std::exception& e) {
  std::printf("%s\n", e.what());
  return 1;
}
