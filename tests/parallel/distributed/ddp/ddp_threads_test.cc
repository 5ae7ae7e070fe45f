// DistributedDataParallel with ranks as threads.
#include <gtest/gtest.h>

#include <stdexcept>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/graph/captured.h"
#include "autograd/graph/node.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {

namespace {

// y = a x, z = b x, ...: which of them a forward uses is the caller's.
struct FactorsImpl : nn::Cloneable<FactorsImpl> {
  explicit FactorsImpl(int n) : n(n) { FactorsImpl::reset(); }
  void reset() override {
    w.clear();
    for (int i = 0; i < n; ++i)
      w.push_back(register_parameter("w" + std::to_string(i), full({2}, i + 1.0)));
  }
  Tensor forward(const Tensor& x, const std::vector<int>& used) {
    Tensor sum = (0 * x).sum();
    for (int i : used) sum = sum + (w[static_cast<size_t>(i)] * x).sum();
    return sum;
  }
  int n;
  std::vector<Tensor> w;
};
RAMET_MODULE(Factors);

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 3, 3).padding(1)));
    norm = register_module("norm", nn::BatchNorm2d(3));
    fc1 = register_module("fc1", nn::Linear(3 * 5 * 5, 20));
    fc2 = register_module("fc2", nn::Linear(20, 4));
  }
  Tensor forward(const Tensor& x) { return fc2(fc1(norm(conv(x)).relu().flatten(1)).relu()); }
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};
};
RAMET_MODULE(Net);

// Is never called.
struct LayersImpl : nn::Cloneable<LayersImpl> {
  LayersImpl(int64_t in, int64_t out) : in(in), out(out) { LayersImpl::reset(); }
  void reset() override {
    register_module("fc1", nn::Linear(2, 2));
    register_module("fc2", nn::Linear(in, out));
  }
  int64_t in, out;
};
RAMET_MODULE(Layers);

DdpOptions averaged(Average a) {
  DdpOptions o;
  o.average = a;
  return o;
}

const nn::parallel::NoScatter<std::vector<int>> kFirst(std::vector<int>{0});

TEST(Ddp, NotInACapturedStep) {
  with_groups(2, seconds(60), [](const Group& g) {
    Factors net(1);
    DistributedDataParallel<Factors> ddp(net, g);
    const Tensor x = full({2}, g->rank() + 1.0);
    Captured step([&] { ddp(x, kFirst).backward(); });
    EXPECT_ERROR_TEXT(step(), "[ddp] not capturable");
    ddp(x, kFirst).backward();  // the group goes on
    EXPECT_TRUE(net->w[0].grad().equal(full({2}, 1.5)));
  });
}

// Mean, sum, and a weighted mean of ranks with different numbers of rows.
TEST(Ddp, Averages) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const auto& [average, expected] :
         {std::pair(Average::mean, 2.0), std::pair(Average::sum, 4.0)}) {
      Factors net(1);
      DistributedDataParallel<Factors> ddp(net, g, averaged(average));
      const Tensor x = tensor(g->rank() ? std::vector<double>{3, 4} : std::vector<double>{1, 2},
                              TensorOptions(kFloat));
      ddp(nn::parallel::Broadcast<Tensor>(x), kFirst).backward();
      EXPECT_EQ(net->w[0].grad()[0].item<double>(), expected);
      EXPECT_EQ(net->w[0].grad()[1].item<double>(), expected / 2 * 3);
    }
    // Mean losses over 1 and 3 rows, of gradients 2 and 6: 4 plain, 5 weighted.
    for (const auto& [average, expected] :
         {std::pair(Average::mean, 4.0), std::pair(Average::weighted, 5.0)}) {
      nn::Linear net(nn::LinearOptions(1, 1).bias(false));
      DistributedDataParallel<nn::Linear> ddp(net, g, averaged(average));
      const Tensor x = full({g->rank() ? 3 : 1, 1}, g->rank() ? 6.0 : 2.0);
      ddp(x).mean().backward();
      EXPECT_FLOAT_EQ(net->weight.grad().item<float>(), static_cast<float>(expected));
    }
  });
}

