// fully_shard with a MixedPrecisionPolicy: the numbers of training steps, by hand on each rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "autograd/autocast.h"
#include "autograd/checkpoint.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/checkpoint/checkpoint.h"
#include "tests/parallel/distributed/shard/shard_precision.h"

namespace ramet::distributed {
namespace {

optim::SGD sgd_of(const nn::Module& net) {
  return optim::SGD(net.parameters(), optim::SGDOptions(0.1).momentum(0.9));
}

// `forward`: of a net and the words of a batch.
using Forward = std::function<Tensor(TextNet&, const Tensor&)>;

// Some steps of a sharded net and by hand.
void train_as_by_hand(const DeviceMesh& mesh, const Group& g, const FullyShardOptions& options,
                      const Forward& forward) {
  const int n = g->size();
  TextNet net = text_net(24, g->rank() ? 99 : 7), whole = text_net();  // rank 0's values win
  shard_with_policy(net, mesh, options);
  optim::SGD a = sgd_of(*net), b = sgd_of(*whole);
  for (int step = 0; step < 4; ++step) {
    a.zero_grad();
    const TextBatch batch = text_batch(g->rank(), step);
    const Tensor y = forward(net, batch.ids);
    EXPECT_EQ(y.scalar_type(), kFloat);
    const Tensor want =
        by_hand(*whole, batch.ids, options.mp_policy.param_dtype.value_or(kFloat)).to(kFloat);
    ASSERT_TRUE(same_bits(y.detach(), want.detach())) << "step " << step;
    text_loss(y, batch).backward();
    const Tensors means = means_by_hand(whole, options.mp_policy, n, step, options.order.is_tree());
    expect_shard_gradients(*net, means);
    for (size_t i = 0; i < means.size(); ++i) whole->parameters()[i].mutable_grad() = means[i];
    a.step();
    b.step();
  }
  expect_whole_state(*net, *whole);
}
Tensor called(TextNet& net, const Tensor& ids) { return net(ids); }

TEST(ShardPrecision, TrainsAsByHand) {
  for (const int n : {1, 2, 3, 4})
    with_groups_of(n, [n](const Group& g) {
      for (const bool tree : {false, true})
        for (const ScalarType param : {kBFloat16, kHalf})
          for (const auto& reduce :
               {std::optional<ScalarType>(), std::optional(kFloat), std::optional(kBFloat16)})
            if (n != 3 || !tree)
              train_as_by_hand(
                  DeviceMesh(g), g,
                  with_policy(param, reduce, tree ? ReduceOrder::tree(n) : ReduceOrder()), called);
    });
}

// Without param_dtype only the reduction is narrow; a policy of float32 changes nothing.
TEST(ShardPrecision, OnlyTheReductionIsNarrow) {
  with_groups_of(2, [](const Group& g) {
    train_as_by_hand(DeviceMesh(g), g, with_policy({}, kBFloat16), called);
    train_as_by_hand(DeviceMesh(g), g, with_policy(kFloat, kFloat), called);
  });
}

// Sharded inside, replicated between: two sums, and one rounding.
TEST(ShardPrecision, OnAMeshOfTwoDimensions) {
  with_groups_of(4, [](const Group& g) {
    const DeviceMesh mesh = init_device_mesh(g, {2, 2}, {"replicate", "shard"});
    for (const auto& reduce : {std::optional<ScalarType>(), std::optional(kFloat)})
      train_as_by_hand(mesh, g, with_policy(kBFloat16, reduce, ReduceOrder::tree(4)), called);
  });
}

TEST(ShardPrecision, ActivationsThatAreComputedAgain) {
  with_groups_of(2, [](const Group& g) {
    const Forward around = [](TextNet& net, const Tensor& ids) {
      return autograd::checkpoint([net](const Tensor& t) mutable { return net(t); }, ids);
    };
    train_as_by_hand(DeviceMesh(g), g, with_policy(kBFloat16, kFloat), around);
    FullyShardOptions options = with_policy(kHalf);
    options.reshard_after_forward = true;
    train_as_by_hand(DeviceMesh(g), g, options, around);
  });
}

// The function reads the module's members, which are gathered again in the backward pass.
struct InsideImpl : nn::Cloneable<InsideImpl> {
  InsideImpl() { InsideImpl::reset(); }
  void reset() override { net = register_module("net", text_net()); }
  Tensor forward(const Tensor& ids) {
    return autograd::checkpoint([this](const Tensor& t) { return net->forward(t); }, ids);
  }
  TextNet net{nullptr};
};
RAMET_MODULE(Inside);
TEST(ShardPrecision, MembersThatAreReadAgain) {
  with_groups_of(2, [](const Group& g) {
    for (const bool reshard : {true, false}) {
      FullyShardOptions o = with_policy(kBFloat16, kFloat);
      o.reshard_after_forward = reshard;
      Inside net;
      fully_shard(net, g, o);
      const TextBatch batch = text_batch(g->rank(), 0);
      text_loss(net(batch.ids).to(kFloat), batch).backward();
      expect_shard_gradients(*net, means_by_hand(text_net(), o.mp_policy, 2, 0, false));
    }
  });
}

// Parameters have param_dtype; operations that autocast runs in float32 widen it.
TEST(ShardPrecision, UnderAutocast) {
  with_groups_of(2, [](const Group& g) {
    const AutocastGuard autocast(kCPU);
    train_as_by_hand(DeviceMesh(g), g, with_policy(kBFloat16), called);
    train_as_by_hand(DeviceMesh(g), g, with_policy({}), called);
  });
}

// Gradients without synchronisation are collected in reduce_dtype.
TEST(ShardPrecision, WithoutSynchronisation) {
  for (const auto& reduce : {std::optional<ScalarType>(), std::optional(kFloat)})
    with_groups_of(2, [&reduce](const Group& g) {
      const FullyShardOptions options = with_policy(kBFloat16, reduce);
      TextNet net = text_net(), whole = text_net();
      shard_with_policy(net, DeviceMesh(g), options);
      const FullyShardHandle handle = fully_shard_handle(net);
      std::vector<Tensors> collected(2);
      for (int step = 0; step < 3; ++step) {
        handle.set_requires_gradient_sync(step == 2);
        const TextBatch batch = text_batch(g->rank(), step);
        text_loss(net(batch.ids), batch).backward();
        for (int r = 0; r < 2; ++r) {
          const Tensors one = gradients_by_hand(whole, options.mp_policy, r, step);
          Tensors& sum = collected[static_cast<size_t>(r)];
          for (size_t i = 0; i < one.size(); ++i)
            if (step == 0) sum.push_back(one[i]);
            else sum[i] = sum[i] + one[i];
        }
      }
      Tensors expected = means_of(collected, false);
      expect_shard_gradients(*net, expected);
      // What is added to a shard's gradient is added in float32.
      const TextBatch batch = text_batch(g->rank(), 3);
      text_loss(net(batch.ids), batch).backward();
      const Tensors more = means_by_hand(whole, options.mp_policy, 2, 3, false);
      for (size_t i = 0; i < more.size(); ++i) expected[i] = expected[i] + more[i];
      expect_shard_gradients(*net, expected);
    });
}

// The gradient of a rank is its x.
struct ScaledImpl : nn::Cloneable<ScaledImpl> {
  ScaledImpl() { ScaledImpl::reset(); }
  void reset() override { w = register_parameter("w", ones({1})); }
  Tensor forward(const Tensor& x) { return w * x; }
  Tensor w;
};
RAMET_MODULE(Scaled);

// The shard's gradient, on the rank that has it, after `steps` backwards.
void expect_shard_gradient(Scaled& net, const Group& g, double x, double expected) {
  net(full({1}, x)).sum().backward();
  const Tensor shard = net->own_parameters()["w"];
  ASSERT_EQ(shard.grad().scalar_type(), kFloat);
  if (shard.numel()) {
    EXPECT_EQ(shard.grad().item<double>(), expected) << g->size() << " ranks";
    shard.mutable_grad().zero_();
  }
}

// 256 + 1 + 1 + 1 = 259 is halfway between 258 and 260, and goes to the even one. Rounded after
// each addition it stays 256.
TEST(ShardPrecision, SumsAreRoundedOnce) {
  for (const bool tree : {false, true})
    with_groups_of(4, [tree](const Group& g) {
      const double x = g->rank() == 0 ? 256 : 1;
      for (const auto average : {Average::sum, Average::mean}) {
        const double parts = average == Average::mean ? 4 : 1;
        for (const ScalarType reduce : {kBFloat16, kFloat}) {
          FullyShardOptions o =
              with_policy(kBFloat16, reduce, tree ? ReduceOrder::tree(4) : ReduceOrder());
          o.average = average;
          Scaled net;
          fully_shard(net, g, o);
          expect_shard_gradient(net, g, x, (reduce == kFloat ? 259 : 260) / parts);
        }
      }
    });
  // Neither exact in 16 bits nor rounded to them: the mean of three.
  with_groups_of(3, [](const Group& g) {
    Scaled net;
    fully_shard(net, g, with_policy(kBFloat16, kBFloat16));
    expect_shard_gradient(net, g, g->rank() == 0 ? 256 : g->rank(), 260.f / 3.f);
  });
  // float16: beyond 2048 every second integer.
  with_groups_of(4, [](const Group& g) {
    Scaled net;
    FullyShardOptions o = with_policy(kHalf, kHalf);
    o.average = Average::sum;
    fully_shard(net, g, o);
    expect_shard_gradient(net, g, g->rank() == 0 ? 2048 : 1, 2052);  // of 2051
    expect_shard_gradient(net, g, 40000, INFINITY);
  });
}

// PyTorch's numbers (2.15) for two ranks with the gradients 256 and 1, and for three backwards of
// which only the last one is reduced: 256, 1 and 1 on each rank.
TEST(ShardPrecision, PyTorchsNumbers) {
  const std::pair<std::optional<ScalarType>, std::pair<double, double>> runs[] = {
      {kBFloat16, {128, 256}}, {kFloat, {128.5, 258}}, {std::nullopt, {128.5, 258}}};
  for (const auto& [reduce, expected] : runs)
    with_groups_of(2, [reduce = reduce, expected = expected](const Group& g) {
      FullyShardOptions o = with_policy(kBFloat16, reduce);
      o.mp_policy.output_dtype = kDouble;
      Scaled net;
      fully_shard(net, g, o);
      const Tensor x = full({1}, g->rank() ? 1. : 256.).requires_grad_();
      EXPECT_EQ(net(x).scalar_type(), kDouble);
      net(x).sum().backward();
      EXPECT_EQ(x.grad().scalar_type(), kFloat);
      const Tensor shard = net->own_parameters()["w"];
      if (shard.numel()) { EXPECT_EQ(shard.grad().item<double>(), expected.first); }
      net->zero_grad();
      const FullyShardHandle handle = fully_shard_handle(net);
      handle.set_requires_gradient_sync(false);
      for (const double each : {256., 1.}) net(full({1}, each)).sum().backward();
      handle.set_requires_gradient_sync(true);
      net(ones({1})).sum().backward();
      if (shard.numel()) { EXPECT_EQ(shard.grad().item<double>(), expected.second); }
    });
}

// On a mesh of two dimensions sums over the shards are collected until the replicas add them up.
TEST(ShardPrecision, WithoutAllReduce) {
  with_groups_of(4, [](const Group& g) {
    const DeviceMesh mesh = init_device_mesh(g, {2, 2}, {"replicate", "shard"});
    for (const ScalarType reduce : {kBFloat16, kFloat}) {
      FullyShardOptions o = with_policy(kBFloat16, reduce, ReduceOrder::tree(4));
      o.average = Average::sum;
      Scaled net;
      fully_shard(net, mesh, o);
      const FullyShardHandle handle = fully_shard_handle(net);
      handle.set_requires_all_reduce(false);
      net(full({1}, g->rank() == 0 ? 256. : 0.)).sum().backward();
      EXPECT_FALSE(net->own_parameters()["w"].grad().defined());
      handle.set_requires_all_reduce(true);
      expect_shard_gradient(net, g, g->rank() == 0 ? 0 : 1, reduce == kFloat ? 259 : 260);
    }
  });
}

// One rank has the infinite gradient. No rank steps, and the scale is the same everywhere.
TEST(ShardPrecision, AllRanksSkipAStep) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net();
    shard_with_policy(net, DeviceMesh(g), with_policy(kHalf));
    optim::SGD sgd = sgd_of(*net);
    optim::GradScaler scaler(optim::GradScalerOptions().init_scale(8));
    share_found_inf(scaler, *net);
    for (int step = 0; step < 3; ++step) {
      sgd.zero_grad();
      const auto before = full_state_dict(*net);
      const TextBatch batch = text_batch(g->rank(), step);
      scaler.scale(text_loss(net(batch.ids), batch)).backward();
      const bool skips = step == 1;
      if (skips && g->rank() == 1)
        for (const Tensor& p : net->parameters())
          if (p.numel()) p.grad().view({-1}).slice(0, 0, 1).fill_(INFINITY);
      scaler.step(sgd), scaler.update();
      EXPECT_EQ(scaler.get_scale(), step == 0 ? 8 : 4);
      const auto after = full_state_dict(*net);
      size_t changed = 0;
      for (const auto& item : after) changed += !same_bits(item.value(), before[item.key()]);
      EXPECT_EQ(changed > 0, !skips) << "step " << step;
    }
  });
  optim::GradScaler scaler;
  EXPECT_ERROR_TEXT(share_found_inf(scaler, *text_net()),
                    "[share_found_inf] the module: got one of which every rank has all parameters");
}

