// join(): ranks with different numbers of batches. A rank without further batches takes part in the
// others' steps without data. Start it with
//
//   tools/launch --nproc 4 -- bazel-bin/tools/examples/processes_uneven
#include <cstdio>
#include <cstdlib>

#include "parallel/distributed/ddp/data_parallel.h"
#include "ramet.h"

using namespace ramet;

int main() {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];

  manual_seed(1);
  nn::Sequential model(nn::Linear(10, 32), nn::BatchNorm1d(32), nn::ReLU(), nn::Linear(32, 2));
  distributed::DdpOptions options;
  // A rank's last batch may be short: every row counts the same.
  options.average = distributed::Average::weighted;
  distributed::DistributedDataParallel<nn::Sequential> ddp(model, group, options);
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.2));

  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  const int64_t rows = 100 + 70 * group->rank(), batch = 32;
  const Tensor x = randn({rows, 10}), y = x.slice(1, 0, 1).gt(0).to(kLong).view({-1});
  for (int epoch = 0; epoch < 20; ++epoch) {
    ddp.join([&] {
      for (int64_t at = 0; at < rows; at += batch) {
        optimizer.zero_grad();
        const int64_t end = std::min(rows, at + batch);
        cross_entropy_loss(ddp(x.slice(0, at, end)), y.slice(0, at, end)).backward();
        optimizer.step();
      }
    });
    // All ranks have the same model again.
  }
  model->eval();
  const double right = model->forward(x).argmax(1).eq(y).to(kFloat).mean().item<double>();
  std::printf("rank %d: %lld rows, %.0f %% right\n", group->rank(), static_cast<long long>(rows),
              100 * right);
  group->barrier().wait();
  return right > 0.8 ? 0 : 1;
}