TEST(Ddp, ParametersThatSomeRanksDoNotUse) {
  with_groups(2, seconds(60), [](const Group& g) {
    Factors net(3);
    DdpOptions o;
    for (int64_t bytes : {int64_t{1}, int64_t{1} << 20}) {  // a bucket each, and one for all
      o.bucket_bytes = bytes;
      net->zero_grad();
      DistributedDataParallel<Factors> ddp(net, g, o);
      const Tensor x = tensor({3.0, 5.0}, TensorOptions(kFloat));
      for (int step = 0; step < 2; ++step) {
        net->zero_grad();
        ddp(nn::parallel::Broadcast<Tensor>(x),
            nn::parallel::NoScatter<std::vector<int>>({g->rank()}))
            .backward();
        for (size_t i : {size_t{0}, size_t{1}}) {
          ASSERT_TRUE(net->w[i].grad().defined()) << i;
          EXPECT_EQ(net->w[i].grad()[0].item<double>(), 1.5);
          EXPECT_EQ(net->w[i].grad()[1].item<double>(), 2.5);
        }
        EXPECT_FALSE(net->w[2].grad().defined());
        EXPECT_EQ(ddp.unused_parameters(), std::vector<std::string>{"w2"});
      }
    }
  });
}

// A rank that reaches none of them in its backward takes part with nothing, too.
TEST(Ddp, ARankThatUsesNoParameter) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (int64_t bytes : {int64_t{1}, int64_t{1} << 20}) {
      Factors net(2);
      DdpOptions o;
      o.bucket_bytes = bytes;
      DistributedDataParallel<Factors> ddp(net, g, o);
      const Tensor x = tensor({3.0, 5.0}, TensorOptions(kFloat)).set_requires_grad(true);
      for (int step = 0; step < 3; ++step) {
        net->zero_grad();
        const bool idle = step % 2 == g->rank();
        const nn::parallel::NoScatter<std::vector<int>> used(idle ? std::vector<int>{}
                                                                  : std::vector<int>{1});
        ddp(nn::parallel::Broadcast<Tensor>(x), used).backward();
        EXPECT_EQ(autograd::grad({ddp(nn::parallel::Broadcast<Tensor>(x), used)}, {x})[0].sizes(),
                  x.sizes())
            << "meets nobody";
        EXPECT_EQ(net->w[1].grad()[0].item<double>(), 1.5) << step;
        EXPECT_FALSE(net->w[0].grad().defined());
        EXPECT_EQ(ddp.unused_parameters(), std::vector<std::string>{"w0"});
      }
    }
  });
}

// What accumulated on the ranks is reduced by the first synchronised backward.
TEST(Ddp, NoSync) {
  with_groups(2, seconds(60), [](const Group& g) {
    Factors net(2);
    DistributedDataParallel<Factors> ddp(net, g);
    const nn::parallel::NoScatter<std::vector<int>> both(std::vector<int>{0, 1});
    const auto step = [&](double x) {
      ddp(nn::parallel::Broadcast<Tensor>(full({2}, x)), both).backward();
    };
    const double r = g->rank();
    {
      const auto guard = ddp.no_sync();
      step(1 + r);
      EXPECT_EQ(net->w[0].grad()[0].item<double>(), 1 + r);
      step(10 + r);
    }
    step(100 + r);
    EXPECT_EQ(net->w[0].grad()[0].item<double>(), 111 + 3 * 0.5);
    // Synchronised sums do not change when more is added.
    step(1000 + r);
    EXPECT_EQ(net->w[1].grad()[1].item<double>(), 1111 + 4 * 0.5);
  });
}

TEST(Ddp, SumsAreNotAddedUpAgain) {
  with_groups(2, seconds(60), [](const Group& g) {
    Factors net(1);
    DistributedDataParallel<Factors> ddp(net, g, averaged(Average::sum));
    for (int step = 1; step <= 3; ++step) {
      ddp(nn::parallel::Broadcast<Tensor>(full({2}, g->rank() + 1.0)), kFirst).backward();
      EXPECT_EQ(net->w[0].grad()[0].item<double>(), 3.0 * step);
    }
  });
}