// A checkpoint has the masters and the optimizer's states, in float32: for any number of ranks,
// with another policy or with none.
TEST(ShardPrecision, Checkpoints) {
  TempFolder folder;
  std::vector<Tensor> expected;
  const auto run = [&](const Group& g, const FullyShardOptions& options, bool saves) {
    TextNet net = text_net(24, saves ? 7 : 11);
    shard_with_policy(net, DeviceMesh(g), options);
    optim::SGD sgd = sgd_of(*net);
    for (int step = 0; step < 2; ++step) {
      const TextBatch batch = text_batch(g->rank(), step);
      sgd.zero_grad();
      text_loss(net(batch.ids), batch).backward();
      sgd.step();
    }
    DistributedCheckpoint c(g);
    const auto parts = tensor_parts(*net);
    c.add("model", *net, parts).add("sgd", sgd, parts);
    if (saves) c.save(folder.path("c"), 2);
    else c.load(folder.path("c"));
    for (const Tensor& p : net->parameters()) p.mutable_grad().zero_();
    sgd.step();  // by the momentum alone
    const auto state = full_state_dict(*net);
    if (g->rank() != 0) return;
    for (size_t i = 0; const auto& item : state) {
      if (saves) expected.push_back(item.value());
      else EXPECT_TRUE(same_bits(item.value(), expected[i++])) << item.key();
    }
  };
  with_groups_of(2, [&](const Group& g) { run(g, with_policy(kBFloat16, kFloat), true); });
  for (const int ranks : {1, 2, 3})
    for (const auto& param : {std::optional<ScalarType>(), std::optional(kHalf)})
      with_groups_of(ranks, [&](const Group& g) { run(g, with_policy(param), false); });
}

// Updates that are too small for 16 bits add up in the shards.
TEST(ShardPrecision, ShardsAreMasters) {
  with_groups_of(2, [](const Group& g) {
    Scaled net;
    fully_shard(net, g, with_policy(kBFloat16));
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(1.0 / 1024));
    for (int step = 1; step <= 8; ++step) {
      optimizer.zero_grad();
      const Tensor y = net(ones({1}));
      // Next to 1 there are 1 - 2^-8 and 1 - 2^-7.
      const double master = 1 - (step - 1) / 1024.;
      EXPECT_EQ(y.item<double>(), tensor({master}).to(kBFloat16).item<double>());
      y.sum().backward();
      optimizer.step();
    }
    EXPECT_EQ(full_state_dict(*net)["w"].item<double>(), 1 - 8 / 1024.);
  });
}

}  // namespace
}  // namespace ramet::distributed
