// The plan of the buckets, parameters that are frozen on the way, when and how ranks average.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "nn/layers/basic/linear.h"
#include "nn/module/cloneable.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

using Used = nn::parallel::NoScatter<std::vector<int>>;
using Rows = nn::parallel::Broadcast<Tensor>;

// w[i] x for those that are used, the first one innermost: its gradient comes last.
struct ChainImpl : nn::Cloneable<ChainImpl> {
  explicit ChainImpl(int n) : n(n) { ChainImpl::reset(); }
  void reset() override {
    w.clear();
    for (int i = 0; i < n; ++i)
      w.push_back(register_parameter("w" + std::to_string(i), full({2}, i + 1.0)));
  }
  Tensor forward(const Tensor& x, const std::vector<int>& used) {
    Tensor y = x;
    for (int i : used) y = y * w[static_cast<size_t>(i)];
    return y.sum();
  }
  int n;
  std::vector<Tensor> w;
};
RAMET_MODULE(Chain);

DdpOptions one_each() {
  DdpOptions o;
  o.bucket_bytes = 1;
  return o;
}

TEST(DdpPlan, FollowsTheOrderOfCompletion) {
  with_groups(2, seconds(60), [](const Group& g) {
    Chain net(4);
    DistributedDataParallel<Chain> ddp(net, g, one_each());
    EXPECT_EQ(ddp.plan(), (BucketPlan{{"w3"}, {"w2"}, {"w1"}, {"w0"}}));
    // The gradient of what is used last comes first. The ranks disagree about w1 and w3: the later
    // place counts, and names where these are equal. No rank uses w2.
    const Used mine(g->rank() ? std::vector<int>{0, 1, 3} : std::vector<int>{0, 3, 1});
    ddp(Rows(ones({2})), mine).backward();
    EXPECT_EQ(ddp.plan(), (BucketPlan{{"w1"}, {"w3"}, {"w0"}, {"w2"}}));
    // Once.
    ddp(Rows(ones({2})), Used({3, 2, 1, 0})).backward();
    EXPECT_EQ(ddp.plan(), (BucketPlan{{"w1"}, {"w3"}, {"w0"}, {"w2"}}));
    EXPECT_EQ(ddp.unused_parameters(), std::vector<std::string>());
  });
}

TEST(DdpPlan, SavedAndSetAgain) {
  with_groups(2, seconds(60), [](const Group& g) {
    Chain net(3);
    DistributedDataParallel<Chain> ddp(net, g);
    const BucketPlan plan = {{"w1"}, {"w0", "w2"}};
    ddp.set_plan(plan);
    EXPECT_EQ(ddp.plan(), plan);
    const Tensor x = full({2}, g->rank() + 1.0);
    ddp(Rows(x), Used({0, 1, 2})).backward();
    EXPECT_EQ(ddp.plan(), plan);
    EXPECT_EQ(net->w[0].grad()[0].item<double>(), 1.5 * 6);
    EXPECT_EQ(net->w[2].grad()[1].item<double>(), 1.5 * 2);
    EXPECT_ERROR_TEXT(ddp.set_plan({{"w0"}, {"w1"}}), "'w2' is in no bucket");
    EXPECT_ERROR_TEXT(ddp.set_plan({{"w0"}, {"w1", "w0"}, {"w2"}}), "'w0' twice");
    EXPECT_ERROR_TEXT(ddp.set_plan({{"w7"}}), "got 'w7'");
    EXPECT_ERROR_TEXT(ddp.set_plan({std::vector<std::string>(2049, "w0")}),
                      "a bucket of 2049 parameters, expected at most 2048");
    const BucketPlan odd = {{"w0", "w1", "w2"}};
    EXPECT_ERROR_TEXT(ddp.set_plan(g->rank() ? odd : plan), "rank 1 has another plan");
    EXPECT_EQ(ddp.plan(), plan);
  });
}

