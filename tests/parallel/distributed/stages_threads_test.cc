// Communication stages of DistributedDataParallel, with ranks as threads: wire formats, chains,
// what they refuse, and what the reducer promises whatever travels. Scenario 48 is the behaviour
// specification's.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "nn/serialize/archive.h"
#include "runtime/half.h"
#include "tests/parallel/distributed/given_gradients.h"

namespace ramet::distributed {

void with_groups(int ranks, Milliseconds timeout, const Body& body) {
  GroupOptions o;
  o.timeout = timeout;
  auto groups = make_local_groups(ranks, o);
  as_ranks(ranks, [&](int rank) {
    const Group mine = std::move(groups[static_cast<size_t>(rank)]);
    body(mine);
  });
}

namespace {

// Multiples of 64 bytes, so that float32's message has no gaps either.
const Shapes kShapes{{96, 128}, {64}, {16, 4, 8}};

// Values of an array as float64.
std::vector<double> numbers(const Tensor& t) {
  std::vector<double> out;
  const Tensor flat = t.to(kDouble).reshape({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) out.push_back(flat.data_ptr<double>()[i]);
  return out;
}

// ---- 16 bits ------------------------------------------------------------------------------------

float rounded(float x, bool half) {
  return half ? static_cast<float>(Half(x)) : static_cast<float>(BFloat16(x));
}

// Scenario 48: half the bytes, 1e-3 from the mean, and bit for bit what its definition says.
TEST(Stages, SixteenBits) {
  for (const bool half : {true, false})
    for (const int ranks : {1, 2, 3, 5}) {
      std::atomic<uint64_t> plain{0}, staged{0};
      with_groups(ranks, seconds(60), [&](const Group& g) {
        std::vector<std::vector<Tensor>> all;
        for (int r = 0; r < ranks; ++r) {
          all.push_back(random_gradients(kShapes, r, 0));
          for (Tensor& t : all.back()) t = t.abs() + 0.1;  // sums have no cancellation
        }
        const auto& mine = all[static_cast<size_t>(g->rank())];
        Given net(kShapes);
        {
          GivenDdp ddp(net, g);
          g->reset_wire_bytes();
          reduced(ddp, net, mine);
          plain += g->wire_bytes("all_reduce_members");
          EXPECT_EQ(g->wire_bytes(), g->wire_bytes("all_reduce_members"));
        }
        GivenDdp ddp(net, g, with_stages({half ? fp16_stage() : bf16_stage()}));
        g->reset_wire_bytes();
        const auto got = reduced(ddp, net, mine);
        staged += g->wire_bytes("all_reduce_stages");
        EXPECT_EQ(g->wire_bytes(), g->wire_bytes("all_reduce_stages"));
        const StageBytes bytes = ddp.comm_stages().bytes().at(0);
        EXPECT_EQ(bytes.before, bytes.after * 2);
        EXPECT_EQ(bytes.before, (96 * 128 + 64 + 512) * sizeof(float));

        for (size_t i = 0; i < kShapes.size(); ++i) {
          const float* const y = got[i].data_ptr<float>();
          for (int64_t k = 0; k < got[i].numel(); ++k) {
            float sum = 0;
            double exact = 0;
            for (int r = 0; r < ranks; ++r) {
              const float x = all[static_cast<size_t>(r)][i].data_ptr<float>()[k];
              sum += ranks > 1 ? rounded(x, half) : x;
              exact += static_cast<double>(x) / ranks;
            }
            const float mean = sum / static_cast<float>(ranks);
            ASSERT_EQ(y[k], ranks > 2 ? rounded(mean, half) : mean) << i << ", " << k;
            ASSERT_LE(std::abs(y[k] - exact), (half ? 1e-3 : 8e-3) * exact);
          }
        }
      });
      EXPECT_EQ(plain, staged * 2) << ranks;
      if (ranks > 1) {
        EXPECT_GT(staged, 0u);
      }
    }
}

TEST(Stages, WhatSixteenBitsCannotHold) {
  with_groups(3, seconds(60), [](const Group& g) {
    const Shapes shapes{{4}};
    const auto of = [&](float x) { return std::vector<Tensor>{full({4}, x)}; };
    {
      Given net(shapes);
      GivenDdp ddp(net, g, with_stages({fp16_stage()}));
      EXPECT_EQ(reduced(ddp, net, of(60000))[0][0].item<double>(), 60000);
      EXPECT_TRUE(std::isinf(reduced(ddp, net, of(70000))[0][0].item<double>()));
      EXPECT_TRUE(
          std::isnan(reduced(ddp, net, of(g->rank() == 1 ? NAN : 1.0f))[0][3].item<double>()));
      EXPECT_EQ(reduced(ddp, net, of(1))[0][0].item<double>(), 1);  // nothing is remembered
    }
    {
      Given net(shapes);
      GivenDdp ddp(net, g, with_stages({fp16_stage()}, Average::sum));
      EXPECT_EQ(reduced(ddp, net, of(60000))[0][0].item<double>(), 180000);
    }
    {  // rows weigh behind the decoder: 30000 * 1000 is beyond fp16
      Given net(shapes);
      GivenDdp ddp(net, g, with_stages({fp16_stage()}, Average::weighted));
      const double mean =
          reduced(ddp, net, of(g->rank() ? 30000.0f : 0.0f), g->rank() == 2 ? 1000 : 1)[0][1]
              .item<double>();
      EXPECT_NEAR(mean, 30000.0 * 1001 / 1002, 16);
    }
    {
      Given net(shapes);
      GivenDdp ddp(net, g, with_stages({bf16_stage()}));
      EXPECT_NEAR(reduced(ddp, net, of(1e38f))[0][0].item<double>(), 1e38, 1e36);
    }
  });
}

TEST(Stages, ParametersOfOtherTypes) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const ScalarType dtype : {kDouble, kHalf, kBFloat16}) {
      Given net(Shapes{{3, 5}}, dtype);
      GivenDdp ddp(net, g, with_stages({fp16_stage()}));
      const auto got = reduced(ddp, net, {full({3, 5}, g->rank() + 1.0, TensorOptions(dtype))});
      EXPECT_TRUE(same_bits(got[0], full({3, 5}, 1.5, TensorOptions(dtype))));
    }
  });
}

