// Wire formats of DistributedDataParallel, with ranks as threads: what they send and what arrives.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "runtime/base/half.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/given_gradients.h"

namespace ramet::distributed {
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

// Half the bytes, 1e-3 from the mean, and bit for bit what its definition says.
TEST(StageFormats, SixteenBits) {
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
        }
        GivenDdp ddp(net, g, with_stages({half ? fp16_stage() : bf16_stage()}));
        g->reset_wire_bytes();
        const auto got = reduced(ddp, net, mine);
        staged += g->wire_bytes("all_reduce_stages");
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
      if (ranks > 1) { EXPECT_GT(staged, 0u); }
    }
}

TEST(StageFormats, WhatSixteenBitsCannotHold) {
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
    {  // rows weigh after the decoder: 30000 * 1000 is beyond fp16
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

TEST(StageFormats, ParametersOfOtherTypes) {
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

TEST(StageFormats, Int8) {
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
        if (ranks == 2) { EXPECT_EQ(g->wire_bytes("all_reduce_stages"), 700u + 11 * 4 + 33 + 4); }
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
      for (const Tensor& t : theirs) { EXPECT_TRUE(same_bits(t, runs[0][0])); }
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

// The expectation of a randomly rounded value is the value itself: rounding to the nearest would
// stay as far away after any number of steps.
TEST(StageFormats, Int8HasNoBias) {
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
    EXPECT_GT(farthest_of_nearest, 3 * bound);  // the bound separates one from the other
  });
}

TEST(StageFormats, Int8AtItsLimits) {
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
    EXPECT_ERROR_TEXT(int8_stage(block), "expected a power of two from 8 to 65536");
}

}  // namespace
}  // namespace ramet::distributed