// Frozen parameters leave the plan, thawed ones come back, on all ranks alike.
TEST(DdpPlan, FrozenParameters) {
  with_groups(2, seconds(60), [](const Group& g) {
    Chain net(3);
    DdpOptions o;
    o.bucket_bytes = 16;
    DistributedDataParallel<Chain> ddp(net, g, o);
    const auto step = [&] {
      net->zero_grad();
      ddp(Rows(full({2}, g->rank() * 2.0)), Used({0, 1, 2})).backward();
    };
    step();
    EXPECT_EQ(ddp.plan(), (BucketPlan{{"w1", "w2"}, {"w0"}}));
    net->w[1].requires_grad_(false);
    step();
    EXPECT_EQ(ddp.plan().size(), 1u);
    EXPECT_FALSE(net->w[1].grad().defined());
    EXPECT_EQ(net->w[2].grad()[0].item<double>(), 2);
    net->w[1].requires_grad_(true);
    step();
    EXPECT_EQ(ddp.plan().size(), 2u);
    EXPECT_EQ(net->w[1].grad()[0].item<double>(), 3);
  });
}

// One of two parameters of one bucket gets another dtype.
TEST(DdpPlan, ParametersOfAnotherDtype) {
  with_groups(2, seconds(60), [](const Group& g) {
    Chain net(2);
    DistributedDataParallel<Chain> ddp(net, g);
    const auto step = [&] {
      net->zero_grad();
      ddp(Rows(full({2}, g->rank() * 2.0)), Used({0, 1})).backward();
      EXPECT_EQ(net->w[0].grad()[0].item<double>(), 2);
      EXPECT_EQ(net->w[1].grad()[0].item<double>(), 1);
    };
    step();
    EXPECT_EQ(ddp.plan().size(), 1u);
    net->w[1].set_data(net->w[1].detach().to(kDouble));
    step();
    EXPECT_EQ(ddp.plan().size(), 2u);
    EXPECT_EQ(net->w[1].grad().scalar_type(), kDouble);
    EXPECT_ERROR_TEXT(ddp.set_plan({{"w0", "w1"}}),
                      "expected dtype and device of the others in its bucket, float32[2]");
  });
}

TEST(DdpPlan, RanksThatFreezeDifferently) {
  with_groups(3, seconds(600), [](const Group& g) {
    Chain net(3);
    DistributedDataParallel<Chain> ddp(net, g);
    const auto step = [&] { ddp(Rows(ones({2})), Used({0, 1, 2})).backward(); };
    step();
    net->zero_grad();
    // Of one shape, and as many on each rank.
    net->w[g->rank() == 1 ? 0 : 2].requires_grad_(false);
    const std::string said = error_of(step);
    expect_part(said, "parameter 'w0' is frozen on rank 1 and not on ranks 0, 2");
    expect_part(said, "parameter 'w2' is frozen on ranks 0, 2 and not on rank 1");
    for (const Tensor& w : net->w) EXPECT_FALSE(w.grad().defined());
  });
}

// What comes to a parameter from outside the module's forward is part of its gradient.
TEST(DdpPlan, ParametersOutsideOfTheForward) {
  with_groups(2, seconds(60), [](const Group& g) {
    Chain net(2);
    DistributedDataParallel<Chain> ddp(net, g, one_each());
    for (int step = 0; step < 2; ++step) {
      net->zero_grad();
      const Tensor penalty = (net->w[1] * (g->rank() ? 10.0 : 30.0)).sum();
      (ddp(Rows(ones({2})), Used({0, 1})) + penalty).backward();
      EXPECT_EQ(net->w[1].grad()[0].item<double>(), 1 + 20);
      EXPECT_EQ(net->w[0].grad()[0].item<double>(), 2);
    }
  });
}

TEST(DdpPlan, Options) {
  with_groups(2, seconds(60), [](const Group& g) {
    Chain net(2);
    const auto said = [&](const DdpOptions& o) {
      return error_of([&] { DistributedDataParallel<Chain> ddp(net, g, o); });
    };
    DdpOptions o;
    o.sync_from = 2;
    expect_part(said(o), "sync_from: got 2, expected 0 to 1");
    o = {};
    o.bucket_bytes = -1;
    expect_part(said(o), "bucket_bytes: got -1");
    o = {};
    o.average = Average::sum;
    o.division = Division::pre;
    expect_part(said(o), "expected Average::mean");
    o = {};
    o.ignored.names = {"w*"};
    expect_part(said(o), "all parameters of the module are ignored");
    EXPECT_ERROR_TEXT(DistributedDataParallel<Chain> ddp(net, nullptr),
                      "group: got an empty pointer");
  });
}

