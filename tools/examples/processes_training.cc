// Data-parallel training over processes. Start four on this host with
//
//   tools/launch --nproc 4 -- bazel-bin/tools/examples/processes_training
//
// or as many as you like with mpirun or srun. Started alone, it is the only process.
#include <cstdio>
#include <cstdlib>

#include "parallel/distributed/ddp/data_parallel.h"
#include "ramet.h"

using namespace ramet;

int main() {
  // RANK, WORLD_SIZE and where rank 0 is come from the launcher; without one, a world of one.
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];

  manual_seed(1);
  nn::Sequential model(nn::Linear(10, 32), nn::ReLU(), nn::Linear(32, 2));
  // Compares the ranks' models and gives all of them rank 0's values.
  distributed::DistributedDataParallel<nn::Sequential> ddp(model, group);
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.05));

  // Each rank has a part of the data: here, rows of its own.
  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({64, 10}), y = x.slice(1, 0, 1).gt(0).to(kLong).view({-1});

  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy_loss(ddp(x), y);
    loss.backward();  // when it returns, gradients are the mean over all ranks
    optimizer.step();

    // Any tensor can be reduced; the handle is waited for when the result is needed.
    Tensor mean = loss.detach().clone();
    const distributed::Work work = group->all_reduce(mean, distributed::ReduceOp::average);
    work.wait();
    if (step % 20 == 19 && group->rank() == 0)
      std::printf("step %d: mean loss of %d ranks %.4f\n", step + 1, group->size(),
                  mean.item<double>());
  }

  // A step of four backwards, of which only the last one meets the other ranks (no_sync() does the
  // same by hand).
  optimizer.zero_grad();
  auto step = ddp.accumulate(4);
  const int64_t rows = x.size(0) / 4;
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor part = ddp(x.slice(0, i * rows, (i + 1) * rows));
    if (step.backward(cross_entropy_loss(part, y.slice(0, i * rows, (i + 1) * rows))))
      optimizer.step();
  }

  group->barrier().wait();  // no rank leaves while others still need it
  return 0;
}
