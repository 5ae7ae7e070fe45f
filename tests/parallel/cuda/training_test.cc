// Training on several GPUs: one digest under tree:4, and what the CPU gets up to rounding.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/devices.h"
#include "tests/parallel/cuda/gpu_models.h"

namespace ramet::testing {
namespace {

TEST(GpuTraining, OneDigestForOneTwoAndFourGpus) {
  for (const emulated::StreamMode mode :
       {emulated::StreamMode::Async, emulated::StreamMode::Lazy, emulated::StreamMode::Random}) {
    emulated::Settings settings = gpu_settings(4);
    settings.streams = mode;
    const Gpus four(settings);
    const Groups one = trained({gpus(1), 4, true, kFloat, 16, 4});
    for (int n : {2, 4})
      EXPECT_TRUE(trained({gpus(n), 4, true, kFloat, 16, 4}) == one) << n << " GPUs";
    nn::parallel::clear_data_parallel_cache();
  }
}

TEST(GpuTraining, LogicalDevicesOfOneCard) {
  Groups one;
  {
    const Gpus single(gpu_settings(1));
    one = trained({gpus(1), 4, true, kFloat, 16, 3});
  }
  const Gpus shared(gpu_settings(1), "0,0,0,0");
  EXPECT_TRUE(trained({gpus(4), 4, true, kFloat, 16, 3}) == one);
}

TEST(GpuTraining, WithoutPeerAccessTheSameBits) {
  Groups direct;
  {
    const Gpus four(gpu_settings(4));
    direct = trained({gpus(4), 0, true, kFloat, 16, 3});
  }
  emulated::Settings settings = gpu_settings(4);
  settings.all_peers = false;
  const Gpus apart(settings);
  EXPECT_TRUE(trained({gpus(4), 0, true, kFloat, 16, 3}) == direct);
}

TEST(GpuTraining, TenStepsAsOnCpuDevices) {
  const Gpus four(gpu_settings(4));
  for (const bool norm_and_dropout : {false, true}) {
    const auto apart = [&](ScalarType dtype) {
      return difference(trained({cpus(4), 0, norm_and_dropout, dtype}),
                        trained({gpus(4), 0, norm_and_dropout, dtype}));
    };
    EXPECT_LE(apart(kFloat), 1e-5) << norm_and_dropout;
    EXPECT_LE(apart(kDouble), 1e-12) << norm_and_dropout;
  }
}

// On tensor cores, forward and backward: which GPU has which part of a batch changes no bit.
TEST(GpuTraining, OneDigestOfAttention) {
  const Gpus four(gpu_settings(4));
  const Tensor packed =
      arange(4 * 3 * 2 * 150 * 16).to(kFloat).mul(0.37).sin().reshape({4, 3, 2, 150, 16});
  const auto run = [&](int n) {
    Groups out(2);  // results and gradients
    for (int k = 0; k < n; ++k) {
      const Tensor leaf = packed.narrow(0, 4 / n * k, 4 / n).to(kBFloat16).to(gpu(k));
      leaf.requires_grad_();
      const Tensor y = scaled_dot_product_attention(leaf.select(1, 0), leaf.select(1, 1),
                                                    leaf.select(1, 2), {}, 0, true);
      y.mul(y).sum().backward();
      for (double x : values(y)) out[0].push_back(x);
      for (double x : values(leaf.grad())) out[1].push_back(x);
    }
    return out;
  };
  const Groups one = run(1);
  for (int n : {2, 4}) EXPECT_TRUE(run(n) == one) << n << " GPUs";
  for (double x : flat(one)) ASSERT_TRUE(std::isfinite(x));
}

TEST(GpuTraining, WhatDifferenceIs) {
  const double nan = std::nan("");
  EXPECT_EQ(difference(Values{1, -4}, Values{1, -4}), 0);
  EXPECT_EQ(difference(Values{1, -4}, Values{3, -4}), 0.5);
  for (const Values& other : {Values{nan, -4}, Values{nan, nan}, Values{1}, Values{1, INFINITY}}) {
    EXPECT_FALSE(difference(Values{1, -4}, other) <= 1e300);
    EXPECT_FALSE(difference(other, Values{1, -4}) <= 1e300);
  }
  // The numbers of batches do not excuse the weights.
  EXPECT_EQ(difference(Groups{{0.25, 1}, {10}}, Groups{{0.75, 1}, {10}}), 0.5);
  EXPECT_FALSE(difference(Groups{{1}, {10}}, Groups{{1}}) <= 1e300);
}

TEST(GpuTraining, ReplicasOnBothKinds) {
  const Gpus two(gpu_settings(2));
  const Groups alone = trained({{kHost}, 0, true});
  EXPECT_LE(difference(trained({{kHost, gpu(0), gpu(1)}}), trained({{kHost}})), 1e-5);
  EXPECT_LE(difference(trained({{gpu(1), kHost, Device(kCPU, 2), gpu(0)}}), trained({{kHost}})),
            1e-5);
  EXPECT_EQ(flat(alone).size(), flat(trained({{gpu(1), kHost}, 0, true, kFloat, 16, 2})).size());
}

}  // namespace
}  // namespace ramet::testing
