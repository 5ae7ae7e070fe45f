// Checkpoints hold what GPUs draw next, whichever of them a rank has.
#include "nn/module/checkpoint.h"
#include "parallel/distributed/checkpoint/checkpoint.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::testing {
namespace {

using distributed::DistributedCheckpoint;
using distributed::LoadReport;

Device card(int k) { return Device(kCUDA, static_cast<DeviceIndex>(k)); }
std::vector<double> drawn(Device device) {
  const Tensor x = rand({20}, TensorOptions(kDouble).device(device)).to(kHost);
  return {x.data_ptr<double>(), x.data_ptr<double>() + x.numel()};
}
void draw(Device device, int times) {
  while (times-- > 0) (void)rand({3}, TensorOptions(kFloat).device(device));
}

TEST(CheckpointsOnGpus, EachCardsGenerator) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(gpu_settings(2));
  const distributed::TempFolder folder;
  manual_seed(5);
  draw(kHost, 1), draw(card(0), 2), draw(card(1), 3);
  Checkpoint().save(folder.path("c"));
  const std::vector<std::vector<double>> next = {drawn(kHost), drawn(card(0)), drawn(card(1))};
  EXPECT_NE(next[0], next[1]);
  EXPECT_NE(next[1], next[2]);
  manual_seed(6);  // as a new process: no generator is where it was
  Checkpoint().load(folder.path("c"));
  EXPECT_EQ(drawn(kHost), next[0]);
  EXPECT_EQ(drawn(card(0)), next[1]);
  EXPECT_EQ(drawn(card(1)), next[2]);
}

TEST(CheckpointsOnGpus, RanksThatHaveACardEach) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  const distributed::TempFolder folder;
  manual_seed(5);
  std::vector<double> next;
  with_gpu_groups(kStagedThreads, 2, seconds(60), [&](const Group& g) {
    const Device mine = card(g->rank());
    nn::Linear net(2, 2);
    {
      const NoGradGuard off;
      for (Tensor& p : net->parameters()) p.fill_(1);
    }
    net->to(mine);
    draw(mine, 4);
    g->barrier().wait();  // the host's generator, from which both have drawn, is one here
    DistributedCheckpoint(g).add("model", *net).save(folder.path("c"), 1);
    if (g->rank() == 1) next = drawn(mine);
  });
  // As many ranks, more, fewer, and on other GPUs: what was the same everywhere comes back.
  for (const int ranks : {2, 3, 1}) {
    manual_seed(6);
    with_gpu_groups(kStagedThreads, ranks, seconds(60), [&](const Group& g) {
      const Device mine = card(2 - g->rank());
      nn::Linear net(2, 2);
      net->to(mine);
      const LoadReport report = DistributedCheckpoint(g).add("model", *net).load(folder.path("c"));
      EXPECT_TRUE(report.not_restored.empty()) << ranks;
      EXPECT_EQ(drawn(mine), next) << ranks << " ranks, rank " << g->rank();
    });
  }
}

}  // namespace
}  // namespace ramet::testing
