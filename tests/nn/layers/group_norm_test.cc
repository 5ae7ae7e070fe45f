// GroupNorm, InstanceNorm, RMSNorm, LocalResponseNorm and BatchNorm3d: statistics, edges, refusals.
// Numbers: tests/nn/goldens; those here are from PyTorch 2.15, too.
#include "nn/layers/norm/group_norm.h"

#include "autograd/ops/make/factory.h"
#include "nn/functional/functional.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

// The variance of 1 and 3 is 1.
TEST(GroupNorm, EpsCounts) {
  expect_values(
      GroupNorm(GroupNormOptions(1, 2).eps(3).affine(false))(doubles({1, 3}).view({1, 2})),
      {-.5, .5});
}

TEST(GroupNorm, HasWeightAndBias) {
  GroupNorm norm(GroupNormOptions(2, 4));
  const auto parameters = norm->named_parameters();
  ASSERT_EQ(parameters.size(), 2u);
  expect_values(parameters["weight"], {1, 1, 1, 1});
  expect_values(parameters["bias"], {0, 0, 0, 0});
  EXPECT_EQ(norm->named_buffers().size(), 0u);
  EXPECT_EQ(GroupNorm(GroupNormOptions(2, 4).affine(false))->parameters().size(), 0u);
  norm->weight.set_data(doubles({1, 2, 3, 4}).to(kFloat));
  norm->reset_parameters();
  expect_values(norm->weight, {1, 1, 1, 1});
}

TEST(GroupNorm, PrintsAsInLibTorch) {
  EXPECT_EQ(text_of(GroupNorm(2, 6)), "ramet::nn::GroupNorm(2, 6, eps=1e-05, affine=true)");
  EXPECT_EQ(text_of(GroupNorm(GroupNormOptions(1, 5).eps(2e-3).affine(false))),
            "ramet::nn::GroupNorm(1, 5, eps=0.002, affine=false)");
}

TEST(GroupNorm, Refuses) {
  EXPECT_ERROR_TEXT(GroupNorm(4, 6), "num_channels must be divisible by num_groups");
  EXPECT_ERROR_TEXT(GroupNorm(0, 6), "num_channels must be divisible by num_groups");
  EXPECT_ERROR_TEXT(GroupNorm(2, 6)(ones({2, 4, 3})), "Expected weight to be a vector of size");
  EXPECT_ERROR_TEXT(GroupNorm(2, 6)(ones(6)), "Expected at least 2 dimensions");
}

Tensor volumes() { return sines(72).view({2, 3, 2, 2, 3}); }
double total(const Tensor& t) { return t.sum().item<double>(); }

TEST(InstanceNorm, OfOneValueAndOfNothing) {
  EXPECT_EQ(total(F::instance_norm(ones({2, 3, 1}))), 0);
  EXPECT_EQ(F::instance_norm(ones({0, 3, 4})).sizes(), IntArrayRef({0, 3, 4}));
}

