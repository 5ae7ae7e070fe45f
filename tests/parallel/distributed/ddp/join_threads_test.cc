// Ranks with different numbers of steps.
#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

struct CountedNetImpl : nn::Cloneable<CountedNetImpl> {
  CountedNetImpl() { CountedNetImpl::reset(); }
  void reset() override {
    fc = register_module("fc", nn::Linear(3, 4));
    norm = register_module("norm", nn::BatchNorm1d(4));
    seen = register_buffer("seen", zeros({}));
  }
  Tensor forward(const Tensor& x) {
    {
      const NoGradGuard off;
      seen.add_(1);
    }
    return norm(fc(x));
  }
  nn::Linear fc{nullptr};
  nn::BatchNorm1d norm{nullptr};
  Tensor seen;
};
RAMET_MODULE(CountedNet);

// Every rank's tensors are those of rank 0.
void expect_equal_everywhere(const Group& g, const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors) {
    Tensor first = t.detach().clone();
    g->broadcast(first, 0).wait();
    EXPECT_TRUE(same_bits(first, t.detach()));
  }
}

TEST(Join, DividesByActiveRanksOrByAll) {
  for (const bool initial : {false, true})
    with_groups(2, seconds(60), [initial](const Group& g) {
      nn::Linear net(nn::LinearOptions(1, 1).bias(false));
      DistributedDataParallel<nn::Linear> ddp(net, g);
      std::vector<double> seen;
      JoinOptions o;
      o.divide_by_initial_world_size = initial;
      optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.01));
      ddp.join(
          [&] {
            for (int step = 0; step < (g->rank() ? 5 : 3); ++step) {
              optimizer.zero_grad();
              ddp(full({1, 1}, 50.0)).sum().backward();
              seen.push_back(net->weight.grad().item<double>());
              optimizer.step();
            }
          },
          o);
      std::vector<double> expected(3, 50);
      if (g->rank()) expected.insert(expected.end(), 2, initial ? 25 : 50);
      EXPECT_EQ(seen, expected);
      expect_equal_everywhere(g, net->parameters());
      // The group goes on as before.
      net->zero_grad();
      ddp(full({1, 1}, g->rank() * 2.0)).sum().backward();
      EXPECT_EQ(net->weight.grad().item<double>(), 1);
    });
}

// The same through stages, which divide themselves.
TEST(Join, ThroughStages) {
  for (const bool initial : {false, true})
    for (const Average average : {Average::mean, Average::sum, Average::weighted})
      for (const bool low_rank : {false, true})
        with_groups(3, seconds(60), [&](const Group& g) {
          nn::Linear net(nn::LinearOptions(4, 8).bias(false));
          DdpOptions options;
          options.average = average;
          if (low_rank) {
            PowerSgdOptions of_rank_1;
            of_rank_1.start = 0;
            of_rank_1.min_compression_rate = 0;
            options.stages.push_back(power_sgd_stage(of_rank_1));
          }
          options.stages.push_back(fp16_stage());
          DistributedDataParallel<nn::Linear> ddp(net, g, options);
          std::vector<double> seen;
          JoinOptions o;
          o.divide_by_initial_world_size = initial;
          optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.01));
          const int steps = g->rank() == 1 ? 5 : 2 + g->rank();  // 2, 5, 4
          ddp.join(
              [&] {
                for (int step = 0; step < steps; ++step) {
                  optimizer.zero_grad();
                  ddp(full({g->rank() + 1, 4}, 50.0)).mean(0).sum().backward();
                  seen.push_back(net->weight.grad()[7][3].item<double>());
                  optimizer.step();
                }
              },
              o);
          for (size_t step = 0; step < seen.size(); ++step) {
            const double active = step < 2 ? 3 : step < 4 ? 2 : 1;
            double expected = 50;
            if (average == Average::sum) expected = 50 * active;
            if (average == Average::mean && initial) expected = 50 * active / 3;
            EXPECT_NEAR(seen[step], expected, expected * 2e-3) << step;
          }
          expect_equal_everywhere(g, net->parameters());
          EXPECT_EQ(ddp.comm_stages().step(), 5);
        });
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Linear net(2, 2);
    DdpOptions options;
    options.stages = {post_local_sgd_stage(new_subgroups(*g, 1), 0)};
    DistributedDataParallel<nn::Linear> ddp(net, g, options);
    EXPECT_ERROR_TEXT(ddp.join([] {}), "a communication stage that chooses the ranks");
  });
}

