// 16-bit gradients over processes of several shards each. Under tree(V) every sum is rounded once,
// on whichever rank adds up a part of it.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/cloneable.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/model/device_mesh.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::distributed {
namespace {

const ScalarType kNarrow[] = {kBFloat16, kHalf};

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override {
    fc1 = register_module("fc1", nn::Linear(8, 40));
    fc2 = register_module("fc2", nn::Linear(40, 40));
    fc3 = register_module("fc3", nn::Linear(40, 4));
  }
  // fc2 twice: its gradients in a shard are added up, too
  Tensor forward(const Tensor& x) { return fc3(fc2(fc2(fc1(x).tanh()).tanh()).tanh()); }
  nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};
RAMET_MODULE(Net);

std::vector<Tensor> trained(ScalarType dtype, int ranks, std::vector<Device> devices) {
  std::vector<Tensor> result;
  manual_seed(3);
  const Tensor rows = randn({28, 8}).to(dtype), targets = randint(0, 4, {28}, kLong);
  Net first;
  with_groups(ranks, seconds(100), [&](const Group& g) {
    Net net(std::dynamic_pointer_cast<NetImpl>(first->clone()));
    net->to(dtype);
    DdpOptions o;
    o.order = ReduceOrder::tree(8);
    o.batch = Batch::whole;
    o.average = Average::sum;
    o.devices = devices;
    o.bucket_bytes = 2000;
    DistributedDataParallel<Net> ddp(net, g, o);
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 5; ++step) {
      const int64_t n = step % 2 ? 12 : 16, from = step % 2 ? 16 : 0;
      optimizer.zero_grad();
      const Tensor y = ddp(rows.slice(0, from, from + n));
      const auto [row, count] = ddp.rows();
      const Tensor t = targets.slice(0, from + row, from + row + count);
      (cross_entropy_loss(y.to(kFloat), t, {}, Reduction::Sum) / static_cast<double>(n)).backward();
      if (g->rank() == 0)
        for (const Tensor& p : net->parameters()) result.push_back(p.grad().clone());
      optimizer.step();
    }
    if (g->rank() != 0) return;
    for (const Tensor& p : net->parameters()) result.push_back(p.detach().clone());
  });
  return result;
}

TEST(NarrowSums, TheSameBitsForEveryNumberOfRanks) {
  for (const ScalarType dtype : kNarrow)
    expect_same_bits_for_every_number_of_ranks(
        [dtype](int ranks, std::vector<Device> devices) { return trained(dtype, ranks, devices); });
}

// The gradient of a row's shard is that row.
struct ScaleImpl : nn::Cloneable<ScaleImpl> {
  ScaleImpl() { ScaleImpl::reset(); }
  void reset() override {
    w = register_parameter("w", ones({1}));
    unused = register_parameter("unused", ones({3}));
  }
  Tensor forward(const Tensor& x) { return x * w; }
  Tensor w, unused;
};
RAMET_MODULE(Scale);

DdpOptions sum_over_four() {
  DdpOptions o;
  o.order = ReduceOrder::tree(4);
  o.average = Average::sum;
  return o;
}

// What one step of `backward` gives for rows 256, 1, 1, 1 in as many shards, on every rank.
void expect_sum(double expected, Average average,
                const std::function<void(DistributedDataParallel<Scale>&, const Scale&,
                                         const Tensor& rows)>& backward) {
  for (const int ranks : {1, 2, 4})
    with_groups(ranks, seconds(60), [&](const Group& g) {
      Scale net;
      net->to(kBFloat16);
      DdpOptions o;
      o.order = ReduceOrder::tree(4);
      o.batch = Batch::whole;
      o.average = average;
      DistributedDataParallel<Scale> ddp(net, g, o);
      const auto rows = tensor({256., 1., 1., 1.}, TensorOptions(kBFloat16)).view({4, 1});
      for (int step = 0; step < 2; ++step) {
        net->zero_grad();
        backward(ddp, net, rows);
        const Tensor grad = net->w.grad();
        ASSERT_EQ(grad.scalar_type(), kBFloat16);
        EXPECT_EQ(grad.to(kDouble).item<double>(), expected) << ranks << " ranks, step " << step;
        EXPECT_FALSE(net->unused.grad().defined());
      }
    });
}

// Exactly 259, which is halfway between 258 and 260 and goes to the even one. A rank that rounded
// 256 + 1 would come to 258.
TEST(NarrowSums, AreRoundedOnce) {
  expect_sum(260, Average::sum,
             [](auto& ddp, const auto&, const Tensor& rows) { ddp(rows).sum().backward(); });
}

// Losses that are means over a rank's rows: (257 + 2) / 4.
TEST(NarrowSums, Means) {
  expect_sum(65, Average::mean,
             [](auto& ddp, const auto&, const Tensor& rows) { ddp(rows).mean().backward(); });
}

