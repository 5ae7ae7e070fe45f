// An optimizer's step inside the backward, before and after the ranks reduce their gradients, for
// DistributedDataParallel, replicate() and fully_shard(). Ranks are threads.
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/stages/stages.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::distributed {
namespace {

using Ddp = DistributedDataParallel<TextNet>;
constexpr int kSteps = 4;

optim::AdamOptions adam() { return optim::AdamOptions(0.05).weight_decay(0.01); }

/// One optimizer for each parameter: a step of one touches no other.
class OneEach {
 public:
  explicit OneEach(const TextNet& net) {
    for (const auto& item : net->named_parameters())
      of_.emplace(item.key(), optim::Adam(std::vector<Tensor>{item.value()}, adam()));
  }
  void step(const std::string& name) {
    of_.at(name).step();
    of_.at(name).zero_grad();
  }

 private:
  std::map<std::string, optim::Adam> of_;
};

void expect_same_values(const TextNet& net, const TextNet& twin) {
  for (const auto& item : twin->named_parameters())
    EXPECT_TRUE(same_bits(net->named_parameters()[item.key()].detach(), item.value().detach()))
        << item.key();
}

void expect_no_gradients(const TextNet& net) {
  for (const Tensor& p : net->parameters()) EXPECT_FALSE(p.grad().defined());
}

// The mean over the ranks, step by step, without any of what is tested.
TextNet trained_alone(int ranks) {
  TextNet net = text_net();
  optim::Adam optimizer(net->parameters(), adam());
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Tensor> sum(net->parameters().size());
    for (int rank = 0; rank < ranks; ++rank) {
      net->zero_grad();
      const TextBatch batch = text_batch(rank, step);
      text_loss(net(batch.ids), batch).backward();
      for (size_t i = 0; i < sum.size(); ++i) {
        const Tensor& g = net->parameters()[i].grad();
        sum[i] = sum[i].defined() ? sum[i] + g : g.clone();
      }
    }
    for (size_t i = 0; i < sum.size(); ++i) net->parameters()[i].mutable_grad() = sum[i] / ranks;
    optimizer.step();
  }
  return net;
}

TEST(StepInBackward, AfterTheReduction) {
  for (int ranks : {1, 2, 3})
    for (bool composable : {false, true})
      with_groups_of(ranks, [&](const Group& g) {
        TextNet net = text_net();
        DdpOptions o;
        o.bucket_bytes = 2000;
        o.isolated = true;
        std::optional<Ddp> ddp;
        if (composable) replicate(net, g, o);
        else ddp.emplace(net, g, o);
        OneEach optimizers(net);
        const PostSyncHook hook = [&](const std::string& name, const Tensor&) {
          optimizers.step(name);
        };
        composable ? replicate_handle(net).register_post_sync_hook(hook)
                   : ddp->register_post_sync_hook(hook);
        for (int step = 0; step < kSteps; ++step) {
          const TextBatch batch = text_batch(g->rank(), step);
          text_loss(composable ? net(batch.ids) : (*ddp)(batch.ids), batch).backward();
          expect_no_gradients(net);
        }
        expect_equal_on_all_ranks(g, net->parameters());
        if (ranks < 3) expect_same_values(net, trained_alone(ranks));  // one order of two summands
      });
}

// Over the replicas of a rank and over the ranks, before the steps.
TEST(StepInBackward, OfSeveralReplicas) {
  with_groups_of(2, [&](const Group& g) {
    DdpOptions o;
    o.bucket_bytes = 2000;
    o.devices = {"cpu:0", "cpu:1"};
    TextNet net = text_net(), twin = text_net();
    Ddp ddp(net, g, o), plain(twin, g, o);
    OneEach optimizers(net);
    optim::Adam after(twin->parameters(), adam());
    ddp.register_post_sync_hook(
        [&](const std::string& name, const Tensor&) { optimizers.step(name); });
    for (int step = 0; step < kSteps; ++step) {
      const TextBatch batch = text_batch(g->rank(), step);
      text_loss(ddp(batch.ids), batch).backward();
      text_loss(plain(batch.ids), batch).backward();
      after.step();
      after.zero_grad();
    }
    expect_no_gradients(net);
    expect_same_values(net, twin);
  });
}

// As plain steps after the backward, for all communication hooks.
TEST(StepInBackward, AfterStages) {
  with_groups_of(2, [&](const Group& g) {
    for (int kind = 0; kind < 3; ++kind) {
      const auto options = [kind] {
        DdpOptions o;
        o.bucket_bytes = 2000;
        if (kind == 0) o.stages = {fp16_stage()};
        if (kind == 1) o.stages = {int8_stage(32)};
        if (kind == 2) o.stages = {power_sgd_stage({})};
        return o;
      };
      TextNet net = text_net(), twin = text_net();
      Ddp ddp(net, g, options()), plain(twin, g, options());
      optim::Adam optimizer(net->parameters(), adam()), after(twin->parameters(), adam());
      // One for all: it steps those that have a gradient, which are several at the first hook.
      ddp.register_post_sync_hook([&](const std::string&, const Tensor&) {
        optimizer.step();
        optimizer.zero_grad();
      });
      for (int step = 0; step < kSteps; ++step) {
        const TextBatch batch = text_batch(g->rank(), step);
        text_loss(ddp(batch.ids), batch).backward();
        text_loss(plain(batch.ids), batch).backward();
        after.step();
        after.zero_grad();
      }
      expect_same_values(net, twin);
    }
  });
}

// Each rank goes its own way: nothing is left to reduce.
TEST(StepInBackward, BeforeTheReduction) {
  for (int ranks : {1, 2, 3})
    for (bool stages : {false, true})
      with_groups_of(ranks, [&](const Group& g) {
        TextNet net = text_net(), twin = text_net();
        DdpOptions o;
        o.bucket_bytes = 2000;
        if (stages) o.stages = {fp16_stage()};
        Ddp ddp(net, g, o);
        optim::Adam optimizer(net->parameters(), adam()), alone(twin->parameters(), adam());
        for (const Tensor& p : net->parameters())
          p.register_post_accumulate_grad_hook([&](const Tensor&) {
            optimizer.step();
            optimizer.zero_grad();
          });
        for (int step = 0; step < kSteps; ++step) {
          const TextBatch batch = text_batch(g->rank(), step);
          text_loss(ddp(batch.ids), batch).backward();
          expect_no_gradients(net);
          EXPECT_EQ(ddp.unused_parameters().size(), net->parameters().size());
          text_loss(twin(batch.ids), batch).backward();
          alone.step();
          alone.zero_grad();
        }
        expect_same_values(net, twin);
      });
}

// A shard's gradient comes reduced. One optimizer for all shards: its zero_grad() in the first hook
// does not take the others' gradients away, which have still to come.
TEST(StepInBackward, OfShards) {
  for (int ranks : {1, 2, 3})
    for (bool one_optimizer : {true, false})
      with_groups_of(ranks, [&](const Group& g) {
        TextNet net = text_net();
        shard_all(net, DeviceMesh(g));
        OneEach each(net);
        optim::Adam all(net->parameters(), adam());
        for (const auto& item : net->named_parameters())
          item.value().register_post_accumulate_grad_hook([&, name = item.key()](const Tensor&) {
            if (!one_optimizer) return each.step(name);
            all.step();
            all.zero_grad();
          });
        for (int step = 0; step < kSteps; ++step) {
          const TextBatch batch = text_batch(g->rank(), step);
          text_loss(net(batch.ids), batch).backward();
          expect_no_gradients(net);
        }
        const auto state = full_state_dict(*net);
        if (ranks == 3) return;
        const TextNet twin = trained_alone(ranks);
        for (const auto& item : twin->named_parameters())
          EXPECT_TRUE(same_bits(state[item.key()], item.value().detach())) << item.key();
      });
}

// ---- the hooks themselves -----------------------------------------------------------------------

TEST(PostSyncHooks, OnceForEachParameterThatAnyRankUsed) {
  with_groups_of(2, [](const Group& g) {
    FactorsOf net(3);
    DistributedDataParallel<FactorsOf> ddp(net, g);
    std::vector<std::string> names;
    std::vector<double> seen;
    const unsigned first =
        ddp.register_post_sync_hook([&](const std::string& name, const Tensor& p) {
          EXPECT_TRUE(p.is_same(net->named_parameters()[name]));
          EXPECT_FALSE(GradMode::is_enabled());
          names.push_back(name);
          seen.push_back(p.grad().sum().item<double>());
        });
    const auto run = [&](const std::vector<int>& used) {
      names.clear();
      seen.clear();
      ddp(ones({2}), nn::parallel::NoScatter<std::vector<int>>(used)).backward();
    };
    std::vector<std::string> in_order;  // of the reduction
    for (const auto& bucket : ddp.plan())
      for (const std::string& name : bucket)
        if (name != "f2.w") in_order.push_back(name);
    run({g->rank()});  // f2 is used by none
    EXPECT_EQ(names, in_order);
    EXPECT_EQ(names.size(), 2u);
    EXPECT_EQ(seen, (std::vector<double>{1, 1}));
    {
      const auto off = ddp.no_sync();
      run({0, 1, 2});
      EXPECT_TRUE(names.empty());
    }
    int second = 0;
    const unsigned other =
        ddp.register_post_sync_hook([&](const std::string&, const Tensor&) { ++second; });
    ddp.remove_post_sync_hook(first);
    net->zero_grad();
    run({2});
    EXPECT_TRUE(names.empty());
    EXPECT_EQ(second, 1);
    ddp.remove_post_sync_hook(other);
    EXPECT_ERROR_TEXT(ddp.remove_post_sync_hook(other), "expected a number that a registration");
    EXPECT_ERROR_TEXT(ddp.register_post_sync_hook(nullptr), "got an empty function");
  });
}

// Modules that share a reducer have hooks of their own, which may do anything.
TEST(PostSyncHooks, OfOneModuleOfSeveral) {
  with_groups_of(2, [](const Group& g) {
    Factor a(1.0), b(2.0);
    replicate(a, g);
    replicate(b, g);
    std::vector<std::string> of_a, of_b;
    int inside = 0;
    replicate_handle(a).register_post_sync_hook([&](const std::string& name, const Tensor& p) {
      of_a.push_back(name);
      if (inside++) return;
      p.mutable_grad() = Tensor();
      const EnableGradGuard on;  // another step, synchronised as well
      a(full({2}, 5.0 + g->rank())).sum().backward();
    });
    const unsigned mine = replicate_handle(b).register_post_sync_hook(
        [&](const std::string& name, const Tensor&) { of_b.push_back(name); });
    EXPECT_ERROR_TEXT(replicate_handle(a).remove_post_sync_hook(mine), "expected a number");
    (a(ones({2})) + b(full({2}, g->rank() + 1.0))).sum().backward();
    EXPECT_EQ(of_a, (std::vector<std::string>{"w", "w"}));
    EXPECT_EQ(of_b, (std::vector<std::string>{"w"}));
    EXPECT_TRUE(a->w.grad().equal(full({2}, 5.5)));
    EXPECT_TRUE(b->w.grad().equal(full({2}, 1.5)));
  });
}

TEST(PostSyncHooks, ThatThrow) {
  with_groups(2, seconds(30), [](const Group& g) {
    Factor net(1.0);
    DistributedDataParallel<Factor> ddp(net, g);
    ddp.register_post_sync_hook([&](const std::string&, const Tensor&) {
      if (g->rank() == 1) throw std::runtime_error("Badness!");
    });
    std::string said;
    for (int step = 0; step < 2 && said.empty(); ++step) {
      said = error_of([&] { ddp(ones({2})).sum().backward(); });
      if (said == "no error") said.clear();
    }
    expect_part(said, g->rank() ? "Badness!" : "a post-sync hook failed on this rank");
  });
}

}  // namespace
}  // namespace ramet::distributed