// Batch norms, with merged statistics and synchronised, a buffer, accumulation, three ranks.
TEST(Join, ForwardsThatMeet) {
  for (const bool sync : {false, true})
    with_groups(3, seconds(60), [sync](const Group& g) {
      CountedNet net;
      if (sync) nn::convert_sync_batchnorm(*net);
      DdpOptions options;
      options.bucket_bytes = 16;
      DistributedDataParallel<CountedNet> ddp(net, g, options);
      optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
      const int steps = g->rank() == 1 ? 6 : g->rank();  // 0, 6, 2
      ddp.join([&] {
        for (int step = 0; step < steps; ++step) {
          optimizer.zero_grad();
          {
            const auto off = ddp.no_sync();
            ddp(randn({2, 3})).square().sum().backward();
          }
          ddp(randn({3, 3})).square().sum().backward();
          optimizer.step();
        }
      });
      expect_equal_everywhere(g, net->parameters());
      expect_equal_everywhere(g, net->buffers());
      EXPECT_EQ(net->seen.item<double>(), 12);
      EXPECT_EQ(net->norm->num_batches_tracked.item<int64_t>(), 12);
    });
}

// The statistics of a forward are those of the ranks that took part.
TEST(Join, StatisticsOfActiveRanks) {
  with_groups(2, seconds(60), [](const Group& g) {
    CountedNet net;
    {
      const NoGradGuard off;
      net->fc->weight.zero_();
      net->fc->bias.zero_();
      net->fc->weight.fill_(1);
    }
    nn::convert_sync_batchnorm(*net);
    DistributedDataParallel<CountedNet> ddp(net, g);
    Tensor y;
    ddp.join([&] {
      if (g->rank() == 0) return;
      y = ddp(tensor({{1.0, 0.0, 0.0}, {3.0, 0.0, 0.0}}, TensorOptions(kFloat)));
      y.sum().backward();
    });
    if (g->rank() == 1) {
      EXPECT_NEAR(y[0][0].item<double>(), -1, 1e-4);
      EXPECT_NEAR(y[1][0].item<double>(), 1, 1e-4);
    }
    EXPECT_NEAR(net->norm->running_mean[0].item<double>(), 0.1 * 2, 1e-6);
  });
}

TEST(Join, WeightedMeans) {
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Linear net(nn::LinearOptions(1, 1).bias(false));
    DdpOptions options;
    options.average = Average::weighted;
    DistributedDataParallel<nn::Linear> ddp(net, g, options);
    ddp.join([&] {
      for (int step = 0; step < (g->rank() ? 2 : 1); ++step) {
        net->zero_grad();
        ddp(full({g->rank() ? 3 : 1, 1}, g->rank() ? 6.0 : 2.0)).mean().backward();
        EXPECT_EQ(net->weight.grad().item<double>(), step ? 6 : 5);
      }
    });
  });
}

TEST(Join, EarlyTermination) {
  with_groups(3, seconds(60), [](const Group& g) {
    CountedNet net;
    DistributedDataParallel<CountedNet> ddp(net, g);
    JoinOptions o;
    o.throw_on_early_termination = true;
    int steps = 0;
    const auto loop = [&](int n) {
      ddp.join(
          [&] {
            for (steps = 0; steps < n; ++steps) {
              net->zero_grad();
              ddp(randn({2, 3})).sum().backward();
            }
          },
          o);
    };
    const std::string said = error_of([&] { loop(g->rank() == 2 ? 1 : 4); });
    if (g->rank() == 2) expect_part(said, "Rank 2 exhausted all inputs.");
    else
      expect_part(said,
                  "Detected at least one rank that exhausted inputs. Throwing across all ranks.");
    EXPECT_EQ(steps, 1);
    // The groups are whole; as many steps everywhere are no early end.
    EXPECT_EQ(error_of([&] { loop(2); }), "no error");
  });
}

TEST(Join, ALoopThatFails) {
  with_groups(3, seconds(600), [](const Group& g) {
    CountedNet net;
    DistributedDataParallel<CountedNet> ddp(net, g);
    const std::string said = error_of([&] {
      ddp.join([&] {
        if (g->rank() == 0) throw std::runtime_error("no more data");
        for (int step = 0; step < g->rank(); ++step) ddp(randn({2, 3})).sum().backward();
      });
    });
    expect_part(said, "no more data");
  });
}

TEST(Join, Refusals) {
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Linear net(1, 1);
    DistributedDataParallel<nn::Linear> ddp(net, g);
    EXPECT_ERROR_TEXT(ddp.join(nullptr), "empty function");
    const std::string said = error_of([&] { ddp.join([&] { ddp.join([] {}); }); });
    expect_part(said, "inside another join");
  });
  // One reducer, two modules.
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Linear first(1, 1), second(1, 1);
    replicate(first, g), replicate(second, g);
    EXPECT_EQ(error_of([&] { replicate_handle(first).join([] {}); }),
              "[join] the module's gradients are reduced together with those of 1 more, which were "
              "given to replicate(): expected one module");
    second = nullptr;
    replicate_handle(first).join([] {});
  });
}

}  // namespace
}  // namespace ramet::distributed
