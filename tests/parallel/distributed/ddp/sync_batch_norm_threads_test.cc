// Batch norms that normalise with the statistics of all ranks. The reference is one plain batch
// norm over the whole batch, in float64: another implementation.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

struct SyncedNetImpl : nn::Cloneable<SyncedNetImpl> {
  SyncedNetImpl() { SyncedNetImpl::reset(); }
  void reset() override {
    fc1 = register_module("fc1", nn::Linear(5, 6));
    norm = register_module("norm", nn::BatchNorm1d(6));
    fc2 = register_module("fc2", nn::Linear(6, 3));
  }
  Tensor forward(const Tensor& x) { return fc2(norm(fc1(x)).tanh()); }
  nn::Linear fc1{nullptr}, fc2{nullptr};
  nn::BatchNorm1d norm{nullptr};
};
RAMET_MODULE(SyncedNet);

SyncedNet copy_of(const SyncedNet& net) {
  return SyncedNet(std::dynamic_pointer_cast<SyncedNetImpl>(net->clone()));
}

DdpOptions summed_options() {
  DdpOptions o;
  o.average = Average::sum;
  return o;
}

constexpr double kClose = 1e-11;
void expect_near(const Tensor& a, const Tensor& b, const char* what) {
  EXPECT_TRUE(a.allclose(b, kClose, kClose)) << what << ": " << a << " and " << b;
}

// Rows of each rank: one of them has a single value per channel.
const std::vector<int64_t> kFrom = {0, 1, 6, 10};

struct Whole {
  SyncedNet net;
  Tensor x, seed;
  Whole() {
    manual_seed(7);
    net = SyncedNet();
    net->to(kDouble);
    x = randn({10, 5}, TensorOptions(kDouble)) * 3 + 100;  // far from 0: cancellation would show
    seed = randn({10, 3}, TensorOptions(kDouble));
  }
  static Tensor part(const Tensor& t, int rank) {
    const auto r = static_cast<size_t>(rank);
    return t.slice(0, kFrom[r], kFrom[r + 1]).clone();
  }
};

TEST(SyncBatchNorm, AgreesWithOneBatch) {
  const Whole whole;
  SyncedNet one = copy_of(whole.net);
  const Tensor x = whole.x.clone().requires_grad_(true);
  const Tensor expected = one(x);
  (expected * whole.seed).sum().backward();
  with_groups(3, seconds(60), [&](const Group& g) {
    SyncedNet net = copy_of(whole.net);
    nn::convert_sync_batchnorm(*net);
    DistributedDataParallel<SyncedNet> ddp(net, g, summed_options());
    const Tensor mine = Whole::part(whole.x, g->rank()).requires_grad_(true);
    const Tensor y = ddp(mine);
    expect_near(y, Whole::part(expected.detach(), g->rank()), "output");
    (y * Whole::part(whole.seed, g->rank())).sum().backward();
    expect_near(mine.grad(), Whole::part(x.grad(), g->rank()), "gradient of the input");
    const auto ours = net->named_parameters(), theirs = one->named_parameters();
    for (const auto& p : ours)
      expect_near(p.value().grad(), theirs[p.key()].grad(), p.key().c_str());
    expect_near(net->norm->running_mean, one->norm->running_mean, "running mean");
    expect_near(net->norm->running_var, one->norm->running_var, "running variance");
    EXPECT_EQ(net->norm->num_batches_tracked.item<int64_t>(), 1);
  });
}

// A gradient penalty: the ranks communicate in the backward of the backward too.
TEST(SyncBatchNorm, SecondDerivatives) {
  const Whole whole;
  const auto step = [](const auto& call, const Tensor& x, const Tensor& seed) {
    const Tensor g = autograd::grad({(call(x) * seed).sum()}, {x}, {}, true, true)[0];
    g.square().sum().backward();
  };
  SyncedNet one = copy_of(whole.net);
  const Tensor x = whole.x.clone().requires_grad_(true);
  step([&](const Tensor& t) { return one(t); }, x, whole.seed);
  with_groups(3, seconds(60), [&](const Group& g) {
    SyncedNet net = copy_of(whole.net);
    nn::convert_sync_batchnorm(*net);
    DistributedDataParallel<SyncedNet> ddp(net, g, summed_options());
    const Tensor mine = Whole::part(whole.x, g->rank()).requires_grad_(true);
    step([&](const Tensor& t) { return ddp(t); }, mine, Whole::part(whole.seed, g->rank()));
    for (const char* name : {"fc1.weight", "norm.weight", "fc2.weight"})
      expect_near(net->named_parameters()[name].grad(), one->named_parameters()[name].grad(), name);
    expect_near(mine.grad(), Whole::part(x.grad(), g->rank()), "gradient of the input");
  });
}