// Every rank gets a report of every option in which a rank differs from rank 0, and goes on
// unchanged.
TEST(DdpPlan, OptionsThatDiffer) {
  with_groups(3, seconds(60), [](const Group& g) {
    Chain net(2);
    const DdpOptions plain;
    const auto said = [&](const std::function<void(DdpOptions&)>& change) {
      DdpOptions o;
      if (g->rank() == 1) change(o);
      return error_of([&] { DistributedDataParallel<Chain> ddp(net, g, o); });
    };
    const struct {
      std::function<void(DdpOptions&)> change;
      std::string text;
    } cases[] = {
        {[](DdpOptions& o) { o.average = Average::weighted; },
         "average: got weighted, expected mean as on rank 0"},
        {[](DdpOptions& o) { o.average = Average::sum; },
         "average: got sum, expected mean as on rank 0"},
        {[](DdpOptions& o) { o.division = Division::split_sqrt; },
         "division: got split_sqrt, expected post as on rank 0"},
        {[](DdpOptions& o) { o.division = Division::pre; }, "division: got pre, expected post"},
        {[](DdpOptions& o) { o.order = ReduceOrder::any(); }, "order: got any, expected fixed"},
        {[](DdpOptions& o) { o.sync_mode = SyncMode::at_forward; },
         "sync_mode: got at_forward, expected at_backward"},
        {[](DdpOptions& o) { o.batch = Batch::whole; }, "batch: got whole, expected local"},
        {[](DdpOptions& o) { o.bucket_bytes = 8; },
         "bucket_bytes: got 8, expected " + std::to_string(plain.bucket_bytes)},
        {[](DdpOptions& o) { o.stages = {fp16_stage()}; }, ", expected [] as on rank 0"},
        {[](DdpOptions& o) { o.init_sync = false; }, "init_sync: got false, expected true"},
        {[](DdpOptions& o) { o.sync_from = 2; }, "sync_from: got 2, expected 0"},
    };
    for (const auto& c : cases) {
      const std::string text = said(c.change);
      expect_part(text, "the ranks have different options: rank 1 has ");
      expect_part(text, c.text);
    }
    expect_part(said([](DdpOptions& o) {
                  o.average = Average::sum;
                  o.bucket_bytes = 8;
                }),
                "rank 1 has average: got sum, expected mean as on rank 0, bucket_bytes: got 8");
    DdpOptions whole;
    whole.batch = Batch::whole;
    whole.devices = {"cpu:0", "cpu:1"};
    if (g->rank() == 2) whole.devices = {"cpu:0"};
    EXPECT_ERROR_TEXT(DistributedDataParallel<Chain> ddp(net, g, whole),
                      "rank 2 has number of devices: got 1, expected 2 as on rank 0");
    DistributedDataParallel<Chain> ddp(net, g);
    ddp(Rows(full({2}, g->rank() * 2.0)), Used({0, 1})).backward();
    EXPECT_EQ(net->w[0].grad()[0].item<double>(), 4);
  });
}

TEST(DdpPlan, TwoOfOneModule) {
  with_groups(1, seconds(60), [](const Group& g) {
    Chain net(2);
    DistributedDataParallel<Chain> ddp(net, g);
    EXPECT_ERROR_TEXT(DistributedDataParallel<Chain> again(net, g),
                      "reduced by another DistributedDataParallel or replicate()");
  });
}

// Two modules of the same shapes, over one group. A rank that comes to them in another order is an
// error on all ranks, not a sum of one module's gradients and the other's.
TEST(DdpPlan, TwoModulesInAnotherOrder) {
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Linear a(2, 2), b(2, 2);
    DistributedDataParallel<nn::Linear> first(a, g), second(b, g);
    const Tensor x = full({1, 2}, g->rank() + 1.0);
    const auto step = [&](bool swapped) {
      a->zero_grad();
      b->zero_grad();
      Tensor of_a = swapped ? Tensor() : first(x).sum();
      const Tensor of_b = second(x).sum() * 2.0;
      if (swapped) of_a = first(x).sum();
      (of_a + of_b).backward();
    };
    for (const bool swapped : {false, true}) {
      step(swapped);
      EXPECT_EQ(a->weight.grad()[0][0].item<double>(), 1.5);
      EXPECT_EQ(b->weight.grad()[0][0].item<double>(), 3);
    }
    const std::string said = error_of([&] { step(g->rank() == 1); });
    expect_part(said, "Detected mismatch between collectives on ranks");
    expect_part(said, "\"ddp (number 2)/bucket 0");
  });
}

