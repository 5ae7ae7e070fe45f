// A module from a TorchScript file over several ranks: replicate(), DistributedDataParallel and
// fully_shard().
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "nn/optim/sgd.h"
#include "nn/script/script.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "runtime/devices/generator.h"
#include "tests/error_text.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

using script::ScriptModule;

std::shared_ptr<ScriptModule> scripted(const std::string& name) {
  auto net = script::load("tests/nn/script/goldens/" + name + ".pt");
  net->to(kDouble);
  return net;
}
Tensor part_of(int rank, int step, IntArrayRef sizes) {
  const Generator g(Device(kCPU, 0), static_cast<uint64_t>(100 * step + rank));
  return randn(sizes, g, TensorOptions(kDouble));
}
Tensor loss_of(const Tensor& y) { return (y - 0.25).square().mean(); }

void expect_close(const nn::Module& net, const nn::Module& alone) {
  const auto ours = net.named_parameters(), theirs = alone.named_parameters();
  ASSERT_EQ(ours.keys(), theirs.keys());
  for (const auto& p : ours)
    EXPECT_TRUE(allclose(p.value(), theirs[p.key()], 1e-12, 1e-12)) << p.key();
}

// One module trains with the rows of both ranks.
std::shared_ptr<ScriptModule> trained_alone(int steps) {
  const auto net = scripted("mlp_scripted");
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < steps; ++step) {
    sgd.zero_grad();
    loss_of(net->forward(cat({part_of(0, step, {4, 5}), part_of(1, step, {4, 5})}))).backward();
    sgd.step();
  }
  return net;
}

TEST(ScriptRanks, ReplicateAndDdpTrainAsOneModule) {
  const auto alone = trained_alone(4);
  with_groups_of(2, [&](const Group& g) {
    const auto net = scripted("mlp_scripted"), wrapped = scripted("mlp_scripted");
    if (g->rank() == 1)
      for (const Tensor& p : net->parameters()) p.detach().mul_(2);  // rank 0's values win
    replicate(net, g);
    DistributedDataParallel<std::shared_ptr<ScriptModule>> ddp(wrapped, g);
    optim::SGD a(net->parameters(), optim::SGDOptions(0.1).momentum(0.9)),
        b(wrapped->parameters(), optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 4; ++step) {
      const Tensor x = part_of(g->rank(), step, {4, 5});
      a.zero_grad(), b.zero_grad();
      loss_of(nn::call(*net, x)).backward();
      loss_of(ddp(x)).backward();
      a.step(), b.step();
    }
    expect_equal_on_all_ranks(g, net->parameters());
    expect_equal_on_all_ranks(g, wrapped->parameters());
    expect_close(*net, *alone);
    expect_close(*wrapped, *alone);
  });
}

// The code assigns to the norms' buffers: ranks keep the same ones.
TEST(ScriptRanks, BuffersStayTheSame) {
  with_groups_of(2, [&](const Group& g) {
    const auto net = scripted("cnn_scripted");
    replicate(net, g);
    for (int step = 0; step < 2; ++step)
      nn::call(*net, part_of(g->rank(), step, {2, 3, 8, 8})).sum().backward();
    (void)nn::call(*net, part_of(0, 9, {2, 3, 8, 8}));
    EXPECT_EQ(net->named_buffers()["norm1.num_batches_tracked"].item<int64_t>(), 3);
    expect_equal_on_all_ranks(g, net->buffers());
  });
}

TEST(ScriptRanks, ShardsTrainAsOneModule) {
  const auto alone = trained_alone(3);
  with_groups_of(2, [&](const Group& g) {
    const auto net = scripted("mlp_scripted");
    fully_shard(net, g);
    EXPECT_EQ(net->parameters()[0].dim(), 1);
    optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 3; ++step) {
      sgd.zero_grad();
      loss_of(nn::call(*net, part_of(g->rank(), step, {4, 5}))).backward();
      sgd.step();
    }
    const auto state = full_state_dict(*net);
    const auto want = alone->named_parameters();
    for (const auto& p : want)
      EXPECT_TRUE(allclose(state[p.key()], p.value(), 1e-12, 1e-12)) << p.key();
    EXPECT_ERROR_TEXT(net->clone(), "[clone]");
  });
}

// The interpreter calls no hooks of modules inside, so only the whole can be sharded.
TEST(ScriptRanks, ShardsOfAPartAreAnErrorThatNamesThem) {
  with_groups_of(2, [&](const Group& g) {
    const auto net = scripted("mlp_scripted");
    fully_shard(net->named_children()["layers"], g);
    const std::string said = error_of([&] { nn::call(*net, part_of(0, 0, {4, 5})); });
    EXPECT_NE(said.find("sharded"), said.npos) << said;
  });
}

}  // namespace
}  // namespace ramet::distributed
