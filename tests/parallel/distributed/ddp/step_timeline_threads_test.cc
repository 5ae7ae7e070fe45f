// What DistributedDataParallel and replicate() report about the time of a step. Ranks are threads;
// the tests check orders and names, never how long something took.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "nn/layers/basic/linear.h"
#include "nn/module/cloneable.h"
#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/ddp/step_timeline.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/given_gradients.h"
#include "tests/runtime/foreign_locale.h"

namespace ramet::distributed {
namespace {

// Given's gradients come in the opposite order, w3, w2, w1, w0: that of the sums in its forward.
const Shapes kShapes = {{2}, {3}, {4}, {6}};

std::vector<Tensor> gradients(const std::vector<size_t>& used = {0, 1, 2, 3},
                              ScalarType dtype = kFloat) {
  std::vector<Tensor> out(kShapes.size());
  for (size_t i : used) out[i] = ones(kShapes[i], TensorOptions(dtype));
  return out;
}

// What is true of every timeline.
void expect_ordered(const StepTimeline& t) {
  EXPECT_GT(t.step, 0);
  EXPECT_LE(0, t.backward);
  EXPECT_LE(t.backward, t.end);
  double waited = 0, launched = 0;
  for (size_t i = 0; i < t.buckets.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "bucket " << i << " of\n" << t.table());
    const BucketTimeline& b = t.buckets[i];
    EXPECT_LE(b.gradients, b.parameters);
    EXPECT_EQ(b.stalling_parameter.empty(), b.gradients == 0);
    EXPECT_EQ(b.first > 0, b.gradients > 0);
    EXPECT_LE(b.first, b.complete);
    if (b.parameters == 0) {
      EXPECT_EQ(b.done, 0);
      EXPECT_EQ(b.waited, 0);
      EXPECT_EQ(b.bytes, 0);
      continue;
    }
    EXPECT_LE(b.complete, b.launched);
    EXPECT_LE(b.launched, b.done);
    EXPECT_LE(b.done, t.end);
    EXPECT_LE(launched, b.launched) << "in sequence";
    launched = b.launched;
    EXPECT_GE(b.waited, 0);
    if (b.done <= t.backward) { EXPECT_EQ(b.waited, 0); }
    waited += b.waited;
    for (size_t k = 0; k < i; ++k) EXPECT_LE(t.buckets[k].complete, b.launched);
  }
  EXPECT_EQ(t.exposed(), waited);
  EXPECT_LE(t.exposed(), t.end - t.backward + 1e-9);  // of rounding
}

// The parameter that comes last is named, and so is a bucket that delays another one.
TEST(StepTimeline, WhatABucketWaitsFor) {
  // Sums of replicas, one for each rank here, formed one by one and all together.
  for (const int64_t bucket_bytes : {1, 1 << 20})
    with_groups(2, seconds(60), [&](const Group& g) {
      Given net(kShapes);
      DdpOptions o;
      o.bucket_bytes = bucket_bytes;
      GivenDdp ddp(net, g, o);
      EXPECT_EQ(ddp.last_step().step, 0);
      EXPECT_TRUE(ddp.last_step().buckets.empty());
      std::vector<std::string> came;  // hooks record it
      for (size_t i = 0; i < net->w.size(); ++i)
        net->w[i].register_hook([&came, i](const Tensor& grad) {
          came.push_back("w" + std::to_string(i));
          return grad;
        });
      int64_t step = 0;
      for (const auto& [plan, last, held] :
           {std::tuple(BucketPlan{{"w0", "w3"}, {"w1", "w2"}}, BucketPlan{{"w0", "w1"}},
                       std::vector<std::optional<size_t>>{{}, 0}),
            {BucketPlan{{"w2", "w3"}, {"w0", "w1"}}, BucketPlan{{"w2", "w0"}}, {{}, {}}},
            // The one that was complete last counts, not the one just before.
            {BucketPlan{{"w3"}, {"w0"}, {"w1"}, {"w2"}},
             BucketPlan{{"w3", "w0", "w1", "w2"}},
             {{}, {}, 1, 1}},
            {BucketPlan{{"w1"}, {"w0"}, {"w3", "w2"}},
             BucketPlan{{"w1", "w0", "w2"}},
             {{}, {}, 1}}}) {
        ddp.set_plan(plan);
        came.clear();
        reduced(ddp, net, gradients());
        if (bucket_bytes == 1) {
          EXPECT_EQ(came, (std::vector<std::string>{"w3", "w2", "w1", "w0"}));
        }
        const StepTimeline t = ddp.last_step();
        expect_ordered(t);
        EXPECT_EQ(t.step, ++step);
        ASSERT_EQ(t.buckets.size(), plan.size());
        for (size_t b = 0; b < plan.size(); ++b) {
          int64_t bytes = 0;
          for (const std::string& name : plan[b])
            bytes += 4 * kShapes[static_cast<size_t>(name[1] - '0')][0];
          EXPECT_EQ(t.buckets[b].bytes, bytes);
          EXPECT_EQ(t.buckets[b].parameters, static_cast<int64_t>(plan[b].size()));
          EXPECT_EQ(t.buckets[b].gradients, t.buckets[b].parameters);
          EXPECT_EQ(t.buckets[b].stalling_parameter, last[0][b]);
          EXPECT_EQ(t.held_back_by(b), held[b]) << "bucket " << b << " of\n" << t.table();
          if (plan[b].size() > 1) { EXPECT_LT(t.buckets[b].first, t.buckets[b].complete); }
        }
        EXPECT_ERROR_TEXT(t.held_back_by(plan.size()),
                          "[held_back_by] bucket: got " + std::to_string(plan.size()));
      }
    });
}

// What is used first is registered last: its gradient is the last one that the replica computes.
struct OtherOrderImpl : nn::Cloneable<OtherOrderImpl> {
  OtherOrderImpl() { OtherOrderImpl::reset(); }
  void reset() override {
    second = register_parameter("second", ones({2}));
    first = register_parameter("first", ones({2}));
  }
  Tensor forward(const Tensor& x) { return (x * first * second).sum(); }
  Tensor second, first;
};
RAMET_MODULE(OtherOrder);

// Not the order in which the replicas' sums of one bucket are handed on, the newest node first.
TEST(StepTimeline, OrderOfWhatReplicasCompute) {
  with_groups(2, seconds(60), [](const Group& g) {
    OtherOrder net;
    DistributedDataParallel<OtherOrder> ddp(net, g);
    for (int step = 0; step < 2; ++step) {
      ddp(ones({2})).backward();
      const StepTimeline t = ddp.last_step();
      expect_ordered(t);
      EXPECT_EQ(t.buckets[0].gradients, 2);
      EXPECT_EQ(t.buckets[0].stalling_parameter, "first");
    }
  });
}

// Of the gradients as they are kept, whatever communication hooks make of them.
TEST(StepTimeline, Bytes) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const ScalarType dtype : {kFloat, kDouble}) {
      Given net(kShapes, dtype);
      GivenDdp ddp(net, g, with_stages({fp16_stage()}));
      reduced(ddp, net, gradients({0, 1, 2, 3}, dtype));
      const StepTimeline t = ddp.last_step();
      expect_ordered(t);
      ASSERT_EQ(t.buckets.size(), 1u);
      EXPECT_EQ(t.buckets[0].bytes, (2 + 3 + 4 + 6) * (dtype == kFloat ? 4 : 8));
    }
  });
}

