// Communication stages of replicated modules, with ranks as threads: how they are reached, and that
// checkpoints keep what they remember.
#include <gtest/gtest.h>

#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/checkpoint/checkpoint.h"
#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/stages/stages.h"
#include "tests/parallel/distributed/checkpoint/checkpoint_support.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

ReplicateOptions isolated() {
  ReplicateOptions o;
  o.isolated = true;
  return o;
}

// What one synchronised backward leaves.
Tensor gradient_of(nn::Linear& net, const Tensor& x) {
  net->zero_grad();
  net(x).sum().backward();
  return net->weight.grad().clone();
}

TEST(ReplicateStages, RegisteredThroughTheHandle) {
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Linear net(nn::LinearOptions(63, 1).bias(false));
    replicate(net, g, isolated());
    auto handle = replicate_handle(net);
    EXPECT_TRUE(handle.comm_stages().empty());
    // What a mean of 63 numbers from 65 to 127.03 rounds to with 8 bits, worked out by hand.
    const Tensor integers = arange(63, TensorOptions(kFloat)) + 65, x = integers - 0.03;
    x.select(0, 62).fill_(127.03);
    const Tensor rows = x.view({1, 63});
    EXPECT_TRUE(same_bits(gradient_of(net, rows).view({63}), x));

    handle.register_comm_stage(fp16_stage());  // at once
    g->reset_wire_bytes();
    EXPECT_FALSE(same_bits(gradient_of(net, rows).view({63}), x));
    EXPECT_EQ(g->wire_bytes("all_reduce_stages"), 63u * 2);
    handle.register_comm_stage(int8_stage(64));
    g->reset_wire_bytes();
    EXPECT_TRUE(same_bits(gradient_of(net, rows).view({63}), integers));
    EXPECT_EQ(g->wire_bytes("all_reduce_stages"), 63u + 4);
    EXPECT_EQ(handle.comm_stages().descriptions(),
              (std::vector<std::string>{"fp16", "int8(block 64, seed 0)"}));
    EXPECT_EQ(handle.comm_stages().step(), 3);
    EXPECT_EQ(handle.comm_stages().bytes().at(0).before, 2 * 63u * 4);
  });
}

TEST(ReplicateStages, Refusals) {
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Linear net(4, 4), other(4, 4);
    replicate(net, g);
    auto handle = replicate_handle(net);
    const auto stage = fp16_stage();
    EXPECT_ERROR_TEXT(handle.register_comm_stage(stage), "expected one replicated with isolated");
    EXPECT_ERROR_TEXT(handle.comm_stages(), "expected one replicated with isolated");
    ReplicateOptions o;
    o.stages = {stage};
    EXPECT_ERROR_TEXT(replicate(other, g, o), "stages: expected none, or isolated");
    // The refused stage has no place, and the ranks still go together.
    nn::Linear alone(4, 4);
    replicate(alone, g, isolated());
    replicate_handle(alone).register_comm_stage(stage);
    EXPECT_ERROR_TEXT(replicate_handle(alone).register_comm_stage(stage), "has a place already");
    EXPECT_ERROR_TEXT(
        replicate_handle(alone).register_comm_stage(g->rank() ? bf16_stage() : int8_stage(64)),
        "the ranks have different stages");
    EXPECT_EQ(replicate_handle(alone).comm_stages().descriptions(),
              std::vector<std::string>{"fp16"});
  });
}

// A module of two matrices, with the errors that PowerSGD feeds back.
struct Training {
  Training(const Group& g, bool later) {
    PowerSgdOptions low_rank;
    low_rank.rank = 1, low_rank.start = 0, low_rank.min_compression_rate = 1;
    ReplicateOptions o = isolated();
    if (!later) o.stages = {power_sgd_stage(low_rank)};
    int64_t seed = 3;
    for (const Tensor& p : net->parameters())
      p.detach().copy_(numbered(p.sizes().vec(), kFloat, seed++) / 251);
    replicate(net, g, o);
    if (later) replicate_handle(net).register_comm_stage(power_sgd_stage(low_rank));
  }
  void steps(const Group& g, int64_t until) {
    for (; step < until; ++step) {
      sgd.zero_grad();
      const Tensor x = numbered({5, 12}, kFloat, 10 * step + g->rank()) / 251;
      net(x).square().mean().backward();
      sgd.step();
    }
  }
  DistributedCheckpoint checkpoint(const Group& g, bool with_stages = true) {
    DistributedCheckpoint c(g);
    c.add("net", *net).add("sgd", sgd, *net).add("step", step);
    if (with_stages) c.add_own("stages", replicate_handle(net).comm_stages());
    return c;
  }
  bool is(const Training& other) const {
    const auto mine = net->parameters(), theirs = other.net->parameters();
    for (size_t i = 0; i < mine.size(); ++i)
      if (!same_bits(mine[i].detach(), theirs[i].detach())) return false;
    return true;
  }
  nn::Sequential net{nn::Linear(12, 8), nn::Linear(8, 6)};
  optim::SGD sgd{net->parameters(), optim::SGDOptions(0.01).momentum(0.9)};
  int64_t step = 0;
};

TEST(ReplicateStages, ARunGoesOnFromACheckpoint) {
  for (const bool later : {false, true}) {
    TempFolder folder;
    with_groups(2, seconds(60), [&](const Group& g) {
      Training whole(g, later);
      whole.steps(g, 5);
      whole.checkpoint(g).save(folder.path("c"), 5);
      whole.steps(g, 10);

      Training second(g, !later);  // communication hooks do not depend on how they were set
      EXPECT_TRUE(second.checkpoint(g).load(folder.path("c")).not_restored.empty());
      EXPECT_EQ(replicate_handle(second.net).comm_stages().step(), 5);
      second.steps(g, 10);
      EXPECT_TRUE(second.is(whole));

      Training forgetful(g, later);  // what the errors are worth
      forgetful.checkpoint(g, false).load(folder.path("c"));
      forgetful.steps(g, 10);
      EXPECT_FALSE(forgetful.is(whole));
    });
  }
}

}  // namespace
}  // namespace ramet::distributed
