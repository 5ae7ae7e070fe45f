// Layers of windows: padding modes, sizes of results, options that reach their operation, refusals.
// Numbers: tests/nn/goldens.
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/layers/pool3d.h"
#include "autograd/ops/make/factory.h"
#include "nn/functional/functional.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/image/pooling.h"
#include "nn/module/sequential.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

Tensor padded(const Tensor& x, const std::vector<int64_t>& pad, F::PadFuncOptions::mode_t mode) {
  return F::pad(x, F::PadFuncOptions(pad).mode(mode));
}

// As of an input that was padded before.
TEST(Windows, ConvPaddingModes) {
  const Tensor x = sines(96).view({2, 3, 4, 4}).to(kFloat);
  const auto expect = [](auto conv, const Tensor& input, const Tensor& around) {
    const Tensor y = conv(input);
    conv->options.padding(0).padding_mode(kZeros);
    const Tensor want = conv(around);
    ASSERT_EQ(y.sizes(), want.sizes());
    expect_values(y, values(want), 1e-6);
  };
  const auto wide = Conv2dOptions(3, 2, 3).padding({1, 2});
  const auto with = [&](auto mode) { return Conv2d(Conv2dOptions(wide).padding_mode(mode)); };
  expect(with(kReflect), x, padded(x, {2, 2, 1, 1}, kReflect));
  expect(with(kReplicate), x, padded(x, {2, 2, 1, 1}, kReplicate));
  expect(with(kCircular), x, padded(x, {2, 2, 1, 1}, kCircular));
  // The odd one is the last.
  const auto same = Conv2dOptions(3, 2, {2, 3}).padding(kSame);
  expect(Conv2d(Conv2dOptions(same).padding_mode(kCircular)), x,
         padded(x, {1, 1, 0, 1}, kCircular));
  expect(Conv2d(Conv2dOptions(same).dilation(2).padding_mode(kReplicate)), x,
         padded(x, {2, 2, 1, 1}, kReplicate));
  const Tensor line = x.select(0, 0).select(0, 0).narrow(0, 0, 2);
  expect(Conv1d(Conv1dOptions(2, 1, 3).padding(2).padding_mode(kReflect).bias(false)), line,
         padded(line.unsqueeze(0), {2, 2}, kReflect).squeeze(0));
  const Tensor solid = x.view({2, 3, 2, 2, 4});
  expect(Conv3d(Conv3dOptions(3, 1, 2).padding({1, 0, 2}).padding_mode(kReplicate)), solid,
         padded(solid, {2, 2, 0, 0, 1, 1}, kReplicate));
  const auto valid = Conv2dOptions(3, 2, 3).padding(kValid).padding_mode(kReflect);
  EXPECT_EQ(Conv2d(valid)(ones({1, 3, 4, 4})).sizes(), IntArrayRef({1, 2, 2, 2}));
  EXPECT_EQ(text_of(Conv2d(valid)),
            "ramet::nn::Conv2d(3, 2, kernel_size=[3, 3], stride=[1, 1], padding='valid', "
            "padding_mode=kReflect)");
  EXPECT_ERROR_TEXT(
      Conv2d(Conv2dOptions(1, 1, 3).padding(4).padding_mode(kReflect))(ones({1, 1, 4, 4})),
      "[pad] Padding size should be less than the corresponding input dimension");
}

TEST(Windows, Conv3d) {
  const Tensor x = sines(72).view({1, 2, 4, 3, 3}).to(kFloat);
  const auto options = Conv3dOptions(2, 3, {2, 3, 2}).stride({2, 1, 1}).padding(1);
  Conv3d conv(options);
  const Tensor y = conv(x);
  EXPECT_EQ(y.sizes(), IntArrayRef({1, 3, 3, 3, 4}));
  EXPECT_TRUE(same_bits(conv(x.squeeze(0)), y.squeeze(0)));
  EXPECT_TRUE(
      same_bits(F::conv3d(x, conv->weight,
                          F::Conv3dFuncOptions().bias(conv->bias).stride({2, 1, 1}).padding(1)),
                y));
  Conv3d same(Conv3dOptions(2, 2, 2).padding(kSame).bias(false));
  expect_values(same(x), values(F::conv3d(padded(x, {0, 1, 0, 1, 0, 1}, kConstant), same->weight)),
                1e-6);
  EXPECT_EQ(text_of(conv),
            "ramet::nn::Conv3d(2, 3, kernel_size=[2, 3, 2], stride=[2, 1, 1], padding=[1, 1, 1])");
  EXPECT_EQ(Conv3d(Conv3dOptions(4, 6, 3).groups(2))->weight.sizes(), IntArrayRef({6, 2, 3, 3, 3}));
}

