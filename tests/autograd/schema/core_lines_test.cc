// Operators of ATen's core against sums of others: all their results, and what they refuse.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/schema/called.h"

namespace ramet::script {
namespace {

std::vector<Tensor> core_results(const std::string& name, const std::vector<Passing>& arguments) {
  std::vector<Tensor> list;
  const IValue made = called(name, arguments);
  for (const IValue& v : made.toTupleRef().elements()) list.push_back(v.toTensor());
  return list;
}
void core_near(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_TRUE(allclose(got, want, 1e-12, 1e-12)) << got << want;
}
Passing core_ints(std::vector<int64_t> list) { return Passing(IValue(list)); }
Tensor core_doubles(std::vector<int64_t> sizes) { return randn(sizes, kDouble); }

TEST(CoreLines, Norms) {
  const Tensor x = core_doubles({2, 4, 3}), w = core_doubles({3}), b = core_doubles({3});
  const Tensor mean = x.mean({-1}, true), rstd = (x.var({-1}, false, true) + 0.1).rsqrt();
  const auto layer = core_results("aten::native_layer_norm", {x, core_ints({3}), w, b, 0.1});
  core_near(layer[0], (x - mean) * rstd * w + b);
  core_near(layer[1], mean);
  core_near(layer[2], rstd);
  const Tensor flat = x.reshape({2, 2, 6});
  const Tensor group_rstd = (flat.var({-1}, false) + 0.1).rsqrt();
  const auto group =
      core_results("aten::native_group_norm", {x, IValue(), IValue(), 2, 4, 3, 2, 0.1});
  core_near(group[0],
            ((flat - flat.mean({-1}, true)) * group_rstd.unsqueeze(-1)).reshape({2, 4, 3}));
  core_near(group[1], flat.mean({-1}));
  core_near(group[2], group_rstd);
  EXPECT_THROW(called("aten::native_group_norm", {x, IValue(), IValue(), 2, 5, 3, 2, 0.1}), Error);
}

TEST(CoreLines, BatchNormsKeepOrMakeStatistics) {
  const Tensor x = core_doubles({5, 2, 3}), mean = zeros({2}, kDouble),
               variance = ones({2}, kDouble);
  const Tensor own = x.mean({0, 2}), own_variance = x.var({0, 2}, false);
  const Tensor want = (x - own.view({1, 2, 1})) * (own_variance + 0.1).rsqrt().view({1, 2, 1});
  const auto made = core_results("aten::_native_batch_norm_legit_functional",
                                 {x, IValue(), IValue(), mean, variance, true, 0.5, 0.1});
  core_near(made[0], want);
  core_near(made[1], own);
  core_near(made[2], (own_variance + 0.1).rsqrt());
  core_near(made[3], own * 0.5);
  core_near(made[4], x.var({0, 2}, true) * 0.5 + 0.5);
  core_near(mean, zeros({2}, kDouble));  // as they were
  core_near(
      core_results("aten::_native_batch_norm_legit", {x, IValue(), IValue(), true, 0.5, 0.1})[0],
      want);
  (void)core_results("aten::_native_batch_norm_legit",
                     {x, IValue(), IValue(), mean, variance, true, 0.5, 0.1});
  core_near(mean, own * 0.5);
  const auto fixed = core_results("aten::_native_batch_norm_legit_no_training",
                                  {x, IValue(), IValue(), own, own_variance, 0.5, 0.1});
  core_near(fixed[0], want);
  EXPECT_EQ(fixed[1].numel(), 0);
}

TEST(CoreLines, AttentionAndItsLogarithms) {
  const Tensor q = core_doubles({1, 2, 3, 4}), k = core_doubles({1, 2, 5, 4}),
               v = core_doubles({1, 2, 5, 4});
  const Tensor scores = matmul(q, k.transpose(-2, -1)) * 0.5;
  const auto plain = core_results("aten::_scaled_dot_product_flash_attention_for_cpu", {q, k, v});
  core_near(plain[0], matmul(softmax(scores, -1), v));
  core_near(plain[1], logsumexp(scores, {-1}));
  const Tensor hidden =
      scores.masked_fill(logical_not(ones({3, 5}, TensorOptions(kBool)).tril()), -HUGE_VAL);
  const auto causal =
      core_results("aten::_scaled_dot_product_flash_attention_for_cpu", {q, k, v, 0.0, true});
  core_near(causal[0], matmul(softmax(hidden, -1), v));
  core_near(causal[1], logsumexp(hidden, {-1}));
}

TEST(CoreLines, DropoutSaysWhatItKept) {
  const Tensor x = full({1000}, 2, kDouble);
  const auto made = core_results("aten::native_dropout", {x, 0.5, true});
  core_near(made[0], where(made[1], full({1000}, 4, kDouble), zeros({1000}, kDouble)));
  const int64_t kept = made[1].sum().item<int64_t>();
  EXPECT_TRUE(kept > 400 && kept < 600) << kept;
  core_near(core_results("aten::native_dropout", {x, 0.5, false})[0], x);
  core_near(core_results("aten::native_dropout", {x, 1.0, true})[0], zeros({1000}, kDouble));
  EXPECT_THROW(called("aten::native_dropout", {x, 1.5, true}), Error);
}

TEST(CoreLines, LikelihoodsCountTheirWeight) {
  const Tensor x = core_doubles({4, 3}), w = tensor({1.0, 2.0, 4.0}, kDouble);
  const Tensor target = tensor({2, 0, 1, 2}, TensorOptions(kLong));
  const auto made = core_results("aten::nll_loss_forward", {x, target, w, 1, 1});
  core_near(made[1], full({}, 9, kDouble));
  core_near(made[0], -(x[0][2] * 4 + x[1][0] + x[3][2] * 4) / 9);
  core_near(core_results("aten::nll_loss_forward", {x, target, IValue(), 2, -100})[1],
            full({}, 4, kDouble));
}

// Statistics are float32 there. Rounded to bfloat16, those of numbers far from 0 would say little.
TEST(CoreLines, GradientsOfNormsInSixteenBits) {
  const Tensor x = (randn({6, 4, 32}) + 100).to(kBFloat16), g = randn({6, 4, 32}).to(kBFloat16);
  const Tensor weight = rand({32}).to(kBFloat16), zero = zeros({32}, kBFloat16);
  const Passing all = IValue(List<bool>({true, true, true}));
  const auto check = [&](const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].scalar_type(), kBFloat16);
      const double error = (got[i].to(kDouble) - want[i]).abs().max().item<double>();
      EXPECT_LE(error, 0.005 * want[i].abs().max().item<double>())
          << i;  // half a last place: 0.004
    }
  };
  const auto wide = [](const Tensor& t) { return t.to(kDouble).requires_grad_(true); };
  const auto layer =
      core_results("aten::native_layer_norm", {x, core_ints({32}), weight, zero, 1e-5});
  Tensor a = wide(x), w = wide(weight), b = wide(zero);
  check(core_results("aten::native_layer_norm_backward",
                     {g, x, core_ints({32}), layer[1], layer[2], weight, zero, all}),
        autograd::grad({layer_norm(a, {32}, w, b, 1e-5)}, {a, w, b}, {g.to(kDouble)}));
  const Tensor of_four = rand({4}).to(kBFloat16), none = zeros({4}, kBFloat16);
  const auto group = core_results("aten::native_group_norm", {x, of_four, none, 6, 4, 32, 2, 1e-5});
  a = wide(x), w = wide(of_four), b = wide(none);
  check(core_results("aten::native_group_norm_backward",
                     {g, x, group[1], group[2], of_four, 6, 4, 32, 2, all}),
        autograd::grad({group_norm(a, 2, w, b, 1e-5)}, {a, w, b}, {g.to(kDouble)}));
}