// The first plan is that of registration; then it follows the gradients, and what is frozen.
TEST(StepTimeline, BucketsChange) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(kShapes);
    DdpOptions o;
    o.bucket_bytes = 1;
    GivenDdp ddp(net, g, o);
    const auto last = [&](const std::vector<size_t>& used) {
      reduced(ddp, net, gradients(used));
      const StepTimeline t = ddp.last_step();
      expect_ordered(t);
      std::vector<std::string> names;
      for (const BucketTimeline& b : t.buckets) names.push_back(b.stalling_parameter);
      return names;
    };
    // No rank uses w2: from the second step on its bucket is the last one.
    EXPECT_EQ(last({0, 1, 3}), (std::vector<std::string>{"w3", "", "w1", "w0"}));
    EXPECT_EQ(last({0, 1, 3}), (std::vector<std::string>{"w3", "w1", "w0", ""}));
    net->w[1].requires_grad_(false);
    EXPECT_EQ(last({0, 1, 3}), (std::vector<std::string>{"w3", "", "w0", ""}));
    EXPECT_EQ(ddp.last_step().buckets[1].parameters, 0) << "frozen";
    EXPECT_EQ(ddp.last_step().buckets[3].parameters, 1) << "not used";
    net->w[1].requires_grad_(true);
    EXPECT_EQ(last({0, 1, 2, 3}), (std::vector<std::string>{"w3", "w1", "w0", "w2"}));
    EXPECT_EQ(ddp.last_step().held_back_by(3), 2u);
    EXPECT_EQ(ddp.last_step().step, 4);
    // A step that reduces nothing is none.
    for (const Tensor& w : net->w) w.requires_grad_(false);
    const Tensor x = ones({1, 1}).set_requires_grad(true);
    ddp(x, nn::parallel::NoScatter<std::vector<Tensor>>(gradients())).backward();
    EXPECT_TRUE(x.grad().defined());
    EXPECT_EQ(ddp.last_step().step, 4);
  });
}