// Parameters and statistics after some steps, four shards in all.
std::vector<Tensor> trained(int ranks, const std::vector<Device>& devices) {
  std::vector<Tensor> result;
  manual_seed(5);
  const Tensor x = randn({14, 5}), targets = randint(0, 3, {14}, kLong);
  SyncedNet first;
  with_groups(ranks, seconds(100), [&](const Group& g) {
    SyncedNet net = copy_of(first);
    nn::convert_sync_batchnorm(*net);
    DdpOptions o = summed_options();
    o.order = ReduceOrder::tree(4);
    o.batch = Batch::whole;
    o.devices = devices;
    o.bucket_bytes = 128;
    DistributedDataParallel<SyncedNet> ddp(net, g, o);
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      const int64_t n = step % 2 ? 11 : 14;
      const Tensor y = ddp(x.slice(0, 0, n));
      const auto [row, rows] = ddp.rows();
      const Tensor t = targets.slice(0, row, row + rows);
      (cross_entropy_loss(y, t, {}, Reduction::Sum) / static_cast<double>(n)).backward();
      optimizer.step();
    }
    if (g->rank() != 0) return;
    for (const Tensor& p : net->parameters()) result.push_back(p.detach().clone());
    for (const Tensor& b : net->buffers()) result.push_back(b.clone());
  });
  return result;
}

TEST(SyncBatchNorm, TheSameBitsForEveryNumberOfRanks) {
  expect_same_bits_for_every_number_of_ranks(trained);
}

// Evaluation waits for no other rank: one rank alone may do it.
TEST(SyncBatchNorm, Evaluation) {
  with_groups(2, seconds(60), [](const Group& g) {
    SyncedNet net;
    nn::convert_sync_batchnorm(*net);
    DistributedDataParallel<SyncedNet> ddp(net, g);
    net->eval();
    if (g->rank() == 1) { EXPECT_TRUE(same_bits(ddp(ones({2, 5})), net->forward(ones({2, 5})))); }
    g->barrier().wait();
  });
}

// The others do not wait until the deadline, which is far.
TEST(SyncBatchNorm, ARankWhoseForwardFails) {
  with_groups(3, seconds(600), [](const Group& g) {
    SyncedNet net;
    nn::convert_sync_batchnorm(*net);
    DistributedDataParallel<SyncedNet> ddp(net, g);
    const std::string said = error_of([&] { ddp(ones({2, g->rank() == 1 ? 4 : 5})); });
    if (g->rank() != 1) expect_part(said, "a forward failed on this rank");
    EXPECT_EQ(contains(said, "aborted"), g->rank() != 1) << said;
    EXPECT_NE(said, "no error");
  });
}

TEST(SyncBatchNorm, ARankWhoseArgumentsDoNotFit) {
  struct TwoImpl : nn::Cloneable<TwoImpl> {
    TwoImpl() { TwoImpl::reset(); }
    void reset() override { net = register_module("net", SyncedNet()); }
    Tensor forward(const Tensor& x, const Tensor& y) { return net(x).add(y.mean()); }
    SyncedNet net{nullptr};
  };
  with_groups(3, seconds(600), [](const Group& g) {
    const auto two = std::make_shared<TwoImpl>();
    nn::convert_sync_batchnorm(*two);
    DistributedDataParallel<std::shared_ptr<TwoImpl>> ddp(two, g);
    const std::string said = error_of([&] { ddp(ones({2, 5}), ones({g->rank() == 1 ? 3 : 2})); });
    if (g->rank() == 1) EXPECT_FALSE(contains(said, "aborted")) << said;
    else expect_part(said, "a forward failed on this rank");
    EXPECT_NE(said, "no error");
  });
}

// No other rank waited for it, so the training goes on.
TEST(SyncBatchNorm, AnEvaluationThatFails) {
  with_groups(2, seconds(60), [](const Group& g) {
    SyncedNet net;
    nn::convert_sync_batchnorm(*net);
    DdpOptions whole;
    whole.batch = Batch::whole;
    DistributedDataParallel<SyncedNet> ddp(net, g, whole);
    if (g->rank() == 1) {
      net->eval();
      EXPECT_NE(error_of([&] { ddp(ones({4, 7})); }), "no error");
      net->train();
    }
    // Too few rows for all ranks: all know.
    EXPECT_ERROR_TEXT(ddp(ones({1, 5})), "at least one for each of 2 shards");
    ddp(ones({4, 5})).square().sum().backward();
    for (const Tensor& p : net->parameters()) EXPECT_TRUE(p.grad().defined());
  });
}

TEST(SyncBatchNorm, ARankWhoseBackwardFails) {
  with_groups(3, seconds(600), [](const Group& g) {
    SyncedNet net;
    nn::convert_sync_batchnorm(*net);
    DistributedDataParallel<SyncedNet> ddp(net, g);
    // Where rank 1 is quick, others may still be in their forward.
    const std::string said = error_of([&] {
      const Tensor y = ddp(randn({4, 5}));
      if (g->rank() == 1)
        y.register_hook([](const Tensor& grad) -> Tensor {
          if (grad.defined()) throw std::runtime_error("Badness!");
          return grad;
        });
      y.square().sum().backward();
    });
    if (g->rank() == 1) expect_part(said, "Badness!");
    else expect_part(said, "a backward failed on this rank");
    for (const Tensor& p : net->parameters()) EXPECT_FALSE(p.grad().defined());
  });
}

}  // namespace
}  // namespace ramet::distributed
