// Where the time of a data-parallel step goes. Start two processes on this host with
//
//   tools/launch --nproc 2 -- bazel-bin/tools/examples/processes_timeline
//
// Started alone, it is the only process: nothing travels then, but buckets are formed and launched.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "parallel/distributed/ddp/data_parallel.h"
#include "ramet.h"

using namespace ramet;

// Layers are registered in the opposite order of their use. The first plan of the buckets, the last
// layer registered first, is the worst one then: its gradient comes last.
struct BackwardsImpl : nn::Cloneable<BackwardsImpl> {
  BackwardsImpl() { BackwardsImpl::reset(); }
  void reset() override {
    out = register_module("out", nn::Linear(nn::LinearOptions(128, 10).bias(false)));
    hidden = register_module("hidden", nn::Linear(nn::LinearOptions(256, 128).bias(false)));
    in = register_module("in", nn::Linear(nn::LinearOptions(784, 256).bias(false)));
  }
  Tensor forward(const Tensor& x) { return out(hidden(in(x).relu()).relu()); }
  nn::Linear in{nullptr}, hidden{nullptr}, out{nullptr};
};
RAMET_MODULE(Backwards);

int main() {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];

  manual_seed(1);
  Backwards net;
  distributed::DdpOptions options;
  options.bucket_bytes = 1 << 16;
  distributed::DistributedDataParallel<Backwards> ddp(net, group, options);
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({64, 784}), y = randint(0, 10, {64}, kLong);

  size_t held[2] = {0, 0};
  for (size_t step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    cross_entropy_loss(ddp(x), y).backward();
    optimizer.step();

    // For each bucket: when its first and last gradient were there, when its reduction began and
    // ended. Also how long the backward stood still for it, and which parameter it had to wait for.
    const distributed::StepTimeline t = ddp.last_step();
    if (group->rank() == 0) std::printf("%s\n", t.table().c_str());
    for (size_t b = 0; b < t.buckets.size(); ++b) held[step] += t.held_back_by(b).has_value();
  }
  // In the first step a bucket in front delayed those after it. Since then the buckets follow the
  // order in which gradients come.
  group->barrier().wait();  // no rank leaves while others still need it
  return held[0] > 0 && held[1] == 0 ? 0 : 1;
}