// Either the forward or the backward decides whether gradients are reduced.
TEST(DdpPlan, SyncModes) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const SyncMode mode : {SyncMode::at_backward, SyncMode::at_forward}) {
      Chain net(1);
      DdpOptions o;
      o.sync_mode = mode;
      DistributedDataParallel<Chain> ddp(net, g, o);
      const double r = g->rank();
      const auto gradient = [&] { return net->w[0].grad()[0].item<double>(); };
      Tensor loss;
      {
        const auto off = ddp.no_sync();
        loss = ddp(Rows(full({2}, 2 * r)), Used({0}));
      }
      loss.backward();
      EXPECT_EQ(gradient(), mode == SyncMode::at_forward ? 2 * r : 1);
      net->zero_grad();
      loss = ddp(Rows(full({2}, 2 * r)), Used({0}));
      {
        const auto off = ddp.no_sync();
        loss.backward();
      }
      EXPECT_EQ(gradient(), mode == SyncMode::at_forward ? 1 : 2 * r);
    }
  });
}

// Three backwards of a mean of three losses, one exchange.
TEST(DdpPlan, Accumulate) {
  with_groups(2, seconds(60), [](const Group& g) {
    Chain net(1);
    DistributedDataParallel<Chain> ddp(net, g);
    const auto loss = [&](double x) { return ddp(Rows(full({2}, x)), Used({0})); };
    const auto gradient = [&] { return net->w[0].grad()[0].item<double>(); };
    const double r = g->rank();
    auto step = ddp.accumulate(3);
    for (const double base : {0.0, 30.0}) {
      g->reset_wire_bytes();
      EXPECT_FALSE(step.backward(loss(base + 3 + r)));
      EXPECT_NEAR(gradient(), (base + 3 + r) / 3, 1e-5);
      // What throws does not count.
      EXPECT_THROW(step.backward(ones({2}, TensorOptions(kFloat)).requires_grad_(true)), Error);
      EXPECT_FALSE(step.backward(loss(base + 6 + r)));
      EXPECT_EQ(g->wire_bytes("all_reduce_members"), 0u);
      EXPECT_TRUE(step.backward(loss(base + 9 + r)));
      EXPECT_GT(g->wire_bytes("all_reduce_members"), 0u);
      EXPECT_NEAR(gradient(), base + 6 + 0.5, 1e-5);
      net->zero_grad();
    }
    EXPECT_TRUE(ddp.accumulate(1).backward(loss(r)));
    EXPECT_EQ(gradient(), 0.5);

    const auto off = ddp.no_sync();
    auto two = ddp.accumulate(2);
    EXPECT_FALSE(two.backward(loss(1)));
    EXPECT_ERROR_TEXT(two.backward(loss(1)),
                      "[accumulate] backward 2 of 2: got gradient synchronisation switched off");
    EXPECT_ERROR_TEXT((void)ddp.accumulate(0), "k: got 0, expected at least 1");
    Chain other(1);
    DdpOptions o;
    o.sync_mode = SyncMode::at_forward;
    DistributedDataParallel<Chain> decided(other, g, o);
    EXPECT_ERROR_TEXT((void)decided.accumulate(2), "sync_mode: got at_forward");
  });
}

// Sums of 16-bit floats that are too large, and means that are not.
TEST(DdpPlan, Divisions) {
  with_groups(4, seconds(60), [](const Group& g) {
    for (const Division division : {Division::post, Division::pre, Division::split_sqrt}) {
      Chain net(1);
      net->to(kHalf);
      DdpOptions o;
      o.division = division;
      DistributedDataParallel<Chain> ddp(net, g, o);
      const Tensor large = full({2}, 40000.0, TensorOptions(kHalf));
      ddp(Rows(large), Used({0})).backward();
      const double seen = net->w[0].grad().to(kFloat)[0].item<double>();
      // Sums of 160000 and 80000 are too large.
      EXPECT_EQ(seen, division == Division::pre ? 40000 : INFINITY);
      net->zero_grad();
      ddp(Rows(full({2}, g->rank() * 8.0, TensorOptions(kHalf))), Used({0})).backward();
      EXPECT_EQ(net->w[0].grad().to(kFloat)[0].item<double>(), 12);
    }
  });
}

}  // namespace
}  // namespace ramet::distributed
