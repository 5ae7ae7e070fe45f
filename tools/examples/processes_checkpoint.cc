// A run of processes that goes on after a failure, from its last checkpoint. The number of
// processes may change. Here the last of several kills itself in step 25, the first time:
//
//   tools/launch --nproc 4 --max-restarts 1 -- bazel-bin/tools/examples/processes_checkpoint FOLDER
//
// The launcher starts all four again, and they go on from step 20. They end with the weights of an
// undisturbed run, and of one with 1 or 2 processes. Started alone, it is the only process.
//
// usage: processes_checkpoint [FOLDER [STEPS]]
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "parallel/distributed/checkpoint/checkpoint.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "ramet.h"

using namespace ramet;

int main(int argc, char** argv) {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];
  // A folder that all processes reach.
  const std::string folder = argc > 1 ? argv[1] : "processes_checkpoint.run";
  const int64_t steps = argc > 2 ? std::atoll(argv[2]) : 40;

  manual_seed(1);
  const Tensor x = randn({32, 10}), y = x.slice(1, 0, 1).gt(0).to(kLong).view({-1});
  nn::Sequential model(nn::Linear(10, 32), nn::BatchNorm1d(32), nn::ReLU(), nn::Dropout(0.2),
                       nn::Linear(32, 2));
  distributed::DdpOptions options;
  options.order = distributed::ReduceOrder::tree(4);  // one result for 1, 2 and 4 processes
  options.batch = distributed::Batch::whole;
  distributed::DistributedDataParallel<nn::Sequential> ddp(model, group, options);
  optim::AdamW adam(model->parameters(), optim::AdamWOptions(0.01));
  int64_t step = 0;

  // Everything the run needs to go on; the random numbers' state is added by itself. What ranks
  // hold in parts, of a sharded module, is added with a list of TensorPart.
  distributed::DistributedCheckpoint checkpoint(group);
  checkpoint.add("model", *model).add("adam", adam, *model).add("step", step);
  if (const auto found = checkpoint.try_load(folder); found && group->rank() == 0)
    std::printf("goes on from step %lld, which %d ranks saved\n",
                static_cast<long long>(found->step), found->world_size);

  const char* restarts = std::getenv("RAMET_RESTARTS");
  const bool fails = group->size() > 1 && group->rank() == group->size() - 1 && restarts &&
                     std::string(restarts) == "0";
  while (step < steps) {
    if (fails && step == 25) std::raise(SIGKILL);
    adam.zero_grad();
    const Tensor out = ddp(x);
    const auto [first, rows] = ddp.rows();
    cross_entropy_loss(out, y.slice(0, first, first + rows)).backward();
    adam.step();
    // Whole or not at all: killed in here, the run goes on from the step before.
    if (++step % 10 == 0) checkpoint.save(folder, step);
  }
  const Tensor weights = nn::utils::parameters_to_vector(model->parameters()).detach();
  if (group->rank() == 0)
    std::printf("step %lld: sum of the weights %.17g\n", static_cast<long long>(step),
                weights.to(kDouble).sum().item<double>());
  group->barrier().wait();
  if (argc == 1) std::filesystem::remove_all(folder);
  return 0;
}
