// Communication hooks of DistributedDataParallel, with ranks as threads. The tests cover chains,
// what hooks refuse, and what the reducer promises for any data on the wire.
#include <gtest/gtest.h>

#include <barrier>
#include <sstream>
#include <stdexcept>

#include "nn/serialize/archive.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/given_gradients.h"

namespace ramet::distributed {
namespace {

// ---- chains -------------------------------------------------------------------------------------

// Numbers that fp16 makes integers of, so that int8 has nothing to round: in the other order it
// has.
TEST(Stages, ChainsCompose) {
  with_groups(2, seconds(60), [](const Group& g) {
    const Tensor integers = arange(63, TensorOptions(kFloat)) + 65, x = integers - 0.03;
    x.select(0, 62).fill_(127.03);
    Given net(Shapes{{63}});
    {
      GivenDdp ddp(net, g, with_stages({fp16_stage(), int8_stage(64)}));
      g->reset_wire_bytes();
      EXPECT_TRUE(same_bits(reduced(ddp, net, {x})[0], integers));
      EXPECT_EQ(g->wire_bytes("all_reduce_stages"), 63u + 4);
      EXPECT_EQ(ddp.comm_stages().descriptions(),
                (std::vector<std::string>{"fp16", "int8(block 64, seed 0)"}));
    }
    {
      GivenDdp ddp(net, g);
      ddp.register_comm_stage(int8_stage(64));
      ddp.register_comm_stage(fp16_stage());
      g->reset_wire_bytes();
      EXPECT_FALSE(same_bits(reduced(ddp, net, {x})[0], integers));
      EXPECT_EQ(g->wire_bytes("all_reduce_stages"), 63u * 2);
    }
  });
}

// As PyTorch's hooks do: here it would wait for itself, and gets an error.
struct CallsTheGroup final : ReduceStage {
  ProcessGroup* group = nullptr;
  std::string description() const override { return "calls the group"; }
  bool lossless() const override { return true; }
  void attach(const StageSetting& setting) override { group = &setting.group; }
  void reduce(std::vector<StageValues>& list, const StageNext&) override {
    for (StageValues& v : list) group->all_reduce(v.values).wait();
  }
};
struct ThrowsANumber final : ReduceStage {
  std::string description() const override { return "throws"; }
  bool lossless() const override { return true; }
  void reduce(std::vector<StageValues>&, const StageNext& next) override {
    if (next.rank() == 1) throw 42;
  }
};
template <class Stage> void expect_stage_error(const char* text) {
  with_groups(2, seconds(20), [&](const Group& g) {
    Given net(Shapes{{4}});
    GivenDdp ddp(net, g, with_stages({std::make_shared<Stage>()}));
    EXPECT_ERROR_TEXT(reduced(ddp, net, {ones({4})}), text);
  });
}
TEST(Stages, ThatCallTheirGroupOrThrowAnything) {
  expect_stage_error<CallsTheGroup>(
      "[all_reduce] called from within an operation of the group 'world'");
  expect_stage_error<ThrowsANumber>("threw what is no std::exception");
}

// What a communication hook leaves, or hands on, is checked before it is used.
template <int kind> struct Spoils final : ReduceStage {
  std::string description() const override { return "spoils"; }
  bool lossless() const override { return true; }
  void reduce(std::vector<StageValues>& list, const StageNext& next) override {
    if (kind == 0) list[0].values = Tensor();
    if (kind == 1) list[0].values = list[0].values.to(kDouble);
    if (kind == 2) list[0].values = list[0].values.view({2, 2}).t();
    if (kind == 3) list[0].present_on.pop_back();
    next.reduce(list);
    if (kind == 4) list[0].values = Tensor();
    if (kind == 5) list[0].values = ones({3});
    if (kind == 6) list.pop_back();
  }
};
TEST(Stages, ThatSpoilTheValues) {
  expect_stage_error<Spoils<0>>("[comm_stage] spoils: handed on 'w0': got an undefined tensor");
  expect_stage_error<Spoils<1>>("[comm_stage] spoils: handed on 'w0': got float64[4]");
  expect_stage_error<Spoils<2>>("[comm_stage] spoils: handed on 'w0': got float32[2, 2]");
  expect_stage_error<Spoils<3>>("[comm_stage] spoils: handed on 'w0': present_on: got 1 entries");
  expect_stage_error<Spoils<4>>("[comm_stage] spoils: left as 'w0': got an undefined tensor");
  expect_stage_error<Spoils<5>>("[comm_stage] spoils: left as 'w0': got float32[3]");
  expect_stage_error<Spoils<6>>("[comm_stage] spoils: left 0 values, expected the 1 that");
}

// Bytes upside down: another wire format, and nothing lost.
struct Inverted final : WireFormat {
  std::string description() const override { return "inverted"; }
  bool lossless() const override { return true; }
  int64_t block() const override { return 4; }
  size_t bytes(int64_t n) const override { return static_cast<size_t>(n) * 4 + 1; }
  void encode(const float* in, int64_t n, void* out, const WireKey& key) const override {
    EXPECT_EQ(key.first % block(), 0);
    const auto* from = reinterpret_cast<const unsigned char*>(in);
    auto* to = static_cast<unsigned char*>(out);
    for (int64_t i = 0; i < n * 4; ++i) to[i] = static_cast<unsigned char>(~from[i]);
    to[n * 4] = 77;
  }
  void decode(const void* in, int64_t n, float* out) const override {
    const auto* from = static_cast<const unsigned char*>(in);
    auto* to = reinterpret_cast<unsigned char*>(out);
    EXPECT_EQ(from[n * 4], 77);
    for (int64_t i = 0; i < n * 4; ++i) to[i] = static_cast<unsigned char>(~from[i]);
  }
};

// A lossless stage gives the bits of no stage: for every average and order, where gradients are
// missing too.
TEST(Stages, ALosslessStageChangesNothing) {
  for (const int ranks : {1, 2, 3, 4})
    with_groups(ranks, seconds(60), [&](const Group& g) {
      const Shapes shapes{{33, 7}, {5}, {50}, {2}, {130}};
      for (const Average average : {Average::mean, Average::sum, Average::weighted})
        for (const bool tree : {false, true}) {
          if (tree && ranks != 2 && ranks != 4) continue;
          if (average == Average::weighted && ranks == 1) continue;  // times rows, over rows
          DdpOptions o = with_stages({}, average);
          if (tree) o.order = ReduceOrder::tree(ranks);
          o.bucket_bytes = 600;
          std::vector<std::vector<Tensor>> results;
          for (const bool staged : {false, true}) {
            Given net(shapes);
            if (staged) o.stages = {std::make_shared<Inverted>()};
            GivenDdp ddp(net, g, o);
            auto mine = random_gradients(shapes, g->rank(), 3);
            mine[1] = Tensor();                      // of no rank
            if (g->rank() == 0) mine[2] = Tensor();  // all but rank 0's
            if (g->rank() > 0) mine[4] = Tensor();   // rank 0's alone
            results.push_back(reduced(ddp, net, mine, 4 * (g->rank() + 1)));
            EXPECT_EQ(ddp.unused_parameters(), ranks == 1 ? (std::vector<std::string>{"w1", "w2"})
                                                          : (std::vector<std::string>{"w1"}));
          }
          for (size_t i = 0; i < shapes.size(); ++i) {
            ASSERT_EQ(results[0][i].defined(), results[1][i].defined()) << i;
            if (!results[0][i].defined()) continue;
            EXPECT_TRUE(same_bits(results[0][i], results[1][i]))
                << i << ", " << ranks << " ranks" << (tree ? ", tree" : "");
          }
        }
    });
}

TEST(Stages, NoSyncAndSeveralBackwards) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(Shapes{{8}, {8}});
    DdpOptions o = with_stages({fp16_stage()});
    o.bucket_bytes = 1;
    GivenDdp ddp(net, g, o);
    const auto step = [&](double x) {
      ddp(ones({1, 1}),
          nn::parallel::NoScatter<std::vector<Tensor>>({full({8}, x), full({8}, 2 * x)}))
          .backward();
    };
    const double r = g->rank();
    {
      const auto guard = ddp.no_sync();
      step(1 + r);
      step(10 + r);
    }
    EXPECT_EQ(ddp.comm_stages().step(), 0);
    step(100 + r);
    EXPECT_EQ(net->w[0].grad()[0].item<double>(), 111 + 3 * 0.5);
    step(1000 + r);  // what is the same on all ranks already is not reduced again
    EXPECT_EQ(net->w[0].grad()[0].item<double>(), 1111 + 4 * 0.5);
    EXPECT_EQ(net->w[1].grad()[0].item<double>(), 2222 + 8 * 0.5);
    EXPECT_EQ(ddp.comm_stages().step(), 2);
  });
}