// ---- 8 bits -------------------------------------------------------------------------------------

TEST(Stages, Int8) {
  for (const int ranks : {1, 2, 3})
    with_groups(ranks, seconds(60), [&](const Group& g) {
      const Shapes shapes{{700}, {3, 11}};
      std::vector<std::vector<Tensor>> all;
      for (int r = 0; r < ranks; ++r) all.push_back(random_gradients(shapes, r, 0));
      const auto& mine = all[static_cast<size_t>(g->rank())];
      std::vector<std::vector<Tensor>> runs;
      for (const uint64_t seed : {uint64_t{1}, uint64_t{1}, uint64_t{2}}) {
        Given net(shapes);
        DdpOptions o = with_stages({int8_stage(64, seed)});
        o.bucket_bytes = runs.empty() ? 1 : 1 << 20;  // bits do not depend on it
        GivenDdp ddp(net, g, o);
        g->reset_wire_bytes();
        runs.push_back(reduced(ddp, net, mine));
        if (ranks == 2) {
          EXPECT_EQ(g->wire_bytes(), 700u + 11 * 4 + 33 + 4);
        }
        const auto again = reduced(ddp, net, mine);
        // Another step, other draws.
        EXPECT_EQ(ranks == 1, same_bits(again[0], runs.back()[0]));
      }
      EXPECT_TRUE(same_bits(runs[0][0], runs[1][0]) && same_bits(runs[0][1], runs[1][1]));
      EXPECT_EQ(ranks == 1, same_bits(runs[0][0], runs[2][0]));
      // The same on all ranks, and no further away than a step of each scale.
      std::vector<Tensor> theirs;
      for (int r = 0; r < ranks; ++r) theirs.push_back(empty({700}));
      g->all_gather(theirs, runs[0][0]).wait();
      for (const Tensor& t : theirs) {
        EXPECT_TRUE(same_bits(t, runs[0][0]));
      }
      for (int64_t first = 0; first < 700; first += 64) {
        const auto block = [&](const Tensor& t) {
          return numbers(t.slice(0, first, std::min<int64_t>(700, first + 64)));
        };
        double bound = 0, most_of_mean = 0;
        std::vector<double> mean(block(all[0][0]).size());
        for (int r = 0; r < ranks; ++r) {
          const auto x = block(all[static_cast<size_t>(r)][0]);
          double most = 0;
          for (size_t k = 0; k < x.size(); ++k) {
            most = std::max(most, std::abs(x[k]));
            mean[k] += x[k] / ranks;
          }
          bound += most / 127 / ranks;
        }
        for (double x : mean) most_of_mean = std::max(most_of_mean, std::abs(x));
        if (ranks > 2) bound += (most_of_mean + bound) / 127;
        if (ranks == 1) bound = 0;
        const auto y = block(runs[0][0]);
        for (size_t k = 0; k < y.size(); ++k)
          ASSERT_LE(std::abs(y[k] - mean[k]), bound * (1 + 1e-5)) << first + k;
      }
    });
}

