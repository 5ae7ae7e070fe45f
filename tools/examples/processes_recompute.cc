// Activations that are computed again instead of kept, in data-parallel training. The program needs
// one line for it, autograd::checkpoint. Start two processes on this host with
//
//   tools/launch --nproc 2 -- bazel-bin/tools/examples/processes_recompute
//
// Started alone, it is the only process.
#include <cstdio>
#include <cstdlib>

#include "parallel/distributed/ddp/data_parallel.h"
#include "ramet.h"
#include "runtime/memory/allocator.h"

using namespace ramet;

struct BlockImpl : nn::Cloneable<BlockImpl> {
  BlockImpl() { BlockImpl::reset(); }
  void reset() override {
    up = register_module("up", nn::Linear(64, 256));
    down = register_module("down", nn::Linear(256, 64));
  }
  Tensor forward(const Tensor& x) { return x + down(up(x).relu().tanh()); }
  nn::Linear up{nullptr}, down{nullptr};
};
RAMET_MODULE(Block);

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override {
    in = register_module("in", nn::Linear(16, 64));
    blocks.clear();
    for (int i = 0; i < 4; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), Block()));
    out = register_module("out", nn::Linear(64, 4));
  }
  Tensor forward(const Tensor& x) {
    Tensor h = in(x);
    for (Block& b : blocks) {
      const auto block = [&b](const Tensor& t) { return b(t); };
      h = recompute ? autograd::checkpoint(block, h) : block(h);
    }
    return out(h);
  }
  bool recompute = false;
  nn::Linear in{nullptr}, out{nullptr};
  std::vector<Block> blocks;
};
RAMET_MODULE(Net);

int main() {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];

  manual_seed(1);
  Net net;
  distributed::DistributedDataParallel<Net> ddp(net, group);
  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({512, 16}), y = randint(0, 4, {512}, kLong);

  std::vector<Tensor> gradients[2];
  int64_t kept[2];
  for (const bool recompute : {false, true}) {
    net->recompute = recompute;
    net->zero_grad();
    const int64_t before = memory_stats(kCPU).current;
    const Tensor loss = cross_entropy_loss(ddp(x), y);
    kept[recompute] = memory_stats(kCPU).current - before;
    loss.backward();
    for (const Tensor& p : net->parameters()) gradients[recompute].push_back(p.grad().clone());
  }
  bool same = true;
  for (size_t i = 0; i < gradients[0].size(); ++i)
    same = same && gradients[0][i].equal(gradients[1][i]);
  if (group->rank() == 0)
    std::printf("kept for backward: %lld KiB, computed again: %lld KiB; gradients are %s\n",
                static_cast<long long>(kept[0] >> 10), static_cast<long long>(kept[1] >> 10),
                same ? "the same" : "different");
  group->barrier().wait();  // no rank leaves while others still need it
  return same && kept[1] < kept[0] / 2 ? 0 : 1;
}
