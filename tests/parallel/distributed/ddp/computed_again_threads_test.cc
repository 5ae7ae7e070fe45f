// autograd::checkpoint inside modules: replicas, captures, data-parallel ranks and sharded modules
// have the same bits as without it, under autocast too.
#include <gtest/gtest.h>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/checkpoint.h"
#include "autograd/graph/captured.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/norm/instance_norm.h"
#include "nn/layers/sequence/transformer.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "parallel/apply/data_parallel.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "runtime/memory/allocator.h"
#include "tests/devices.h"
#include "tests/parallel/distributed/ddp/recomputed.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/shard_precision.h"

namespace ramet::distributed {
namespace {

using autograd::checkpoint;

// A layer, a norm that counts batches, random zeros; and again, inside a checkpoint of both.
struct BlocksImpl : nn::Cloneable<BlocksImpl> {
  explicit BlocksImpl(bool again = false, nn::BufferPolicy policy = nn::BufferPolicy::first)
      : again(again), policy(policy) {
    BlocksImpl::reset();
  }
  void reset() override {
    a = register_module("a", nn::Linear(6, 8));
    norm = register_module("norm", nn::BatchNorm1d(8));
    drop = register_module("drop", nn::Dropout(0.25));
    b = register_module("b", nn::Linear(8, 8));
    c = register_module("c", nn::Linear(8, 3));
    for (const auto& buffer : norm->named_buffers()) norm->set_buffer_policy(buffer.key(), policy);
  }
  Tensor block(const Tensor& x) { return drop(norm(a(x)).relu()); }
  Tensor forward(const Tensor& x) {
    if (!again) return c(b(block(x)).tanh() + 1);
    const Tensor h = checkpoint(
        [this](const Tensor& t) {
          return b(checkpoint([this](const Tensor& u) { return block(u); }, t)).tanh();
        },
        x);
    return c(h + 1);
  }
  bool again;
  nn::BufferPolicy policy;
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  nn::BatchNorm1d norm{nullptr};
  nn::Dropout drop{nullptr};
};
RAMET_MODULE(Blocks);

Blocks blocks(bool again, nn::BufferPolicy policy = nn::BufferPolicy::first) {
  manual_seed(3);
  return Blocks(again, policy);
}
Tensor rows_of(int rank, int step) {
  return randn({8, 6}, Generator(Device(kCPU, 0), static_cast<uint64_t>(100 * step + rank)));
}
std::vector<Tensor> state_of(nn::Module& net) {
  std::vector<Tensor> all;
  for (const Tensor& p : net.parameters()) all.push_back(p.grad().clone());
  for (const Tensor& t : net.parameters()) all.push_back(t.detach().clone());
  for (const Tensor& t : net.buffers()) all.push_back(t.clone());
  return all;
}
void expect_same(const std::vector<Tensor>& plain, const std::vector<Tensor>& again) {
  ASSERT_EQ(plain.size(), again.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(same_bits(plain[i], again[i])) << i;
}

TEST(Checkpoint, NormsLearnOfABatchOnce) {
  for (const bool momentum : {true, false}) {
    SCOPED_TRACE(momentum);
    const auto trained = [&](bool again) {
      manual_seed(3);
      nn::BatchNorm2dOptions options(3);
      if (!momentum) options.momentum(std::nullopt);
      nn::BatchNorm2d batch(options);
      nn::InstanceNorm2d instance(nn::InstanceNorm2dOptions(3).track_running_stats(true));
      const auto fn = [&](const Tensor& x) { return instance(batch(x).relu()).tanh(); };
      std::vector<Tensor> out;
      for (int step = 0; step < 3; ++step) {
        const Tensor x = randn({4, 3, 5, 5}).set_requires_grad(true);
        const Tensor y = again ? checkpoint(fn, x) : fn(x);
        y.pow(2).sum().backward();
        out.push_back(x.grad());
      }
      for (const Tensor& t : batch->buffers()) out.push_back(t.clone());
      for (const Tensor& t : instance->buffers()) out.push_back(t.clone());
      return out;
    };
    expect_same(trained(false), trained(true));
  }
}

TEST(Checkpoint, InReplicas) {
  for (const auto policy : {nn::BufferPolicy::first, nn::BufferPolicy::merge_stats})
    for (const int devices : {1, 2, 4}) {
      SCOPED_TRACE(std::to_string(devices) + " devices, policy " +
                   std::to_string(static_cast<int>(policy)));
      const auto trained = [&](bool again) {
        Blocks net = blocks(again, policy);
        nn::parallel::DataParallel<Blocks> model(net, cpus(devices));
        for (int step = 0; step < 3; ++step) {
          net->zero_grad();
          model(rows_of(0, step)).pow(2).mean().backward();
          optim::SGD(net->parameters(), 0.1).step();
        }
        return state_of(*net);
      };
      expect_same(trained(false), trained(true));
    }
}

// Each replica's function runs again on its own.
TEST(Checkpoint, NormsOverReplicasCannotMeetAgain) {
  Blocks net = blocks(true, nn::BufferPolicy::sync);
  nn::parallel::DataParallel<Blocks> model(net, cpus(2));
  const Tensor loss = model(rows_of(0, 0)).pow(2).mean();
  EXPECT_ERROR_TEXT(loss.backward(), "the replicas cannot synchronise: it is computed again");
}

// The replicas are made inside the function: their threads save as ever.
TEST(Checkpoint, AroundReplicas) {
  const auto trained = [](bool again) {
    Blocks net = blocks(false);
    nn::parallel::DataParallel<Blocks> model(net, {"cpu:0", "cpu:1"});
    const Tensor x = rows_of(0, 0).set_requires_grad(true);
    const auto fn = [&](const Tensor& t) { return model(t.sin()).exp(); };
    (again ? checkpoint(fn, x) : fn(x)).sum().backward();
    std::vector<Tensor> out;
    for (const Tensor& p : net->parameters()) out.push_back(p.grad());
    out.push_back(x.grad());
    out.push_back(rand({4}));
    return out;
  };
  expect_same(trained(false), trained(true));
}

TEST(Checkpoint, InCapturedSteps) {
  for (const int devices : {0, 2}) {
    SCOPED_TRACE(devices);
    const auto trained = [&](bool again, bool captured) {
      Blocks net = blocks(again);
      std::optional<nn::parallel::DataParallel<Blocks>> model;
      if (devices) model.emplace(net, std::initializer_list<Device>{"cpu:0", "cpu:1"});
      optim::Adam adam(net->parameters(), optim::AdamOptions(0.01));
      const auto step = [&](const Tensor& x) {
        adam.zero_grad();
        Tensor loss = (model ? (*model)(x) : net(x)).pow(2).mean();
        loss.backward();
        adam.step();
        return loss;
      };
      Captured replayed(step);
      std::vector<Tensor> losses;
      for (int s = 0; s < 6; ++s) {
        const Tensor x = rows_of(0, s);
        losses.push_back((captured ? replayed(x) : step(x)).detach().clone());
      }
      if (captured) { EXPECT_GE(replayed.counters().replays, 4u); }
      for (const Tensor& t : state_of(*net)) losses.push_back(t);
      return losses;
    };
    const auto plain = trained(false, false);
    expect_same(plain, trained(true, false));
    expect_same(plain, trained(true, true));
  }
}

void expect_same_on_ranks(bool replicated, nn::BufferPolicy policy) {
  with_groups(2, seconds(60), [replicated, policy](const Group& g) {
    for (const int64_t bytes : {int64_t{1}, int64_t{1} << 20}) {
      Blocks plain = blocks(false, policy), again = blocks(true, policy);
      {  // ranks share a generator here
        const NoGradGuard off;
        for (size_t i = 0; i < plain->parameters().size(); ++i)
          again->parameters()[i].copy_(plain->parameters()[i]);
      }
      for (Blocks net : {plain, again}) net->drop->options.p(0);
      std::vector<std::unique_ptr<DistributedDataParallel<Blocks>>> ddp;
      for (Blocks net : {plain, again}) {
        DdpOptions o = buckets_of(bytes);
        o.isolated = replicated;
        if (replicated) replicate(net, g, o);
        else ddp.push_back(std::make_unique<DistributedDataParallel<Blocks>>(net, g, o));
      }
      for (int step = 0; step < 3; ++step) {
        for (const size_t i : {size_t{0}, size_t{1}}) {
          Blocks net = i ? again : plain;
          net->zero_grad();
          const Tensor x = rows_of(g->rank(), step);
          (replicated ? net->forward(x) : (*ddp[i])(x)).pow(2).mean().backward();
          optim::SGD(net->parameters(), 0.1).step();
        }
        expect_same(state_of(*plain), state_of(*again));
      }
    }
  });
}
TEST(Checkpoint, OnDataParallelRanks) { expect_same_on_ranks(false, nn::BufferPolicy::first); }
TEST(Checkpoint, OnReplicatedRanks) { expect_same_on_ranks(true, nn::BufferPolicy::first); }
TEST(Checkpoint, OfNormsOverRanks) { expect_same_on_ranks(false, nn::BufferPolicy::sync); }

struct ShardedImpl : nn::Cloneable<ShardedImpl> {
  explicit ShardedImpl(bool again = false) : again(again) { ShardedImpl::reset(); }
  void reset() override {
    layers.clear();
    for (int i = 0; i < 4; ++i)
      layers.push_back(register_module("l" + std::to_string(i), nn::Linear(6, 6)));
  }
  Tensor forward(Tensor x) {
    for (nn::Linear& l : layers) {
      const auto fn = [&l](const Tensor& t) { return l(t).tanh(); };
      x = again ? checkpoint(fn, x) : fn(x);
    }
    return x;
  }
  bool again;
  std::vector<nn::Linear> layers;
};
RAMET_MODULE(Sharded);

TEST(Checkpoint, OfShardedModules) {
  for (const bool reshard : {false, true})
    with_groups(2, seconds(60), [reshard](const Group& g) {
      const auto trained = [&](bool again) {
        Sharded net(again);
        uint64_t seed = 3;
        for (const Tensor& p : net->parameters())
          p.data().copy_(randn(p.sizes(), Generator(Device(kCPU, 0), seed++)).mul(0.4));
        FullyShardOptions o;
        o.reshard_after_forward = reshard;
        for (const nn::Linear& l : net->layers) fully_shard(l, DeviceMesh(g), o);
        fully_shard(net, DeviceMesh(g), o);
        std::vector<Tensor> out;
        for (int step = 0; step < 3; ++step) {
          net->zero_grad();
          const Tensor loss = net->forward(rows_of(g->rank(), step)).pow(2).mean();
          loss.backward();
          optim::SGD(net->parameters(), 0.1).step();
          out.push_back(loss.detach().clone());
        }
        return out;
      };
      expect_same(trained(false), trained(true));
    });
}

// Products in bfloat16 from float32 parameters. `middle` runs in the part that is computed again
// and after it, so two casts of it serve one gradient.
struct CastTwiceImpl : nn::Cloneable<CastTwiceImpl> {
  explicit CastTwiceImpl(bool again = false) : again(again) { CastTwiceImpl::reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(6, 8));
    middle = register_module("middle", nn::Linear(8, 8));
    last = register_module("last", nn::Linear(8, 3));
  }
  Tensor forward(const Tensor& x) {
    const auto fn = [this](const Tensor& t) { return middle(first(t).tanh()).relu(); };
    const Tensor h = again ? checkpoint(fn, x) : fn(x);
    EXPECT_EQ(h.scalar_type(), kBFloat16);
    return last(middle(h).tanh());
  }
  bool again;
  nn::Linear first{nullptr}, middle{nullptr}, last{nullptr};
};
RAMET_MODULE(CastTwice);

// The same net on every rank that calls it.
CastTwice cast_twice(bool again) {
  CastTwice net(again);
  uint64_t seed = 5;
  for (const Tensor& p : net->parameters())
    p.data().copy_(randn(p.sizes(), Generator(Device(kCPU, 0), seed++)).mul(0.5));
  return net;
}
template <class Net> void cast_backward(Net& net, const Tensor& x) {
  Tensor y;
  {
    const AutocastGuard autocast(kCPU);
    y = net(x);
    EXPECT_EQ(y.scalar_type(), kBFloat16);
  }
  y.to(kFloat).pow(2).sum().backward();
}

TEST(Checkpoint, UnderAutocastOnEveryNumberOfRanks) {
  const auto trained = [](int ranks, const std::vector<Device>& devices, bool again) {
    std::vector<Tensor> result;
    with_groups_of(ranks, [&](const Group& g) {
      CastTwice net = cast_twice(again);
      DdpOptions o;
      o.order = ReduceOrder::tree(4);
      o.average = Average::sum;
      o.batch = Batch::whole;
      o.devices = devices;
      DistributedDataParallel<CastTwice> ddp(net, g, o);
      optim::SGD sgd(net->parameters(), optim::SGDOptions(0.01).momentum(0.9));
      for (int step = 0; step < 3; ++step) {
        sgd.zero_grad();
        cast_backward(ddp, rows_of(0, step));
        sgd.step();
      }
      if (g->rank() == 0) result = state_of(*net);
    });
    return result;
  };
  expect_same_bits_for_every_number_of_ranks(
      [&](int ranks, const std::vector<Device>& devices) { return trained(ranks, devices, true); });
  expect_same(trained(2, {}, false), trained(2, {}, true));
}

// The means of what each rank's rows give alone, without checkpoint.
void expect_cast_means(int ranks, bool sharded) {
  with_groups_of(ranks, [&](const Group& g) {
    CastTwice net = cast_twice(true), alone = cast_twice(false);
    if (sharded) {
      const FullyShardOptions o = with_policy(kBFloat16, kFloat);
      fully_shard(net->first, DeviceMesh(g), o);
      fully_shard(net->middle, DeviceMesh(g), o);
      fully_shard(net, DeviceMesh(g), o);
    } else {
      replicate(net, g);
    }
    optim::SGD sgd(net->parameters(), 0.1), by_hand(alone->parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      std::vector<Tensors> parts;
      for (int rank = 0; rank < ranks; ++rank) {
        alone->zero_grad();
        cast_backward(alone, rows_of(rank, step));
        parts.emplace_back();
        for (const Tensor& p : alone->parameters()) parts.back().push_back(p.grad().clone());
      }
      const Tensors means = means_of(parts, false);
      net->zero_grad();
      cast_backward(net, rows_of(g->rank(), step));
      for (size_t i = 0; i < means.size(); ++i) {
        const Tensor of_net = net->parameters()[i].grad();
        if (!sharded) { EXPECT_TRUE(same_bits(of_net, means[i])) << i << " at step " << step; }
        alone->parameters()[i].mutable_grad() = means[i];
      }
      if (sharded) expect_shard_gradients(*net, means);
      sgd.step(), by_hand.step();
    }
    if (sharded) return expect_whole_state(*net, *alone);
    for (size_t i = 0; i < net->parameters().size(); ++i)
      EXPECT_TRUE(same_bits(net->parameters()[i], alone->parameters()[i])) << i;
  });
}
TEST(Checkpoint, UnderAutocastReplicated) {
  for (const int ranks : {1, 2, 4}) expect_cast_means(ranks, false);
}
TEST(Checkpoint, UnderAutocastWithShardsIn16Bits) {
  for (const int ranks : {1, 2, 4}) expect_cast_means(ranks, true);
}

TEST(Checkpoint, AnEncoderNeedsAThirdOfItsActivations) {
  const auto needed = [](bool again) {
    manual_seed(3);
    nn::TransformerEncoderLayerOptions options(64, 4);
    options.dim_feedforward(256).dropout(0.1);
    std::vector<nn::TransformerEncoderLayer> layers;
    for (int i = 0; i < 12; ++i) layers.emplace_back(options);
    Tensor x = randn({64, 8, 64});
    const auto pass = [&] {
      Tensor h = x;
      for (nn::TransformerEncoderLayer& l : layers) {
        const auto fn = [&l](const Tensor& t) { return l(t); };
        h = again ? checkpoint(fn, h) : fn(h);
      }
      h.pow(2).mean().backward();
    };
    pass();  // gradients are there from now on
    const Device host(kCPU, 0);
    reset_peak_memory_stats(host);
    const int64_t before = memory_stats(host).current;
    pass();
    std::vector<Tensor> gradients;
    for (nn::TransformerEncoderLayer& l : layers)
      for (const Tensor& p : l->parameters()) gradients.push_back(p.grad());
    return std::pair(memory_stats(host).peak - before, gradients);
  };
  const auto plain = needed(false), again = needed(true);
  expect_same(plain.second, again.second);
  EXPECT_LE(static_cast<double>(again.first), 0.35 * static_cast<double>(plain.first))
      << again.first << " of " << plain.first;
}

}  // namespace
}  // namespace ramet::distributed
