// Compressed communication in data-parallel training. Start four processes on this host with
//
//   tools/launch --nproc 4 -- bazel-bin/tools/examples/processes_compression
//
// Started alone, it is the only process: nothing travels then.
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/model_averager.h"
#include "ramet.h"

using namespace ramet;
using namespace ramet::distributed;

namespace {

using Ddp = DistributedDataParallel<nn::Sequential>;

nn::Sequential model() {
  manual_seed(1);
  return nn::Sequential(nn::Linear(64, 256), nn::ReLU(), nn::Linear(256, 2));
}

double train(Ddp& ddp, const nn::Sequential& net, int steps,
             PeriodicModelAverager* averager = nullptr) {
  manual_seed(100 + static_cast<uint64_t>(ddp.group()->rank()));
  const Tensor x = randn({128, 64}), y = x.slice(1, 0, 1).gt(0).to(kLong).view({-1});
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
  double last = 0;
  ddp.group()->reset_wire_bytes();
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy_loss(ddp(x), y);
    loss.backward();
    optimizer.step();
    if (averager) averager->average_parameters(net->parameters());
    last = loss.item<double>();
  }
  return last;
}

void show(const ProcessGroup& group, const char* what, double loss) {
  if (group.rank() == 0)
    std::printf("%-18s loss %.4f, sent %llu bytes\n", what, loss,
                static_cast<unsigned long long>(group.wire_bytes()));
}

}  // namespace

int main() {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  const auto group = launched ? init_process_group() : make_local_groups(1)[0];

  {  // 16 bits on the wire
    nn::Sequential net = model();
    DdpOptions options;
    options.stages = {bf16_stage()};
    Ddp ddp(net, group, options);
    show(*group, "bf16", train(ddp, net, 20));
  }

  {  // Factors of rank 4, these in 8 bits; a run that is stopped and goes on.
    nn::Sequential net = model();
    PowerSgdOptions low_rank;
    low_rank.rank = 4;
    low_rank.start = 5;  // plain gradients at first
    DdpOptions options;
    options.stages = {power_sgd_stage(low_rank), int8_stage()};
    std::stringstream file;  // of this rank
    {
      Ddp ddp(net, group, options);
      train(ddp, net, 10);
      serialize::OutputArchive archive;
      ddp.comm_stages().save(archive);  // in a program: checkpoint.add("stages", ddp.comm_stages())
      archive.save_to(file);
    }
    options.stages = {power_sgd_stage(low_rank), int8_stage()};
    options.bucket_bytes = 1 << 16;  // may change: what stages remember is kept by parameter
    Ddp ddp(net, group, options);
    serialize::InputArchive archive;
    archive.load_from(file);
    ddp.comm_stages().load(archive);
    show(*group, "power_sgd and int8", train(ddp, net, 10));
    for (const StageBytes& stage : ddp.comm_stages().bytes())
      if (group->rank() == 0)
        std::printf("  %s made %llu bytes of %llu\n", stage.stage.c_str(),
                    static_cast<unsigned long long>(stage.after),
                    static_cast<unsigned long long>(stage.before));
  }

  {  // After 5 steps a mean over neighbours only; parameters of all are averaged every 4 steps.
    nn::Sequential net = model();
    DdpOptions options;
    options.stages = {post_local_sgd_stage(new_subgroups(*group, group->size() % 2 ? 1 : 2), 5)};
    Ddp ddp(net, group, options);
    PeriodicModelAverager averager(group, 4, 5);
    show(*group, "post_local_sgd", train(ddp, net, 20, &averager));
  }

  group->barrier().wait();  // no rank leaves while others still need it
  return 0;
}