// ---- what is refused ----------------------------------------------------------------------------

TEST(Stages, Refused) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(Shapes{{4}}), other(Shapes{{4}});
    GivenDdp ddp(net, g, with_stages({power_sgd_stage()}));
    const std::string twice = error_of([&] { ddp.register_comm_stage(power_sgd_stage()); });
    expect_part(twice, "can only be called once");
    expect_part(twice, "after power_sgd(rank 1");
    EXPECT_ERROR_TEXT(ddp.register_comm_stage(post_local_sgd_stage(g, 3)),
                      "can only be called once");
    EXPECT_ERROR_TEXT(ddp.register_comm_stage(nullptr), "got no stage");
    const auto fp16 = fp16_stage();
    ddp.register_comm_stage(fp16);
    EXPECT_ERROR_TEXT(GivenDdp d(other, g, with_stages({fp16})), "has a place already");
    DdpOptions tree = with_stages({fp16_stage()});
    tree.order = ReduceOrder::tree(2);
    const std::string bits = error_of([&] { GivenDdp d(other, g, tree); });
    expect_part(bits, "fp16 with tree(2)");
    expect_part(bits, "expected the order fixed");
    const std::string differ =
        error_of([&] { GivenDdp d(other, g, with_stages({int8_stage(g->rank() ? 64 : 128)})); });
    expect_part(differ,
                "stages: got [int8(block 64, seed 0)], expected [int8(block 128, seed 0)] as on "
                "rank 0");
    GivenDdp plain(other, g);
    EXPECT_ERROR_TEXT(plain.register_comm_stage(int8_stage(g->rank() ? 64 : 128)),
                      "the ranks have different stages: rank 0 has int8(block 128, seed 0), "
                      "rank 1 has int8(block 64, seed 0)");
    EXPECT_ERROR_TEXT(power_sgd_stage(low_rank(0, 0)), "rank: got 0");
    EXPECT_ERROR_TEXT(post_local_sgd_stage(nullptr, 0), "subgroup: got none");
    // The group and the first module are whole.
    EXPECT_EQ(reduced(ddp, net, {full({4}, g->rank() * 2.0)})[0][0].item<double>(), 1);
    EXPECT_EQ(ddp.comm_stages().descriptions().size(), 2u);
  });
}

