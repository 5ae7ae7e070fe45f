// GroupNorm, InstanceNorm, RMSNorm, LocalResponseNorm and their functions, BatchNorm3d, against
// numbers from PyTorch 2.15 in float64.
#include "nn/layers/norm/group_norm.h"

#include <sstream>

#include "autograd/autograd.h"
#include "autograd/ops/make/factory.h"
#include "nn/functional/functional.h"
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

Tensor volumes() { return sines(72).view({2, 3, 2, 2, 3}); }
double sum(const Tensor& t) { return t.sum().item<double>(); }
std::vector<Tensor> gradients(const Tensor& y, const std::vector<Tensor>& of) {
  const Tensor v = sines(y.numel(), 0.41, 0.3).view(y.sizes());
  return autograd::grad({(y * v).sum()}, of, {}, std::nullopt, /*create_graph=*/true);
}

TEST(InstanceNorm, FunctionAndGradients) {
  const Tensor x = volumes().requires_grad_(), w = sines(3, 0.5, 0.7).requires_grad_(),
               b = sines(3, 0.3, 0.2).requires_grad_();
  const Tensor y = F::instance_norm(x, F::InstanceNormFuncOptions().weight(w).bias(b).eps(1e-3));
  expect_values(y, {-0.00772733134719525, 0.368286641161281, 0.677537314129011, 0.878169059730301});
  EXPECT_NEAR(sum(y), 33.4908230471709, 1e-12);
  const auto first = gradients(y, {x, w, b});
  expect_values(first[0],
                {0.395616787019967, 0.352783219190928, 0.269718531119745, 0.149599503477607});
  expect_values(first[1], {6.72046737629937, -2.52554852907361, -5.19552183467958});
  expect_values(first[2], {-1.37978197326632, 2.12808912649522, 2.25707739690622});
  const auto second = autograd::grad({first[0].square().sum()}, {x, w});
  expect_values(second[0],
                {-0.887268115882704, -0.906347700413657, -0.80662936261069, -0.582150356878874});
  expect_values(second[1], {10.7036315453336, 23.2752540288173, 56.2122424554734});
  expect_values(InstanceNorm1d(4)(sines(20).view({4, 5})),
                {-1.64567622836461, -0.578022195615086, 0.300064131661109, 0.869737888356322});
  EXPECT_EQ(sum(F::instance_norm(ones({2, 3, 1}))), 0);
  EXPECT_EQ(F::instance_norm(ones({0, 3, 4})).sizes(), IntArrayRef({0, 3, 4}));
}

TEST(InstanceNorm, RunningStatistics) {
  InstanceNorm3d norm(
      InstanceNorm3dOptions(3).affine(true).track_running_stats(true).momentum(0.25));
  norm->to(kDouble);
  const Tensor y = norm(volumes());
  expect_values(y, {-0.320820350541528, 0.263650993212747, 0.744346312007818, 1.05620574948845});
  expect_values(norm->running_mean, {0.0487264562919547, 0.0526584544294298, -0.0770601910929861});
  expect_values(norm->running_var, {0.879994531262831, 0.87602687825723, 0.844522551854412});
  EXPECT_EQ(sum(norm->num_batches_tracked), 0);
  norm(ones({0, 3, 2, 2, 2}).to(kDouble));  // teaches nothing
  norm->eval();
  const Tensor fixed = norm(volumes());
  expect_values(fixed,
                {0.0650813174024439, 0.440314544559092, 0.748923097703832, 0.949138256916691});
  EXPECT_NEAR(sum(fixed), 1.75318133861772, 1e-12);
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
  const auto copy = std::dynamic_pointer_cast<InstanceNorm3dImpl>(norm->clone());
  EXPECT_TRUE(same_bits(copy->weight, norm->weight));
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

TEST(RMSNorm, ValuesAndGradients) {
  const Tensor x = volumes().requires_grad_(), w = sines(6, 0.5, 0.7).view({2, 3}).requires_grad_();
  expect_values(F::rms_norm(x, F::RMSNormFuncOptions({2, 3}).weight(w)),
                {0.0922370699401847, 0.56133848599796, 0.971680111935664, 0.990252585559667});
  const auto first =
      gradients(F::rms_norm(x, F::RMSNormFuncOptions({2, 3}).weight(w).eps(1e-3)), {x, w});
  expect_values(first[0],
                {0.163438487315351, 0.435616740761011, 0.583855966239616, 0.328556617360134});
  expect_values(first[1],
                {-0.258223960317628, -0.309495853201343, -0.122181190717843, 0.0566789438807767});
  const auto second = autograd::grad({first[0].square().sum()}, {x, w});
  expect_values(second[0],
                {-0.33414544602173, -1.01645911120451, -1.46081665467085, -1.20613902111565});
  expect_values(second[1], {8.5313617095841, 13.6329755771318, 16.2265097118599, 14.5248656173159});
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

TEST(LocalResponseNorm, Values) {
  const Tensor x = sines(96).view({2, 6, 2, 4});
  LocalResponseNorm norm(LocalResponseNormOptions(3).alpha(0.5).beta(0.6).k(2));
  expect_values(norm(x), {0.072364568092541, 0.300184948307259, 0.473544956752954});
  EXPECT_NEAR(sum(norm(x)), 2.82261929112249, 1e-13);
  const auto of = [](int64_t size, const Tensor& t) {
    return sum(F::local_response_norm(t, F::LocalResponseNormFuncOptions(size).alpha(0.5)));
  };
  EXPECT_NEAR(of(2, x), 4.21382196740878, 1e-13);
  EXPECT_NEAR(of(4, x.view({2, 6, 8})), 4.03886875341128, 1e-13);
  EXPECT_NEAR(of(9, volumes()), 2.21277990796924, 1e-13);
  EXPECT_EQ(norm(ones({0, 3, 4})).sizes(), IntArrayRef({0, 3, 4}));
  EXPECT_EQ(text_of(norm), "ramet::nn::LocalResponseNorm(3, alpha=0.5, beta=0.6, k=2)");
  EXPECT_ERROR_TEXT(norm(ones({2, 3})), "Expected 3D or higher dimensionality input (got 2 dim");
  EXPECT_ERROR_TEXT(LocalResponseNorm(0)(x), "[local_response_norm] size: got 0");
}

TEST(BatchNorm3d, Volumes) {
  BatchNorm3d norm(3);
  norm->to(kDouble);
  expect_values(norm(volumes()),
                {-0.121817308807352, 0.381895204759508, 0.796170857240233, 1.0649393825265});
  expect_values(norm->running_mean, {0.0194905825167819, 0.0210633817717719, -0.0308240764371944});
  expect_values(norm->running_var, {0.950956139468181, 0.94933385526395, 0.936452443755419});
  EXPECT_EQ(sum(norm->num_batches_tracked), 1);
  EXPECT_ERROR_TEXT(norm(ones({2, 3, 4, 4}).to(kDouble)), "expected 5D input (got 4D input)");
  EXPECT_EQ(text_of(norm),
            "ramet::nn::BatchNorm3d(3, eps=1e-05, momentum=0.1, affine=true, "
            "track_running_stats=true)");
}

}  // namespace
}  // namespace ramet::nn