TEST(StepTimeline, NoSync) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(kShapes);
    GivenDdp ddp(net, g);
    ddp.set_plan({{"w0"}, {"w1", "w2", "w3"}});
    const nn::parallel::NoScatter<std::vector<Tensor>> all(gradients()), others(gradients({1, 3}));
    {
      const auto off = ddp.no_sync();
      ddp(ones({1, 1}), all).backward();
      EXPECT_EQ(ddp.last_step().step, 0);
    }
    ddp(ones({1, 1}), others).backward();
    const StepTimeline t = ddp.last_step();
    expect_ordered(t);
    EXPECT_EQ(t.step, 1);
    // What had accumulated is reduced, but is no gradient of this backward.
    EXPECT_TRUE(net->w[0].grad().equal(ones({2})));
    EXPECT_EQ(t.buckets[0].parameters, 1);
    EXPECT_EQ(t.buckets[0].gradients, 0);
    EXPECT_EQ(t.buckets[0].complete, 0);
    EXPECT_EQ(t.buckets[1].parameters, 3);
    EXPECT_EQ(t.buckets[1].gradients, 2);
    EXPECT_EQ(t.buckets[1].stalling_parameter, "w1");
    auto step = ddp.accumulate(3);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ddp.last_step().step, 1);
      step.backward(ddp(ones({1, 1}), all));
    }
    EXPECT_EQ(ddp.last_step().step, 2);
    EXPECT_EQ(ddp.last_step().buckets[0].stalling_parameter, "w0");
  });
}

// No parameter is blamed that gives nothing: by this rank, or by its whole backward.
TEST(StepTimeline, UnusedParameters) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(kShapes);
    GivenDdp ddp(net, g);
    ddp.set_plan({{"w3"}, {"w1", "w2"}, {"w0"}});
    reduced(ddp, net, gradients(g->rank() ? std::vector<size_t>{0, 1} : std::vector<size_t>{1, 3}));
    StepTimeline t = ddp.last_step();
    expect_ordered(t);
    const auto last = [&](size_t b) { return t.buckets[b].stalling_parameter; };
    EXPECT_EQ(last(0), g->rank() ? "" : "w3");
    EXPECT_EQ(last(1), "w1");
    EXPECT_EQ(t.buckets[1].gradients, 1);
    EXPECT_EQ(t.buckets[1].bytes, 4 * (3 + 4));
    EXPECT_EQ(last(2), g->rank() ? "w0" : "");
    EXPECT_EQ(t.held_back_by(2), g->rank() ? std::nullopt : std::optional<size_t>(1));
    EXPECT_EQ(contains(t.table(), "nothing: no gradient of this rank"), true);

    const std::vector<size_t> used = g->rank() ? std::vector<size_t>{} : std::vector<size_t>{2};
    const Tensor x = ones({1, 1}).set_requires_grad(true);
    ddp(x, nn::parallel::NoScatter<std::vector<Tensor>>(gradients(used))).backward();
    t = ddp.last_step();
    expect_ordered(t);
    if (g->rank() == 0) return;
    for (size_t b = 0; b < 3; ++b) {
      EXPECT_EQ(t.buckets[b].gradients, 0);
      EXPECT_EQ(t.held_back_by(b), std::nullopt);
      EXPECT_LE(t.backward, t.buckets[b].launched) << "where the backward ends";
    }
  });
}