TEST(Stages, AStageOnOneRankOnly) {
  with_groups(2, seconds(20), [](const Group& g) {
    Given net(Shapes{{4}});
    EXPECT_ERROR_TEXT(GivenDdp(net, g, g->rank() ? DdpOptions{} : with_stages({fp16_stage()})),
                      "stages: got [], expected [fp16] as on rank 0");
    const std::string said = error_of([&] {
      GivenDdp ddp(net, g);
      if (g->rank() == 0) ddp.register_comm_stage(fp16_stage());
      reduced(ddp, net, {ones({4})});
    });
    expect_part(said, "mismatch between collectives");
    expect_part(said, "register_comm_stage");
  });
}

// ---- failures -----------------------------------------------------------------------------------

TEST(Stages, AStageThatThrows) {
  with_groups(3, seconds(60), [](const Group& g) {
    Given net(Shapes{{4}, {4}});
    GivenDdp ddp(net, g,
                 with_stages({std::make_shared<FailingStage>(g->rank() == 1, 1), fp16_stage()}));
    EXPECT_EQ(reduced(ddp, net, {ones({4}), ones({4})})[1][2].item<double>(), 1);
    const std::string said = error_of([&] {
      reduced(ddp, net, {ones({4}), full({4}, 1.0 * g->rank())});
    });
    expect_part(said, "Badness!");
    expect_part(said, "all_reduce_stages");
    for (const Tensor& w : net->w) { EXPECT_FALSE(w.grad().defined()); }
    EXPECT_EQ(ddp.comm_stages().step(), 1);
  });
}