// The expectation of what is rounded at random is what it was: rounding to the nearest would stay
// as far away after any number of steps.
TEST(Stages, Int8HasNoBias) {
  with_groups(2, seconds(60), [](const Group& g) {
    constexpr int kSteps = 500;
    const Shapes shapes{{256}};
    std::vector<std::vector<double>> x;
    double variance = 0;  // of a step's mean: each rank's is at most scale^2 / 4
    for (int r = 0; r < 2; ++r) {
      const Tensor t = random_gradients(shapes, r, 0)[0];
      x.push_back(numbers(t));
      const double scale = t.abs().max().item<double>() / 127;
      variance += scale * scale / 4 / 4;
    }
    const Tensor mine = random_gradients(shapes, g->rank(), 0)[0];
    Given net(shapes);
    GivenDdp ddp(net, g, with_stages({int8_stage(256, 5)}));
    std::vector<double> sum(256);
    for (int step = 0; step < kSteps; ++step) {
      const auto y = numbers(reduced(ddp, net, {mine})[0]);
      for (size_t k = 0; k < y.size(); ++k) sum[k] += y[k];
    }
    const double bound = 5 * std::sqrt(variance / kSteps);
    double farthest_of_nearest = 0;
    for (size_t k = 0; k < sum.size(); ++k) {
      const double mean = (x[0][k] + x[1][k]) / 2;
      EXPECT_LE(std::abs(sum[k] / kSteps - mean), bound) << k;
      const double s0 = 127 / random_gradients(shapes, 0, 0)[0].abs().max().item<double>(),
                   s1 = 127 / random_gradients(shapes, 1, 0)[0].abs().max().item<double>();
      const double nearest = (std::round(x[0][k] * s0) / s0 + std::round(x[1][k] * s1) / s1) / 2;
      farthest_of_nearest = std::max(farthest_of_nearest, std::abs(nearest - mean));
    }
    EXPECT_GT(farthest_of_nearest, 3 * bound);  // the bound tells one from the other
  });
}