TEST(CoreLines, GradientsOfConvolutionsKeepTheirDtypeUnderAutocast) {
  const Tensor x = randn({2, 3, 5}), w = randn({4, 3, 2}), g = randn({2, 4, 4});
  const auto run = [&](const IValue& sizes) {
    return core_results("aten::convolution_backward",
                        {g, x, w, Passing(sizes), core_ints({1}), core_ints({0}), core_ints({1}),
                         false, core_ints({0}), 1, IValue(List<bool>({true, true, true}))});
  };
  const auto want = run(IValue(std::vector<int64_t>{4}));
  // Without bias_sizes the bias has its gradient, too.
  EXPECT_TRUE(allclose(run(IValue())[2], g.sum({0, 2}), 1e-6, 1e-6));
  const AutocastGuard casts(DeviceType::CPU, kBFloat16);
  const auto got = run(IValue());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(equal(got[i], want[i])) << i;
}

// PyTorch puts a place that is no number at the first element.
TEST(CoreLines, PlacesThatAreNoNumbers) {
  const Tensor image = arange(16, kDouble).view({1, 1, 4, 4});
  const auto at = [&](double x, int64_t mode, int64_t padding) {
    return called("aten::grid_sampler",
                  {image, tensor({x, 0.0}, kDouble).view({1, 1, 1, 2}), mode, padding, true})
        .toTensor();
  };
  for (const int64_t mode : {0, 1})
    for (const int64_t padding : {1, 2}) {
      core_near(at(std::nan(""), mode, padding), at(-1, mode, padding));
      core_near(at(HUGE_VAL, mode, padding), at(padding == 1 ? 1 : -1, mode, padding));
    }
}

TEST(CoreLines, SizesAndMetadataAreChecked) {
  const Tensor x = ones({2, 3}, kDouble);
  EXPECT_EQ(called("aten::empty_permuted", {core_ints({2, 3, 4}), core_ints({0, 2, 1})})
                .toTensor()
                .strides(),
            IntArrayRef({12, 1, 3}));
  EXPECT_THROW(called("aten::empty_permuted", {core_ints({2, 3}), core_ints({0, 0})}), Error);
  called("aten::sym_constrain_range_for_size", {5, Passing(2, "min"), Passing(5, "max")});
  EXPECT_THROW(called("aten::sym_constrain_range", {6, Passing(2, "min"), Passing(5, "max")}),
               Error);
  called("aten::_assert_tensor_metadata", {x, core_ints({2, 3}), IValue(), 7});
  EXPECT_THROW(called("aten::_assert_tensor_metadata", {x, core_ints({3, 2})}), Error);
  EXPECT_THROW(called("aten::_assert_tensor_metadata", {x, IValue(), IValue(), 6}), Error);
}

}  // namespace
}  // namespace ramet::script