TEST(Windows, ConvTranspose) {
  ConvTranspose2d conv(ConvTranspose2dOptions(4, 4, {2, 3})
                           .stride(2)
                           .padding(1)
                           .output_padding(1)
                           .groups(2)
                           .dilation({1, 2}));
  EXPECT_EQ(conv->weight.sizes(), IntArrayRef({4, 2, 2, 3}));
  const Tensor x = sines(72).view({2, 4, 3, 3}).to(kFloat);
  EXPECT_TRUE(same_bits(conv(x), F::conv_transpose2d(x, conv->weight,
                                                     F::ConvTranspose2dFuncOptions()
                                                         .bias(conv->bias)
                                                         .stride(2)
                                                         .padding(1)
                                                         .output_padding(1)
                                                         .groups(2)
                                                         .dilation({1, 2}))));
}

TEST(Windows, ConvTransposeOutputSize) {
  const auto options = ConvTranspose2dOptions(4, 2, 3).stride(2).padding(1).bias(false);
  ConvTranspose2d conv(options);
  const Tensor x = sines(72).view({2, 4, 3, 3}).to(kFloat), y = conv(x, IntArrayRef({6, 5}));
  EXPECT_EQ(y.sizes(), IntArrayRef({2, 2, 6, 5}));
  ConvTranspose2d larger(ConvTranspose2dOptions(options).output_padding({1, 0}));
  larger->weight.set_data(conv->weight.detach());
  EXPECT_TRUE(same_bits(y, larger(x)));
  EXPECT_TRUE(same_bits(conv(x, IntArrayRef({2, 2, 6, 5})), y));
  EXPECT_TRUE(same_bits(conv(x.select(0, 1), IntArrayRef({6, 5})), y.select(0, 1)));
  EXPECT_TRUE(same_bits(Sequential(conv)->forward(x), conv(x)));
  EXPECT_ERROR_TEXT(conv(x, IntArrayRef({7, 5})),
                    "requested an output size of [7, 5], but valid sizes range from [5, 5] to "
                    "[6, 6] (for an input of [3, 3])");
  EXPECT_ERROR_TEXT(conv(x, IntArrayRef({7})), "output_size must have 2 or 4 elements (got 1)");
  EXPECT_ERROR_TEXT(
      ConvTranspose1d(ConvTranspose1dOptions(1, 1, 2).padding_mode(kCircular))(ones({1, 1, 2})),
      "Only `zeros` padding mode is supported for ConvTranspose1d: got kCircular");
  EXPECT_EQ(text_of(ConvTranspose2d(ConvTranspose2dOptions(4, 2, {3, 2})
                                        .stride(2)
                                        .padding(1)
                                        .output_padding({1, 0})
                                        .groups(2)
                                        .dilation(3)
                                        .bias(false))),
            "ramet::nn::ConvTranspose2d(4, 2, kernel_size=[3, 2], stride=[2, 2], padding=[1, 1], "
            "dilation=[3, 3], output_padding=[1, 0], groups=2, bias=false)");
  EXPECT_EQ(text_of(ConvTranspose1d(1, 2, 3)),
            "ramet::nn::ConvTranspose1d(1, 2, kernel_size=3, stride=1)");
  ConvTranspose3d copied(
      std::dynamic_pointer_cast<ConvTranspose3dImpl>(ConvTranspose3d(2, 3, 2)->clone()));
  EXPECT_EQ(copied->weight.sizes(), IntArrayRef({2, 3, 2, 2, 2}));
}

// Every option reaches the operation.
TEST(Windows, PoolsCallTheirOperations) {
  const Tensor line = sines(24).view({2, 12}), plane = sines(48).view({1, 6, 8}),
               solid = sines(120).view({1, 2, 4, 3, 5});
  const auto max1 = MaxPool1dOptions(3).stride(2).padding(1).dilation(2).ceil_mode(true);
  const auto max2 =
      MaxPool2dOptions({2, 3}).stride({2, 1}).padding(1).dilation({1, 2}).ceil_mode(true);
  const auto max3 = MaxPool3dOptions({2, 2, 2})
                        .stride({1, 2, 3})
                        .padding({1, 1, 0})
                        .dilation({1, 1, 2})
                        .ceil_mode(true);
  const auto average =
      AvgPool3dOptions({2, 3, 2}).stride({1, 2, 2}).padding({1, 1, 0}).ceil_mode(true);
  const auto expect = [](const std::tuple<Tensor, Tensor>& got, const Tensor& alone,
                         const std::tuple<Tensor, Tensor>& want) {
    EXPECT_TRUE(same_bits(std::get<0>(got), std::get<0>(want)));
    EXPECT_TRUE(same_bits(std::get<1>(got), std::get<1>(want)));
    EXPECT_TRUE(same_bits(alone, std::get<0>(want)));
  };
  expect(MaxPool1d(max1)->forward_with_indices(line), MaxPool1d(max1)(line),
         max_pool1d_with_indices(line, 3, 2, 1, 2, true));
  expect(MaxPool2d(max2)->forward_with_indices(plane), MaxPool2d(max2)(plane),
         max_pool2d_with_indices(plane, {2, 3}, {2, 1}, 1, {1, 2}, true));
  expect(MaxPool3d(max3)->forward_with_indices(solid), MaxPool3d(max3)(solid),
         max_pool3d_with_indices(solid, 2, {1, 2, 3}, {1, 1, 0}, {1, 1, 2}, true));
  for (const bool inside : {false, true}) {
    const auto o = AvgPool3dOptions(average).count_include_pad(!inside);
    EXPECT_TRUE(same_bits(AvgPool3d(o)(solid),
                          avg_pool3d(solid, {2, 3, 2}, {1, 2, 2}, {1, 1, 0}, true, !inside)));
  }
  EXPECT_TRUE(same_bits(AvgPool3d(AvgPool3dOptions(2).divisor_override(3))(solid),
                        avg_pool3d(solid, 2, {}, 0, false, true, 3)));
  EXPECT_TRUE(same_bits(
      AvgPool2d(AvgPool2dOptions(3).stride(2).ceil_mode(true).count_include_pad(false).padding(1))(
          plane),
      avg_pool2d(plane, 3, 2, 1, true, false)));
}