// From step to step gradients lie in the buckets, and nothing is copied there. If the program keeps
// a gradient of an earlier step, the next step does not write into it. That holds also where only
// another rank uses its parameter now.
TEST(Ddp, KeptGradients) {
  with_groups(2, seconds(60), [](const Group& g) {
    Factors net(2);
    DistributedDataParallel<Factors> ddp(net, g, averaged(Average::sum));
    const nn::parallel::NoScatter<std::vector<int>> both(std::vector<int>{0, 1});
    ddp(full({2}, g->rank() + 1.0), both).backward();
    const Tensor kept = net->w[1].grad();
    EXPECT_TRUE(same_bits(kept, full({2}, 3.0)));
    net->zero_grad();
    ddp(full({2}, 5.0), g->rank() ? both : kFirst).backward();
    EXPECT_TRUE(same_bits(net->w[1].grad(), full({2}, 5.0)));
    EXPECT_TRUE(same_bits(kept, full({2}, 3.0)));
  });
}

TEST(Ddp, GradientsAreBornInBuckets) {
  with_groups(2, seconds(60), [](const Group& g) {
    Net net;
    net->eval();  // no statistics to merge
    DistributedDataParallel<Net> ddp(net, g);
    const void* at = nullptr;
    for (unsigned step = 0; step < 3; ++step) {
      net->zero_grad();
      ddp(ones({4, 1, 5, 5})).sum().backward();
      for (const Tensor& p : net->parameters()) {
        const auto* leaf = autograd::grad_accumulator(p.impl());
        EXPECT_EQ(p.grad().data_ptr(), leaf->where.data_ptr());
        // Sums over rows are made elsewhere and moved in.
        EXPECT_LE(leaf->copies, p.dim() > 1 ? 0u : step + 1u);
      }
      const void* now = net->fc1->weight.grad().data_ptr();
      EXPECT_EQ(now, step ? at : now);
      at = now;
    }
  });
}

TEST(Ddp, DifferentModels) {
  // No rank waits for longer than the deadline.
  with_groups(3, seconds(5), [](const Group& g) {
    const bool odd = g->rank() == 1;
    const Layers net(odd ? 4 : 3, odd ? 3 : 4);
    const std::string said = error_of([&] { DistributedDataParallel<Layers> ddp(net, g); });
    expect_part(said, "parameter 'fc2.weight' of rank 1, float32[3, 4]");
    expect_part(said, "appears not to match that of rank 0, float32[4, 3]");
    EXPECT_FALSE(contains(said, "rank 2"));
    // The group is whole.
    Net same;
    DistributedDataParallel<Net> ddp(same, g);
    nn::Linear frozen(2, 2);
    for (const Tensor& p : frozen->parameters()) p.requires_grad_(false);
    EXPECT_ERROR_TEXT(DistributedDataParallel<nn::Linear> d(frozen, g),
                      "doesn't have any parameter that requires a gradient");
    DdpOptions o;
    o.order = ReduceOrder::tree(4);
    EXPECT_ERROR_TEXT(DistributedDataParallel<Net> d(same, g, o),
                      "expected a number of ranks that divides V");
  });
}

TEST(Ddp, EveryRankBeginsWithTheSameValues) {
  with_groups(3, seconds(60), [](const Group& g) {
    Net net;
    {
      const NoGradGuard off;
      for (const Tensor& p : net->parameters()) p.fill_(g->rank() + 1.0);
      net->norm->running_mean.fill_(g->rank());
    }
    DdpOptions o;
    o.sync_from = 2;
    DistributedDataParallel<Net> ddp(net, g, o);
    for (const Tensor& p : net->parameters()) EXPECT_TRUE(p.detach().eq(3).all().item<bool>());
    EXPECT_EQ(net->norm->running_mean[0].item<double>(), 2);
  });
}

TEST(Ddp, FrozenAndThawed) {
  with_groups(2, seconds(60), [](const Group& g) {
    Factors net(2);
    net->w[1].requires_grad_(false);
    DistributedDataParallel<Factors> ddp(net, g);
    const nn::parallel::NoScatter<std::vector<int>> both(std::vector<int>{0, 1});
    const auto step = [&] {
      net->zero_grad();
      ddp(nn::parallel::Broadcast<Tensor>(full({2}, g->rank() * 2.0)), both).backward();
    };
    step();
    EXPECT_EQ(net->w[0].grad()[0].item<double>(), 1);
    EXPECT_FALSE(net->w[1].grad().defined());
    net->w[1].requires_grad_(true);
    step();
    EXPECT_EQ(net->w[1].grad()[0].item<double>(), 1);
    net->w[0].requires_grad_(false);
    net->w[0].mutable_grad() = Tensor();
    step();
    EXPECT_FALSE(net->w[0].grad().defined());
    EXPECT_EQ(net->w[1].grad()[0].item<double>(), 1);
  });
}