TEST(InstanceNorm, RunningStatistics) {
  InstanceNorm3d norm(
      InstanceNorm3dOptions(3).affine(true).track_running_stats(true).momentum(0.25));
  norm->to(kDouble);
  const Tensor y = norm(volumes());
  expect_first_values(y,
                      {-0.320820350541528, 0.263650993212747, 0.744346312007818, 1.05620574948845});
  expect_values(norm->running_mean, {0.0487264562919547, 0.0526584544294298, -0.0770601910929861});
  expect_values(norm->running_var, {0.879994531262831, 0.87602687825723, 0.844522551854412});
  EXPECT_EQ(total(norm->num_batches_tracked), 0);
  norm(ones({0, 3, 2, 2, 2}).to(kDouble));  // teaches nothing
  norm->eval();
  const Tensor fixed = norm(volumes());
  expect_first_values(
      fixed, {0.0650813174024439, 0.440314544559092, 0.748923097703832, 0.949138256916691});
  EXPECT_NEAR(total(fixed), 1.75318133861772, 1e-12);
  EXPECT_TRUE(same_bits(norm(volumes().select(0, 0)), fixed.select(0, 0)));
  const auto parameters = norm->named_parameters();
  const auto buffers = norm->named_buffers();
  EXPECT_EQ(parameters.keys(), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(buffers.keys(),
            (std::vector<std::string>{"running_mean", "running_var", "num_batches_tracked"}));
  norm->reset_parameters();
  expect_values(norm->running_var, {1, 1, 1});
  InstanceNorm2d plain(3);
  EXPECT_EQ(plain->parameters().size() + plain->buffers().size(), 0u);
}

TEST(InstanceNorm, PrintsAndRefuses) {
  EXPECT_EQ(text_of(InstanceNorm2d(3)),
            "ramet::nn::InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=false, "
            "track_running_stats=false)");
  EXPECT_ERROR_TEXT(InstanceNorm1d(3)(ones({2, 3, 4, 4})), "expected 2D or 3D input (got 4D");
  EXPECT_ERROR_TEXT(InstanceNorm2d(InstanceNorm2dOptions(5).affine(true))(ones({2, 3, 4, 4})),
                    "[instance_norm] weight: got float32[5]");
  EXPECT_ERROR_TEXT(
      F::instance_norm(ones({2, 3, 4}), F::InstanceNormFuncOptions().use_input_stats(false)),
      "Expected running_mean and running_var to be defined when use_input_stats");
  EXPECT_ERROR_TEXT(
      F::instance_norm(ones({2, 3, 4}), F::InstanceNormFuncOptions().running_var(ones(3))),
      "running_mean and running_var must either both be None or neither be None");
  EXPECT_ERROR_TEXT(F::instance_norm(ones(3)), "expected at least 2 dimensions");
  EXPECT_THROW(F::instance_norm(ones({2, 3, 4}, kLong)), NotImplementedError);
}

TEST(RMSNorm, EpsPrintsAndRefuses) {
  // Without eps that of the type it is computed in: 1.19e-7, and 2.2e-16.
  expect_values(RMSNorm(RMSNormOptions({3}))(doubles({1e-4, 2e-4, 3e-4}).to(kFloat)),
                {0.2455, 0.4911, 0.7366}, 5e-5);
  expect_values(RMSNorm(RMSNormOptions({3}))(doubles({1e-9, 2e-9, 3e-9})), {0.0664, 0.1328, 0.1992},
                5e-5);
  RMSNorm norm(RMSNormOptions({2, 3}).eps(1e-3));
  EXPECT_EQ(norm->named_parameters().keys(), std::vector<std::string>{"weight"});
  EXPECT_EQ(text_of(norm), "ramet::nn::RMSNorm([2, 3], eps=0.001, elementwise_affine=true)");
  EXPECT_EQ(text_of(RMSNorm(RMSNormOptions({4}).elementwise_affine(false))),
            "ramet::nn::RMSNorm([4], eps=None, elementwise_affine=false)");
  EXPECT_ERROR_TEXT(norm(ones({2, 3, 2})), "[rms_norm] Given normalized_shape=[2, 3], expected");
  EXPECT_ERROR_TEXT(norm(ones(3)), "[rms_norm] Given normalized_shape=[2, 3], expected");
  EXPECT_ERROR_TEXT(RMSNorm(RMSNormOptions(std::vector<int64_t>{}))(ones(3)),
                    "at least 1-dimensional");
  EXPECT_ERROR_TEXT(F::rms_norm(ones(3), F::RMSNormFuncOptions({3}).weight(ones(2))),
                    "Expected weight to be of same shape as normalized_shape");
  EXPECT_THROW(norm(ones({2, 3}, kLong)), NotImplementedError);
}

TEST(LocalResponseNorm, OfVolumesAndNothing) {
  const Tensor x = sines(96).view({2, 6, 2, 4});
  LocalResponseNorm norm(LocalResponseNormOptions(3).alpha(0.5).beta(0.6).k(2));
  EXPECT_TRUE(same_bits(norm(x), F::local_response_norm(x, norm->options)));
  // More channels than there are.
  EXPECT_NEAR(
      total(F::local_response_norm(volumes(), F::LocalResponseNormFuncOptions(9).alpha(0.5))),
      2.21277990796924, 1e-13);
  EXPECT_EQ(norm(ones({0, 3, 4})).sizes(), IntArrayRef({0, 3, 4}));
  EXPECT_EQ(text_of(norm), "ramet::nn::LocalResponseNorm(3, alpha=0.5, beta=0.6, k=2)");
  EXPECT_ERROR_TEXT(norm(ones({2, 3})), "Expected 3D or higher dimensionality input (got 2 dim");
  EXPECT_ERROR_TEXT(LocalResponseNorm(0)(x), "[local_response_norm] size: got 0");
}

TEST(BatchNorm3d, PrintsAndRefuses) {
  BatchNorm3d norm(3);
  EXPECT_ERROR_TEXT(norm(ones({2, 3, 4, 4})), "expected 5D input (got 4D input)");
  EXPECT_EQ(text_of(norm),
            "ramet::nn::BatchNorm3d(3, eps=1e-05, momentum=0.1, affine=true, "
            "track_running_stats=true)");
}

}  // namespace
}  // namespace ramet::nn
