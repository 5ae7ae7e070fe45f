// The matrix over every module and every optimizer: what two ranks have of it (tests/modules.h).
#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "tests/modules.h"
#include "tests/optimizers.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

using namespace ramet::testing;

constexpr int kRanks = 2, kSteps = 3;

AnyOptimizer sgd() { return optimizer_with<optim::SGD>("SGD", optim::SGDOptions(.1).momentum(.9)); }
/// Ranks draw from one generator: a module that draws in training is tested in evaluation.
Held net_of(const ModuleRow& row) {
  Held net = held(row);
  if (row.why_not(Check::kRepeats)) net->eval();
  return net;
}
/// One process over the ranks' parts, one after the other; then the result of a last forward.
Tensor trained_alone(const ModuleRow& row, const AnyOptimizer& optimizer) {
  Held net = net_of(row);
  Steps step(optimizer, net->parameters());
  for (uint64_t i = 0; i < kSteps; ++i)
    step([&] {
      net->zero_grad();
      Tensor sum;
      for (int rank = 0; rank < kRanks; ++rank) {
        const Tensor loss = loss_of(net(part_of(row.draw(i), rank, kRanks)));
        loss.backward();
        sum = sum.defined() ? sum + loss.detach() : loss.detach();
      }
      return sum;
    });
  return net(row.draw(kSteps));
}
/// The same on a rank, with `model` as the forward.
template <class F>
void train(const ModuleRow& row, Steps step, Held net, const Group& group, const F& model) {
  for (uint64_t i = 0; i < kSteps; ++i)
    step([&] {
      net->zero_grad();
      const Tensor loss = loss_of(model(part_of(row.draw(i), group->rank(), kRanks)));
      loss.backward();
      return loss;
    });
}
/// The problem of the ranks of `train`, each of which returns what the last forward gave.
template <class F>
std::string on_ranks(const ModuleRow& row, const AnyOptimizer& optimizer, const F& last) {
  const Tensor expected = trained_alone(row, optimizer);
  std::vector<std::string> found(kRanks);
  with_groups(kRanks, seconds(60), [&](const Group& group) {
    const Tensor y = last(group, net_of(row));
    found[static_cast<size_t>(group->rank())] = difference(y, expected, 1e-9);
  });
  return found[0].empty() ? found[1] : found[0];
}

std::string replicated(const ModuleRow& row, const AnyOptimizer& optimizer) {
  return on_ranks(row, optimizer, [&](const Group& group, Held net) {
    DdpOptions options;
    options.average = Average::sum;
    DistributedDataParallel<Held> ddp(net, group, options);
    train(row, Steps(optimizer, net->parameters()), net, group,
          [&](const Tensors& x) { return ddp(x); });
    expect_equal_on_all_ranks(group, net->parameters());
    return net(row.draw(kSteps));
  });
}
TEST(RankMatrix, DistributedDataParallel) {
  expect_of_modules(Check::kRanks, [](const ModuleRow& row) { return replicated(row, sgd()); });
}
TEST(RankMatrix, DistributedDataParallelWithEveryOptimizer) {
  for (const AnyOptimizer& optimizer : every_optimizer())
    EXPECT_EQ(replicated(module_row("Sequential"), optimizer), "") << optimizer.name;
}

// `resharded`: the module is a group of its own, which the backward gathers again after the forward
// has given it back.
std::string sharded(const ModuleRow& row, const AnyOptimizer& optimizer, bool resharded = false) {
  return on_ranks(row, optimizer, [&](const Group& group, Held net) {
    FullyShardOptions options;
    options.average = Average::sum;
    if (resharded) {
      options.reshard_after_forward = true;
      fully_shard(std::vector{net->held().shared_from_this()}, DeviceMesh(group), options);
    }
    fully_shard(net, group, options);
    train(row, Steps(optimizer, net->parameters()), net, group,
          [&](const Tensors& x) { return net(x); });
    const NoGradGuard off;
    return net(row.draw(kSteps));
  });
}
TEST(RankMatrix, FullyShard) {
  expect_of_modules(Check::kShards, [](const ModuleRow& row) { return sharded(row, sgd()); });
}
TEST(RankMatrix, FullyShardThatGathersAgain) {
  expect_of_modules(Check::kShards, [](const ModuleRow& row) {
    // Lists have no forward of their own around which their group would be gathered.
    const bool is_called = row.name != "ModuleList" && row.name != "ModuleDict";
    return sharded(row, sgd(), is_called);
  });
}
TEST(RankMatrix, FullyShardWithEveryOptimizer) {
  for (const AnyOptimizer& optimizer : every_optimizer()) {
    std::string found;
    try {
      found = sharded(module_row("Sequential"), optimizer);
    } catch (const std::exception& e) { found = e.what(); }
    if (optimizer.no_shards) EXPECT_NE(found, "") << optimizer.name << ": " << optimizer.no_shards;
    else EXPECT_EQ(found, "") << optimizer.name;
  }
}

}  // namespace
}  // namespace ramet::distributed