// That of the step before stays.
TEST(StepTimeline, BackwardsThatFail) {
  for (const bool in_backward : {true, false})
    with_groups(2, seconds(60), [in_backward](const Group& g) {
      Given net(kShapes);
      const bool mine = g->rank() == 1;
      DdpOptions o;
      if (!in_backward) o = with_stages({std::make_shared<FailingStage>(mine, 1)});
      GivenDdp ddp(net, g, o);
      reduced(ddp, net, gradients());
      const std::string before = ddp.last_step().table();
      EXPECT_EQ(ddp.last_step().step, 1);
      if (in_backward && mine)
        net->w[1].register_hook(
            [](const Tensor&) -> Tensor { throw std::runtime_error("Badness!"); });
      EXPECT_ERROR_TEXT(reduced(ddp, net, gradients()), mine ? "Badness!" : "rank 1");
      EXPECT_EQ(ddp.last_step().table(), before);
    });
}

// A rank's part in the others' steps is no step of its own, and one that was called off is none.
TEST(StepTimeline, Join) {
  for (const bool early : {false, true})
    with_groups(2, seconds(60), [early](const Group& g) {
      nn::Linear net(3, 2);
      DistributedDataParallel<nn::Linear> ddp(net, g);
      JoinOptions o;
      o.throw_on_early_termination = early;
      const int steps = g->rank() ? 5 : 3;
      const std::string said = error_of([&] {
        ddp.join(
            [&] {
              for (int i = 0; i < steps; ++i) {
                ddp(ones({2, 3})).sum().backward();
                expect_ordered(ddp.last_step());
                EXPECT_EQ(ddp.last_step().step, i + 1);
              }
            },
            o);
      });
      EXPECT_EQ(said == "no error", !early) << said;
      EXPECT_EQ(ddp.last_step().step, early ? 3 : steps);
      EXPECT_EQ(ddp.last_step().buckets[0].gradients, 2);
    });
}

// A gradient has come when all devices have computed theirs.
TEST(StepTimeline, SeveralDevices) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(kShapes);
    DdpOptions o;
    o.devices = {"cpu:0", "cpu:1"};
    o.order = ReduceOrder::tree(4);
    o.average = Average::sum;
    GivenDdp ddp(net, g, o);
    ddp.set_plan({{"w0", "w3"}, {"w1"}, {"w2"}});
    ddp(ones({2, 1}), nn::parallel::Broadcast<std::vector<Tensor>>(gradients())).sum().backward();
    EXPECT_TRUE(net->w[0].grad().equal(full({2}, 4.0)));
    const StepTimeline t = ddp.last_step();
    expect_ordered(t);
    EXPECT_EQ(t.buckets[0].stalling_parameter, "w0");
    EXPECT_EQ(t.buckets[0].gradients, 2);
    EXPECT_EQ(t.buckets[0].bytes, 4 * (2 + 6));
    EXPECT_EQ(t.buckets[1].stalling_parameter, "w1");
    EXPECT_EQ(t.buckets[2].stalling_parameter, "w2");
  });
}

// One timeline of all modules that share a reducer.
TEST(StepTimeline, ReplicatedModules) {
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Linear a(nn::LinearOptions(3, 3).bias(false)), b(nn::LinearOptions(3, 3).bias(false));
    replicate(a, g);
    replicate(b, g);
    const Tensor x = ones({2, 3});
    for (const bool a_first : {true, false}) {
      (a_first ? b(a(x)) : a(b(x))).sum().backward();
      for (const auto& net : {a, b}) {
        const StepTimeline t = replicate_handle(net).last_step();
        expect_ordered(t);
        EXPECT_EQ(t.step, a_first ? 1 : 2);
        ASSERT_EQ(t.buckets.size(), 1u);
        EXPECT_EQ(t.buckets[0].gradients, 2);
        EXPECT_EQ(t.buckets[0].bytes, 2 * 9 * 4);
        EXPECT_EQ(t.buckets[0].stalling_parameter, a_first ? "weight" : "1/weight");
      }
    }
    replicate_handle(a).set_plan({{"weight"}, {"1/weight"}});
    const auto off = replicate_handle(a).no_sync();
    b(a(x)).sum().backward();
    const StepTimeline t = replicate_handle(b).last_step();
    expect_ordered(t);
    EXPECT_EQ(t.step, 3);
    EXPECT_EQ(t.buckets[0].parameters, 0);
    EXPECT_EQ(t.buckets[1].stalling_parameter, "1/weight");
    expect_part(t.table(), "nothing: it takes no part");
  });
}