// Hooks see this rank's gradient; what they make of it is reduced.
TEST(Ddp, Hooks) {
  with_groups(2, seconds(60), [](const Group& g) {
    Factors net(1);
    DistributedDataParallel<Factors> ddp(net, g);
    double seen = 0;
    net->w[0].register_hook([&](const Tensor& grad) {
      seen = grad[0].item<double>();
      return grad * 10;
    });
    for (int step = 0; step < 2; ++step) {
      net->zero_grad();
      ddp(nn::parallel::Broadcast<Tensor>(full({2}, g->rank() + 1.0)), kFirst).backward();
      EXPECT_EQ(seen, g->rank() + 1);
      EXPECT_EQ(net->w[0].grad()[0].item<double>(), 15);
    }
  });
}

// An exception in one rank's backward reaches the others.
TEST(Ddp, ABackwardThatFails) {
  with_groups(3, seconds(60), [](const Group& g) {
    Net net;
    DistributedDataParallel<Net> ddp(net, g);
    // Where rank 1 is quick, others may still be merging the batch norm's statistics.
    const std::string said = error_of([&] {
      const Tensor y = ddp(ones({2, 1, 5, 5}));
      if (g->rank() == 1)
        y.register_hook([](const Tensor& grad) -> Tensor {
          if (grad.defined()) throw std::runtime_error("Badness!");
          return grad;
        });
      y.sum().backward();
    });
    if (g->rank() == 1) expect_part(said, "Badness!");
    else expect_part(said, "aborted by rank 1");
    for (const Tensor& p : net->parameters()) EXPECT_FALSE(p.grad().defined());
  });
}

// Parameters and statistics after some steps over `ranks` processes of `devices` devices, four
// shards in all.
std::vector<Tensor> trained(int ranks, std::vector<Device> devices) {
  std::vector<Tensor> result;
  manual_seed(3);
  const Tensor images = randn({27, 1, 5, 5}), targets = randint(0, 4, {27}, kLong);
  Net first;
  with_groups(ranks, seconds(100), [&](const Group& g) {
    Net net(std::dynamic_pointer_cast<NetImpl>(first->clone()));
    DdpOptions o;
    o.order = ReduceOrder::tree(4);
    o.average = Average::sum;
    o.batch = Batch::whole;
    o.devices = devices;
    o.bucket_bytes = 512;
    DistributedDataParallel<Net> ddp(net, g, o);
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 6; ++step) {
      const int64_t n = step % 2 ? 12 : 15, from = step % 2 ? 15 : 0;
      optimizer.zero_grad();
      const Tensor y = ddp(images.slice(0, from, from + n));
      const auto [row, rows] = ddp.rows();
      EXPECT_EQ(y.size(0), rows);
      const Tensor t = targets.slice(0, from + row, from + row + rows);
      (cross_entropy_loss(y, t, {}, Reduction::Sum) / static_cast<double>(n)).backward();
      optimizer.step();
    }
    if (g->rank() != 0) return;
    for (const Tensor& p : net->parameters()) result.push_back(p.detach().clone());
    for (const Tensor& b : net->buffers()) result.push_back(b.clone());
  });
  return result;
}

TEST(Ddp, TheSameBitsForEveryNumberOfRanks) { expect_same_bits_for_every_number_of_ranks(trained); }

// Its gradients are those of the whole batch in one module.
TEST(Ddp, AgreesWithOneProcess) {
  manual_seed(4);
  const Tensor images = randn({8, 1, 5, 5});
  Net alone;
  alone->eval();
  with_groups(2, seconds(60), [&](const Group& g) {
    Net net(std::dynamic_pointer_cast<NetImpl>(alone->clone()));
    net->eval();
    DistributedDataParallel<Net> ddp(net, g);
    ddp(images.slice(0, 4 * g->rank(), 4 * g->rank() + 4)).square().mean().backward();
    Net whole(std::dynamic_pointer_cast<NetImpl>(alone->clone()));
    whole->eval();
    whole->forward(images).square().mean().backward();
    const auto a = net->parameters(), b = whole->parameters();
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_TRUE(a[i].grad().allclose(b[i].grad(), 1e-5, 1e-6)) << i;
  });
}

}  // namespace
}  // namespace ramet::distributed
