// replicate(): a module becomes data-parallel over processes and keeps its type. Start it with
//
//   tools/launch --nproc 4 -- bazel-bin/tools/examples/processes_replicate
#include <cstdio>
#include <cstdlib>

#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/stages/stages.h"
#include "ramet.h"

using namespace ramet;

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override {
    body = register_module("body", nn::Sequential(nn::Linear(10, 32), nn::BatchNorm1d(32)));
    head = register_module("head", nn::Linear(32, 2));
    local = register_module("local", nn::Linear(10, 2));
  }
  Tensor forward(const Tensor& x) { return head(body->forward(x).relu()) + local(x); }
  nn::Sequential body{nullptr};
  nn::Linear head{nullptr}, local{nullptr};
};
RAMET_MODULE(Net);

int main() {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];

  Net net;
  // Batch norms normalise with the statistics of all ranks' rows.
  nn::convert_sync_batchnorm(*net);
  distributed::ReplicateOptions options;
  options.ignored.names = {"local"};  // each rank has its own
  options.isolated = true;            // a reducer of its own, which may have stages
  distributed::replicate(net, group, options);

  auto handle = distributed::replicate_handle(net);
  // What stages remember is for checkpoints: checkpoint.add_own("stages", handle.comm_stages()).
  handle.register_comm_stage(distributed::bf16_stage());
  if (group->rank() == 0)
    for (const std::string& name : handle.replicated_param_names())
      std::printf("over %d ranks: %s\n", group->size(), name.c_str());

  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.05));
  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({64, 10}), y = x.slice(1, 0, 1).gt(0).to(kLong).view({-1});
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy_loss(net(x), y);  // net(x): not net->forward(x)
    loss.backward();
    optimizer.step();
    if (step % 20 == 19 && group->rank() == 0)
      std::printf("step %d: loss of rank 0 %.4f\n", step + 1, loss.item<double>());
  }

  {
    const auto off = handle.no_sync();
    cross_entropy_loss(net(x), y).backward();  // stays on this rank
  }
  group->barrier().wait();
  return 0;
}