// What changes the rank's gradient after its sum is in what goes on: it is rounded before.
TEST(NarrowSums, HooksAndOtherUses) {
  expect_sum(8, Average::sum, [](auto& ddp, const auto& net, const Tensor& rows) {
    const unsigned id = net->w.register_hook([](const Tensor& g) { return g * 2; });
    ddp(rows.slice(0, 0, 4).clamp_max(1)).sum().backward();
    net->w.remove_hook(id);
  });
  for (const int ranks : {2, 4})
    with_groups(ranks, seconds(60), [&](const Group& g) {
      Scale net;
      net->to(kBFloat16);
      DistributedDataParallel<Scale> ddp(net, g, sum_over_four());
      const Tensor rows = ones({4, 1}, kBFloat16);
      (ddp(rows).sum() + (net->w * 3).sum()).backward();
      EXPECT_EQ(net->w.grad().to(kDouble).item<double>(), ranks * 7.0);
      // On top of what all have, and of what this rank has collected.
      ddp(rows).sum().backward();
      EXPECT_EQ(net->w.grad().to(kDouble).item<double>(), ranks * 11.0);
      net->zero_grad();
      {
        const auto quiet = ddp.no_sync();
        ddp(rows).sum().backward();
      }
      ddp(rows).sum().backward();
      EXPECT_EQ(net->w.grad().to(kDouble).item<double>(), ranks * 8.0);
    });
}

TEST(NarrowSums, AHookAfterTheAccumulation) {
  with_groups(2, seconds(60), [](const Group& g) {
    Scale net;
    net->to(kBFloat16);
    DistributedDataParallel<Scale> ddp(net, g, sum_over_four());
    net->w.register_post_accumulate_grad_hook([](const Tensor& p) {
      const NoGradGuard off;
      p.grad().mul_(2);
    });
    ddp(ones({2, 1}, kBFloat16)).sum().backward();
    EXPECT_EQ(net->w.grad().to(kDouble).item<double>(), 8);
  });
}

// In float32 there is nothing either of what a hook has dropped.
TEST(NarrowSums, AHookThatDropsTheGradient) {
  for (const bool on_all : {false, true})
    with_groups(2, seconds(60), [on_all](const Group& g) {
      Scale net;
      net->to(kBFloat16);
      DistributedDataParallel<Scale> ddp(net, g, sum_over_four());
      net->w.register_post_accumulate_grad_hook([&](const Tensor& p) {
        if (on_all || g->rank() == 0) p.mutable_grad().reset();
      });
      for (int step = 0; step < 2; ++step) {
        net->zero_grad();
        ddp(ones({2, 1}, kBFloat16)).sum().backward();
        ASSERT_EQ(net->w.grad().defined(), !on_all);
        if (on_all) continue;
        EXPECT_EQ(net->w.grad().to(kDouble).item<double>(), 2);
      }
    });
}

// A rank without inputs takes part in the same dtype.
TEST(NarrowSums, Join) {
  with_groups(2, seconds(60), [](const Group& g) {
    Scale net;
    net->to(kBFloat16);
    DistributedDataParallel<Scale> ddp(net, g, sum_over_four());
    std::vector<double> seen;
    ddp.join([&] {
      for (int i = 0; i < (g->rank() ? 3 : 1); ++i) {
        net->zero_grad();
        ddp(ones({2, 1}, kBFloat16)).sum().backward();
        seen.push_back(net->w.grad().to(kDouble).item<double>());
      }
    });
    EXPECT_EQ(seen, g->rank() ? (std::vector<double>{4, 2, 2}) : std::vector<double>{4});
  });
}

// A gradient stays where the optimizer has it.
TEST(NarrowSums, StayInFlatMemory) {
  with_groups(2, seconds(60), [](const Group& g) {
    Net net;
    net->to(kBFloat16);
    DdpOptions o;
    o.order = ReduceOrder::tree(4);
    DistributedDataParallel<Net> ddp(net, g, o);
    std::vector<const void*> places;
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      ddp(ones({8, 8}, kBFloat16)).sum().backward();
      for (size_t i = 0; i < net->parameters().size(); ++i) {
        const void* at = net->parameters()[i].grad().data_ptr();
        if (step == 0) places.push_back(at);
        EXPECT_EQ(at, places[i]) << i << " step " << step;
      }
    }
  });
}

// Sharded inside, replicated between: two sums, and one rounding.
TEST(NarrowSums, OnAMeshOfTwoDimensions) {
  with_groups(4, seconds(100), [](const Group& g) {
    DdpOptions ddp_options;
    FullyShardOptions options;
    options.order = ddp_options.order = ReduceOrder::tree(4);
    TextNet whole = text_net(), net = text_net();
    for (TextNet n : {whole, net}) n->to(kBFloat16);
    DistributedDataParallel<TextNet> ddp(whole, g, ddp_options);
    shard_all(net, init_device_mesh(g, {2, 2}, {"replicate", "shard"}), options);
    for (int step = 0; step < 5; ++step) {
      const TextBatch batch = text_batch(g->rank(), step);
      text_loss(ddp(batch.ids).to(kFloat), batch).backward();
      text_loss(net(batch.ids).to(kFloat), batch).backward();
      for (TextNet n : {whole, net}) {
        const NoGradGuard off;
        for (const Tensor& p : n->parameters()) p.sub_(p.grad(), 0.1);
        n->zero_grad();
      }
    }
    const auto state = full_state_dict(*net);
    for (const auto& item : whole->named_parameters())
      EXPECT_TRUE(same_bits(state[item.key()], item.value().detach())) << item.key();
  });
}

}  // namespace
}  // namespace ramet::distributed
