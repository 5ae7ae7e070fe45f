// GroupNorm and its function against numbers from PyTorch 2.15 in float64.
#include "nn/layers/group_norm.h"

#include <sstream>

#include "autograd/ops/factory.h"
#include "nn/serialize/save.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

Tensor image() { return sines(48).view({2, 6, 2, 2}); }
const std::vector<double> kNormal = {-1.92406667394678, -0.709635988351408, 0.289166009051934,
                                     0.937156153506686, 1.14663201882008,   0.889242029317665,
                                     0.199822712607561, -0.828316261005739};

TEST(GroupNorm, NormalisesGroupsOfChannels) {
  GroupNorm norm(3, 6);
  norm->to(kDouble);
  expect_values(norm(image()), kNormal);
  expect_values(F::group_norm(image(), F::GroupNormFuncOptions(3)), kNormal);
  norm->weight.set_data(doubles({2, -1, 1, 1, 1, 1}));
  norm->bias.set_data(doubles({1, 3, 0, 0, 0, 0}));
  std::vector<double> want = kNormal;
  for (size_t i = 0; i < want.size(); ++i) want[i] = i < 4 ? 2 * want[i] + 1 : 3 - want[i];
  expect_values(norm(image()), want);
  const auto options = F::GroupNormFuncOptions(3).weight(norm->weight).bias(norm->bias);
  expect_values(F::group_norm(image(), options), want);
  // eps counts: the variance of 1 and 3 is 1.
  expect_values(F::group_norm(doubles({1, 3}).view({1, 2}), F::GroupNormFuncOptions(1).eps(3)),
                {-.5, .5});
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
  std::stringstream file;
  save(norm, file);
  GroupNorm other(2, 4);
  load(other, file);
  EXPECT_TRUE(same_bits(other->weight, norm->weight));
  const auto copy = std::dynamic_pointer_cast<GroupNormImpl>(norm->clone());
  EXPECT_TRUE(same_bits(copy->weight, norm->weight));
  copy->reset_parameters();
  expect_values(copy->weight, {1, 1, 1, 1});
  expect_values(norm->weight, {1, 2, 3, 4});
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

}  // namespace
}  // namespace ramet::nn