TEST(Windows, PoolsOfVolumes) {
  const Tensor x = sines(120).view({1, 2, 4, 3, 5}), whole = x.mul(100).trunc().to(kLong);
  auto average = AvgPool3dOptions({2, 3, 2}).stride({1, 2, 2}).padding({1, 1, 0}).ceil_mode(true);
  expect_first_values(F::avg_pool3d(whole, average), {18, 18, 11, 1, -12, -18}, 0);
  average.count_include_pad(false);
  expect_first_values(F::avg_pool3d(whole, average), {55, 54, 35, 4, -36, -56}, 0);
  EXPECT_EQ(F::avg_pool3d(whole, average).sum().item<double>(), 26);
  expect_first_values(F::avg_pool3d(whole, AvgPool3dOptions(2).divisor_override(-3)),
                      {-110, -146, 83, -18, 128, 142}, 0);
  EXPECT_EQ(AdaptiveAvgPool3d(AdaptiveAvgPool3dOptions({0, 2, 0}))(x).sizes(),
            IntArrayRef({1, 2, 0, 2, 0}));
  EXPECT_ERROR_TEXT(MaxPool3d(MaxPool3dOptions(2).padding(2))(x),
                    "[max_pool3d] pad should be at most half of effective kernel size");
  EXPECT_ERROR_TEXT(MaxPool3d(5)(x),
                    "[max_pool3d] Given input size: (2x4x3x5). Calculated output size: (2x0x0x1). "
                    "Output size is too small");
  EXPECT_ERROR_TEXT(F::avg_pool3d(x, AvgPool3dOptions(2).divisor_override(0)),
                    "[avg_pool3d] divisor must be not zero");
  EXPECT_ERROR_TEXT(MaxPool3d(2)(x.select(0, 0).select(0, 0)),
                    "[max_pool3d] Expected 4D or 5D input");
  EXPECT_EQ(text_of(MaxPool3d(2)),
            "ramet::nn::MaxPool3d(kernel_size=[2, 2, 2], stride=[2, 2, 2], padding=[0, 0, 0], "
            "dilation=[1, 1, 1], ceil_mode=false)");
  EXPECT_EQ(text_of(AvgPool3d(average)),
            "ramet::nn::AvgPool3d(kernel_size=[2, 3, 2], stride=[1, 2, 2], padding=[1, 1, 0])");
}

TEST(Windows, AdaptiveMaxPools) {
  EXPECT_EQ(text_of(AdaptiveMaxPool2d(AdaptiveMaxPool2dOptions({2, nullopt}))),
            "ramet::nn::AdaptiveMaxPool2d(output_size=[2, None])");
  EXPECT_EQ(text_of(AdaptiveMaxPool1d(4)), "ramet::nn::AdaptiveMaxPool1d(output_size=4)");
  // The last NaN of a window is its maximum; to nothing, and of nothing.
  const double nan = std::nan("");
  expect_values(
      std::get<1>(F::adaptive_max_pool1d_with_indices(doubles({1, nan, 3, nan, 2, 5}).view({1, 6}),
                                                      F::AdaptiveMaxPool1dFuncOptions(4))),
      {1, 1, 3, 5}, 0);
  const Tensor leaf = ones({2, 3, 4, 4}).requires_grad_();
  const Tensor none = F::adaptive_max_pool2d(leaf, AdaptiveMaxPool2dOptions({0, 2}));
  EXPECT_EQ(none.sizes(), IntArrayRef({2, 3, 0, 2}));
  none.sum().backward();
  EXPECT_EQ(leaf.grad().sum().item<double>(), 0);
  EXPECT_EQ(AdaptiveMaxPool2d(3)(ones({0, 3, 4, 4})).sizes(), IntArrayRef({0, 3, 3, 3}));
  EXPECT_ERROR_TEXT(AdaptiveMaxPool2d(-1)(leaf),
                    "[adaptive_max_pool2d] output_size: got [-1, -1], expected no negative");
  EXPECT_ERROR_TEXT(AdaptiveMaxPool2d(2)(ones({2, 3, 0, 4})),
                    "[adaptive_max_pool2d] got float32[2, 3, 0, 4]");
  EXPECT_THROW(AdaptiveMaxPool1d(2)(ones({2, 3}, kLong)), NotImplementedError);
}

}  // namespace
}  // namespace ramet::nn