TEST(Stages, ABackwardThatFails) {
  std::barrier constructed(3);  // the failure must not end another rank's constructor
  with_groups(3, seconds(60), [&](const Group& g) {
    Given net(Shapes{{4}, {9, 9}});
    GivenDdp ddp(net, g, with_stages({power_sgd_stage(low_rank(1, 0)), int8_stage()}));
    const nn::parallel::NoScatter<std::vector<Tensor>> gradients({ones({4}), ones({9, 9})});
    constructed.arrive_and_wait();
    Tensor y = ddp(ones({1, 1}), gradients);
    if (g->rank() == 1)
      y.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("Badness!"); });
    EXPECT_ERROR_TEXT(y.backward(), g->rank() == 1 ? "Badness!" : "aborted by rank 1");
    for (const Tensor& w : net->w) { EXPECT_FALSE(w.grad().defined()); }
  });
}

// ---- checkpoints --------------------------------------------------------------------------------

TEST(Stages, ARunGoesOnWithItsDraws) {
  with_groups(2, seconds(60), [](const Group& g) {
    const Shapes shapes{{100}};
    std::stringstream file;
    std::vector<Tensor> expected;
    const auto step = [&](GivenDdp& ddp, Given& net, int i) {
      return reduced(ddp, net, random_gradients(shapes, g->rank(), i))[0];
    };
    {
      Given net(shapes);
      GivenDdp ddp(net, g, with_stages({fp16_stage(), int8_stage(32)}));
      for (int i = 0; i < 4; ++i) {
        if (i == 2) {
          serialize::OutputArchive archive;
          ddp.comm_stages().save(archive);
          archive.save_to(file);
        }
        expected.push_back(step(ddp, net, i));
      }
    }
    serialize::InputArchive archive;
    archive.load_from(file);
    Given net(shapes);
    GivenDdp ddp(net, g, with_stages({fp16_stage(), int8_stage(32)}));
    ddp.comm_stages().load(archive);
    EXPECT_EQ(ddp.comm_stages().step(), 2);
    for (int i = 2; i < 4; ++i)
      EXPECT_TRUE(same_bits(step(ddp, net, i), expected[static_cast<size_t>(i)]));
    Given of_others(shapes);
    GivenDdp other(of_others, g, with_stages({fp16_stage()}));
    EXPECT_ERROR_TEXT(other.comm_stages().load(archive),
                      "got the state of other stages: fp16;int8(block 32, seed 0); expected fp16;");
    EXPECT_EQ(other.comm_stages().step(), 0);
  });
}

struct Remembers final : ReduceStage {
  Tensor kept;
  bool refuses = false;
  explicit Remembers(double value) : kept(full({2}, value)) {}
  std::string description() const override { return "remembers"; }
  bool lossless() const override { return true; }
  void reduce(std::vector<StageValues>&, const StageNext&) override {}
  std::map<std::string, Tensor> state() const override { return {{"0.kept", kept}}; }
  void load_state(const std::map<std::string, Tensor>& state) override {
    if (refuses) throw std::runtime_error("not this");
    kept = state.at("0.kept");
  }
};

TEST(Stages, AStateThatTheSecondStageRefuses) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(Shapes{{4}}), again(Shapes{{4}});
    const auto stages = [](double value) {
      return std::vector{std::make_shared<Remembers>(value), std::make_shared<Remembers>(value)};
    };
    const auto saved = stages(1), loading = stages(5);
    GivenDdp from(net, g, with_stages({saved[0], saved[1]})),
        to(again, g, with_stages({loading[0], loading[1]}));
    std::stringstream file;
    serialize::OutputArchive out;
    from.comm_stages().save(out);
    out.save_to(file);
    serialize::InputArchive archive;
    archive.load_from(file);
    loading[1]->refuses = true;
    EXPECT_ERROR_TEXT(to.comm_stages().load(archive), "not this");
    EXPECT_EQ(loading[0]->kept[0].item<float>(), 5);
    loading[1]->refuses = false;
    to.comm_stages().load(archive);
    EXPECT_EQ(loading[0]->kept[0].item<float>(), 1);
    EXPECT_EQ(loading[1]->kept[0].item<float>(), 1);
  });
}

}  // namespace
}  // namespace ramet::distributed
