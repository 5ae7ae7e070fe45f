// Post-local SGD: gradients of a subgroup, parameters averaged now and then; ranks as threads.
#include <gtest/gtest.h>

#include <barrier>
#include <sstream>
#include <stdexcept>

#include "autograd/grad_mode.h"
#include "nn/serialize/archive.h"
#include "parallel/distributed/ddp/model_averager.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/given_gradients.h"

namespace ramet::distributed {
namespace {

TEST(PostLocalSgd, TheWholeGroupThenTheSubgroup) {
  for (const bool fp16 : {false, true})
    with_groups(4, seconds(60), [&](const Group& g) {
      const Group pair = new_subgroups(*g, 2);
      ASSERT_EQ(pair->size(), 2);
      EXPECT_EQ(pair->rank(), g->rank() % 2);
      const Shapes shapes{{16}, {16}};
      // Gradient of rank r: r + 1. Over all: mean 2.5, over the pairs 1.5 and 3.5.
      const std::vector<Tensor> mine{full({16}, g->rank() + 1.0), Tensor()};
      const double of_pair = g->rank() < 2 ? 1.5 : 3.5;
      Given net(shapes);
      DdpOptions o = with_stages({post_local_sgd_stage(pair, 2)});
      if (fp16) o.stages.push_back(fp16_stage());
      GivenDdp ddp(net, g, o);
      const char* const operation = fp16 ? "all_reduce_stages" : "all_reduce_members";
      for (int step = 0; step < 4; ++step) {
        g->reset_wire_bytes();
        pair->reset_wire_bytes();
        const auto got = reduced(ddp, net, mine);
        EXPECT_EQ(got[0][3].item<double>(), step < 2 ? 2.5 : of_pair);
        EXPECT_FALSE(got[1].defined());
        EXPECT_EQ(ddp.unused_parameters(), std::vector<std::string>{"w1"});
        EXPECT_EQ(g->wire_bytes(operation) > 0, step < 2);
        EXPECT_EQ(pair->wire_bytes(operation) > 0, step >= 2);
      }
      // Weighted by the rows of the subgroup: 1, 2, 3 and 4.
      o.average = Average::weighted;
      o.stages = {post_local_sgd_stage(pair, 0)};
      if (fp16) o.stages.push_back(fp16_stage());
      Given other(shapes);
      GivenDdp weighted(other, g, o);
      const double r = g->rank() < 2 ? 1 : 3;
      EXPECT_NEAR(reduced(weighted, other, mine, g->rank() + 1)[0][0].item<double>(),
                  (r * r + (r + 1) * (r + 1)) / (r + r + 1), 1e-6);
    });
}

TEST(PostLocalSgd, ASubgroupOfOneReducesNothing) {
  with_groups(2, seconds(60), [](const Group& g) {
    const Group alone = new_subgroups(*g, 1);
    Given net(Shapes{{16}});
    GivenDdp ddp(net, g, with_stages({post_local_sgd_stage(alone, 0)}));
    g->reset_wire_bytes();
    const Tensor mine = random_gradients({{16}}, g->rank(), 0)[0];
    EXPECT_TRUE(same_bits(reduced(ddp, net, {mine})[0], mine));
    EXPECT_EQ(g->wire_bytes("all_reduce_members") + alone->wire_bytes(), 0u);
    EXPECT_ERROR_TEXT(new_subgroups(*g, 3), "expected a divisor of the 2 ranks");
  });
}

// A failure in one subgroup reaches its other rank at once, and the other subgroup at the next
// meeting of all.
TEST(PostLocalSgd, AFailureInASubgroup) {
  std::barrier met(4);  // the failure must not end what all do together before
  with_groups(4, seconds(60), [&](const Group& g) {
    const Group pair = new_subgroups(*g, 2);
    Given net(Shapes{{4}});
    GivenDdp ddp(net, g, with_stages({post_local_sgd_stage(pair, 0), bf16_stage()}));
    reduced(ddp, net, {ones({4})});  // after the first backward all agree on the order of buckets
    net->zero_grad();
    met.arrive_and_wait();
    Tensor y = ddp(ones({1, 1}), nn::parallel::NoScatter<std::vector<Tensor>>({ones({4})}));
    if (g->rank() == 1)
      y.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("Badness!"); });
    const std::string said = error_of([&] { y.backward(); });
    if (g->rank() < 2) {
      expect_part(said, g->rank() == 1 ? "Badness!" : "aborted by rank 1");
      EXPECT_FALSE(net->w[0].grad().defined());
    } else {
      EXPECT_EQ(said, "no error");
    }
    PeriodicModelAverager averager(g, 1);
    EXPECT_THROW(averager.average_parameters(net->parameters()), CommError);
    EXPECT_TRUE(same_bits(net->w[0], zeros({4})));
  });
}

// Also where no backward failed, but the reduction.
TEST(PostLocalSgd, AReductionThatFailsInASubgroup) {
  std::barrier met(4);  // as above
  with_groups(4, seconds(60), [&met](const Group& g) {
    const Group pair = new_subgroups(*g, 2);
    Given net(Shapes{{4}});
    GivenDdp ddp(net, g,
                 with_stages({post_local_sgd_stage(pair, 0),
                              std::make_shared<FailingStage>(g->rank() == 1, 1)}));
    reduced(ddp, net, {ones({4})});
    met.arrive_and_wait();
    const std::string said = error_of([&] { reduced(ddp, net, {ones({4})}); });
    if (g->rank() < 2) expect_part(said, "Badness!");
    else EXPECT_EQ(said, "no error");
    PeriodicModelAverager averager(g, 1);
    EXPECT_THROW(averager.average_parameters(net->parameters()), CommError);
  });
}

TEST(PeriodicModelAverager, Averages) {
  with_groups(3, seconds(60), [](const Group& g) {
    const std::vector<Tensor> parameters{full({5}, g->rank() + 1.0),
                                         full({2, 2}, g->rank() * 3.0, TensorOptions(kDouble)),
                                         empty({0})};
    parameters[0].requires_grad_(true);
    std::stringstream file;
    PeriodicModelAverager averager(g, 2, 3);
    for (int step = 0; step < 9; ++step) {
      {
        const NoGradGuard off;
        parameters[0].fill_(g->rank() + 1.0);
      }
      const bool due = step == 3 || step == 5 || step == 7;
      EXPECT_EQ(averager.average_parameters(parameters), due);
      EXPECT_EQ(parameters[0][4].item<double>(), due ? 2 : g->rank() + 1);
      EXPECT_EQ(parameters[1][1][0].item<double>(), step < 3 ? g->rank() * 3 : 3);
      if (step != 3) continue;
      serialize::OutputArchive archive;
      averager.save(archive);
      archive.save_to(file);
    }
    serialize::InputArchive archive;
    archive.load_from(file);
    PeriodicModelAverager second(g, 2, 3);
    second.load(archive);
    EXPECT_EQ(second.step(), 4);
    EXPECT_FALSE(second.average_parameters(parameters));
    EXPECT_TRUE(second.average_parameters(parameters));
    EXPECT_ERROR_TEXT(PeriodicModelAverager(g, 0), "period: got 0");
    PeriodicModelAverager always(g, 1);
    EXPECT_ERROR_TEXT(always.average_parameters({Tensor()}), "got an undefined tensor");
  });
}

}  // namespace
}  // namespace ramet::distributed