TEST(Stages, Int8AtItsLimits) {
  with_groups(2, seconds(60), [](const Group& g) {
    Given net(Shapes{{20}});
    GivenDdp ddp(net, g, with_stages({int8_stage(8)}));
    // Integers up to 127 are their own codes.
    const Tensor integers = arange(20, TensorOptions(kFloat)) * 6 - 57;
    for (const int64_t first : {0, 8, 16}) integers.select(0, first).fill_(first ? 127.0 : -127.0);
    EXPECT_TRUE(same_bits(reduced(ddp, net, {integers})[0], integers));
    EXPECT_TRUE(same_bits(reduced(ddp, net, {zeros({20})})[0], zeros({20})));
    EXPECT_TRUE(same_bits(reduced(ddp, net, {full({20}, 1e-38)})[0], zeros({20})));
    EXPECT_TRUE(same_bits(reduced(ddp, net, {full({20}, 1e38)})[0].isfinite(),
                          ones({20}, TensorOptions(kBool))));
    for (const float bad : {NAN, INFINITY}) {  // its block, and no other
      const Tensor x = ones({20});
      if (g->rank() == 1) x.select(0, 9).fill_(bad);
      const Tensor y = reduced(ddp, net, {x})[0];
      EXPECT_TRUE(y.slice(0, 8, 16).isnan().all().item<bool>());
      EXPECT_TRUE(y.slice(0, 0, 8).allclose(ones({8}), 1e-5, 0));
      EXPECT_TRUE(y.slice(0, 16, 20).allclose(ones({4}), 1e-5, 0));
    }
  });
  for (const int64_t block : {0, 7, 24, 1 << 17})
    expect_part(error_of([&] { int8_stage(block); }), "expected a power of two from 8 to 65536");
}

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
      EXPECT_EQ(g->wire_bytes(), 63u + 4);
      EXPECT_EQ(ddp.comm_stages().descriptions(),
                (std::vector<std::string>{"fp16", "int8(block 64, seed 0)"}));
    }
    {
      GivenDdp ddp(net, g);
      ddp.register_comm_stage(int8_stage(64));
      ddp.register_comm_stage(fp16_stage());
      g->reset_wire_bytes();
      EXPECT_FALSE(same_bits(reduced(ddp, net, {x})[0], integers));
      EXPECT_EQ(g->wire_bytes(), 63u * 2);
    }
  });
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
            mine[1] = Tensor();                      // nobody's
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
    Given net(Shapes{{4}});
    GivenDdp ddp(net, g, with_stages({power_sgd_stage()}));
    const std::string twice = error_of([&] { ddp.register_comm_stage(power_sgd_stage()); });
    expect_part(twice, "can only be called once");
    expect_part(twice, "after power_sgd(rank 1");
    expect_part(error_of([&] { ddp.register_comm_stage(post_local_sgd_stage(g, 3)); }),
                "can only be called once");
    expect_part(error_of([&] { ddp.register_comm_stage(nullptr); }), "got no stage");
    const auto fp16 = fp16_stage();
    ddp.register_comm_stage(fp16);
    expect_part(error_of([&] { GivenDdp d(net, g, with_stages({fp16})); }), "has a place already");
    DdpOptions tree = with_stages({fp16_stage()});
    tree.order = ReduceOrder::tree(2);
    const std::string bits = error_of([&] { GivenDdp d(net, g, tree); });
    expect_part(bits, "fp16 with tree(2)");
    expect_part(bits, "expected the order fixed");
    const std::string differ =
        error_of([&] { GivenDdp d(net, g, with_stages({int8_stage(g->rank() ? 64 : 128)})); });
    expect_part(differ,
                "the ranks have different stages: rank 0 has int8(block 128, seed 0), "
                "rank 1 has int8(block 64, seed 0)");
    expect_part(error_of([] { power_sgd_stage(low_rank(0, 0)); }), "rank: got 0");
    expect_part(error_of([] { post_local_sgd_stage(nullptr, 0); }), "subgroup: got none");
    // The group and the first module are whole.
    EXPECT_EQ(reduced(ddp, net, {full({4}, g->rank() * 2.0)})[0][0].item<double>(), 1);
    EXPECT_EQ(ddp.comm_stages().descriptions().size(), 2u);
  });
}

TEST(Stages, AStageOnOneRankOnly) {
  with_groups(2, seconds(20), [](const Group& g) {
    Given net(Shapes{{4}});
    const std::string said = error_of([&] {
      GivenDdp ddp(net, g, g->rank() ? DdpOptions{} : with_stages({fp16_stage()}));
      reduced(ddp, net, {ones({4})});
    });
    expect_part(said, "mismatch between collectives");
    expect_part(said, "register_comm_stage");
  });
}

// ---- failures -----------------------------------------------------------------------------------

struct Thrower final : ReduceStage {
  explicit Thrower(bool throws) : throws_(throws) {}
  std::string description() const override { return "thrower"; }
  bool lossless() const override { return true; }
  void reduce(std::vector<StageValues>& list, const StageNext& next) override {
    if (throws_ && next.step() == 1) throw std::runtime_error("Badness!");
    next.reduce(list);
  }
  bool throws_;
};

TEST(Stages, AStageThatThrows) {
  with_groups(3, seconds(60), [](const Group& g) {
    Given net(Shapes{{4}, {4}});
    GivenDdp ddp(net, g, with_stages({std::make_shared<Thrower>(g->rank() == 1), fp16_stage()}));
    EXPECT_EQ(reduced(ddp, net, {ones({4}), ones({4})})[1][2].item<double>(), 1);
    const std::string said = error_of([&] {
      reduced(ddp, net, {ones({4}), full({4}, 1.0 * g->rank())});
    });
    expect_part(said, "Badness!");
    expect_part(said, "all_reduce_stages");
    for (const Tensor& w : net->w) {
      EXPECT_FALSE(w.grad().defined());
    }
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
    expect_part(error_of([&] { y.backward(); }), g->rank() == 1 ? "Badness!" : "aborted by rank 1");
    for (const Tensor& w : net->w) {
      EXPECT_FALSE(w.grad().defined());
    }
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
    GivenDdp other(net, g, with_stages({fp16_stage()}));
    expect_part(error_of([&] { other.comm_stages().load(archive); }),
                "got the state of other stages: fp16;int8(block 32, seed 0); expected fp16;");
    EXPECT_EQ(other.comm_stages().step(), 0);
  });
}

}  // namespace
}  // namespace ramet::distributed