// What comes to a parameter from outside the module's results counts too, wherever it comes last.
TEST(StepTimeline, ParametersOutsideOfTheForward) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(kShapes);
    GivenDdp ddp(net, g);
    ddp.set_plan({{"w0", "w3"}, {"w1", "w2"}});
    const auto stalled_by = [&](const Tensor& loss) {
      loss.backward();
      expect_ordered(ddp.last_step());
      return ddp.last_step().buckets[0].stalling_parameter;
    };
    const nn::parallel::NoScatter<std::vector<Tensor>> all(gradients());
    const Tensor before = net->w[3].square().sum();
    EXPECT_EQ(stalled_by(ddp(ones({1, 1}), all) + before), "w3");
    const Tensor y = ddp(ones({1, 1}), all);
    EXPECT_EQ(stalled_by(y), "w0");
  });
}

// A rank that is late makes the other one wait. (Which of many steps shows it is the machine's
// business.)
TEST(StepTimeline, WaitsForALateRank) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(kShapes);
    GivenDdp ddp(net, g);
    if (g->rank() == 1)
      net->w[0].register_hook([](const Tensor& grad) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return grad;
      });
    double most = 0;
    for (int step = 0; step < 20; ++step) {
      reduced(ddp, net, gradients());
      const StepTimeline t = ddp.last_step();
      expect_ordered(t);
      most = std::max(most, t.exposed());
      if (t.exposed() > 0) { EXPECT_LT(t.backward, t.buckets[0].done); }
    }
    if (g->rank() == 0) { EXPECT_GT(most, 0); }
  });
}

// Any thread may read while steps go on.
TEST(StepTimeline, ReadBesideSteps) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(kShapes);
    GivenDdp ddp(net, g);
    std::atomic<bool> over{false};
    std::thread reader([&] {
      for (int64_t step = 0; !over;) {
        const StepTimeline t = ddp.last_step();
        EXPECT_GE(t.step, step);
        if (t.step > 0) expect_ordered(t);
        step = t.step;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
    for (int step = 0; step < 50; ++step) reduced(ddp, net, gradients());
    over = true;
    reader.join();
    EXPECT_EQ(ddp.last_step().step, 50);
  });
}

TEST(StepTimeline, Table) {
  const ForeignLocale locale;  // has no part in it
  EXPECT_EQ(StepTimeline().table(), "no synchronised backward yet\n");
  StepTimeline t;
  t.step = 7;
  t.backward = 0.0125;
  t.end = 0.02;
  t.buckets.resize(3);
  t.buckets[0] = {2, 2, 4096, 0.001, 0.0125, 0.01251, 0.01875, 0.00625, "fc1.weight"};
  t.buckets[1] = {3, 1, 400, 0.002, 0.003, 0.01252, 0.019, 0.00025, "fc2.bias"};
  t.buckets[2].parameters = 1;
  t.buckets[2].bytes = 40;
  t.buckets[2].launched = t.buckets[2].done = 0.0126;
  EXPECT_EQ(
      t.table(),
      "step 7: gradients computed 12.500 ms, reduced 20.000 ms, waited 6.500 ms\n"
      "bucket        bytes  gradients      first   complete   launched       done     waited  "
      "stalled by\n"
      "     0         4096     2 of 2      1.000     12.500     12.510     18.750      6.250  "
      "fc1.weight\n"
      "     1          400     1 of 3      2.000      3.000     12.520     19.000      0.250  "
      "fc2.bias, held back by 0\n"
      "     2           40     0 of 1      0.000      0.000     12.600     12.600      0.000  "
      "nothing: no gradient of this rank, held back by 0\n");
}

TEST(StepTimeline, WhenAnOperationEnded) {
  const Work work = Work::begun();
  EXPECT_ERROR_TEXT(work.ended_at(), "ended_at: got an operation that runs");
  const auto before = std::chrono::steady_clock::now();
  work.finish(nullptr);
  EXPECT_LE(before, work.ended_at());
  EXPECT_LE(work.ended_at(), std::chrono::steady_clock::now());
  EXPECT_ERROR_TEXT(Work().ended_at(), "Work of no operation");
}

}  // namespace
}  // namespace ramet::distributed
