// Layers of windows other than the plain ones of layers_test.cc, against numbers from PyTorch 2.15
// in float64: padding modes, transposed convolutions, volumes.
#include "autograd/autograd.h"
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

double sum(const Tensor& t) { return t.sum().item<double>(); }

// A module with these values as parameters.
template <class M> M with_values(M module, double step = 0.23, double start = 0.4) {
  module->to(kDouble);
  module->weight.set_data(sines(module->weight.numel(), step, start).view(module->weight.sizes()));
  if (module->bias.defined()) module->bias.set_data(sines(module->bias.numel()));
  return module;
}

TEST(Windows, ConvPaddingModes) {
  const Tensor x = sines(96).view({2, 3, 4, 4});
  const auto of = [&](auto mode) {
    return with_values(Conv2d(Conv2dOptions(3, 2, 3).padding({1, 2}).padding_mode(mode)))(x);
  };
  expect_values(of(kReflect), {1.58579340960191, 2.01747323932533, 1.63768540556386,
                               0.50699138022322, 0.0559381291326078, 0.421051978667156});
  EXPECT_NEAR(sum(of(kReflect)), 3.73765306824358, 1e-11);
  EXPECT_NEAR(sum(of(kReplicate)), 34.7831679600762, 1e-11);
  EXPECT_NEAR(sum(of(kCircular)), 17.5371875228156, 1e-11);
  const Tensor same =
      with_values(Conv2d(Conv2dOptions(3, 2, {2, 3}).padding(kSame).padding_mode(kCircular)))(x);
  EXPECT_EQ(same.sizes(), IntArrayRef({2, 2, 4, 4}));
  expect_values(same, {2.9929045849487, 2.77443610240703, 3.18144507378407, 3.1760799164252});
  EXPECT_NEAR(sum(same), 29.6300553405596, 1e-11);
  expect_values(with_values(Conv1d(Conv1dOptions(2, 1, 3).padding(2).padding_mode(kReflect).bias(
                    false)))(sines(10).view({2, 5})),
                {2.65444059039622, 2.85909573103626, 2.83445244303282, 2.46279836467665});
  EXPECT_NEAR(sum(with_values(
                  Conv3d(Conv3dOptions(1, 1, 2).padding(1).padding_mode(kReplicate).bias(false)))(
                  sines(8).view({1, 1, 2, 2, 2}))),
              118.77971841999, 1e-11);
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
  const Tensor x = sines(72).view({1, 2, 4, 3, 3});
  Conv3d conv = with_values(Conv3d(Conv3dOptions(2, 3, {2, 3, 2}).stride({2, 1, 1}).padding(1)));
  const Tensor y = conv(x);
  EXPECT_EQ(y.sizes(), IntArrayRef({1, 3, 3, 3, 4}));
  expect_values(y, {-0.799567193412114, -1.52933804139374, -0.969429566832178, -0.168310642787215,
                    -0.644951412568061, -0.672696618529358, 0.401828720682041, 0.680553142472199});
  EXPECT_NEAR(sum(y), 64.6369807369548, 1e-11);
  EXPECT_TRUE(same_bits(conv(x.squeeze(0)), y.squeeze(0)));
  EXPECT_TRUE(
      same_bits(F::conv3d(x, conv->weight,
                          F::Conv3dFuncOptions().bias(conv->bias).stride({2, 1, 1}).padding(1)),
                y));
  const Tensor same = with_values(Conv3d(Conv3dOptions(2, 2, 2).padding(kSame).bias(false)))(
      sines(54).view({1, 2, 3, 3, 3}));
  expect_values(same, {-3.59901955990816, -3.61049425425921, -1.89177715320617, -2.23203852460099});
  EXPECT_NEAR(sum(same), -6.69936086103769, 1e-11);
  EXPECT_EQ(text_of(conv),
            "ramet::nn::Conv3d(2, 3, kernel_size=[2, 3, 2], stride=[2, 1, 1], padding=[1, 1, 1])");
  EXPECT_EQ(Conv3d(Conv3dOptions(4, 6, 3).groups(2))->weight.sizes(), IntArrayRef({6, 2, 3, 3, 3}));
}

TEST(Windows, ConvTranspose) {
  ConvTranspose2d conv = with_values(ConvTranspose2d(ConvTranspose2dOptions(4, 4, {2, 3})
                                                         .stride(2)
                                                         .padding(1)
                                                         .output_padding(1)
                                                         .groups(2)
                                                         .dilation({1, 2})));
  conv->bias.set_data(sines(4, 0.5, 0.2));
  EXPECT_EQ(conv->weight.sizes(), IntArrayRef({4, 2, 2, 3}));
  const Tensor x = sines(72).view({2, 4, 3, 3}).requires_grad_(), y = conv(x);
  EXPECT_EQ(y.sizes(), IntArrayRef({2, 4, 5, 8}));
  expect_values(y, {0.198669330795061, 1.35479969970496, 0.198669330795061, 2.75284521526009,
                    0.198669330795061, 2.65334193367719, 0.198669330795061, 1.74256676121273});
  EXPECT_NEAR(sum(y), 367.20013193225, 1e-10);
  // Gradients, and those of the sum of their squares.
  const Tensor v = sines(320, 0.41, 0.3).view({2, 4, 5, 8});
  const auto first = autograd::grad({(y * v).sum()}, {x, conv->weight, conv->bias}, {},
                                    std::nullopt, /*create_graph=*/true);
  expect_values(first[0], {1.04205105715788, 1.28298487058175, 1.14789855662146, 1.49014914094019});
  expect_values(first[1],
                {-2.23642961505106, -2.57287939952536, -0.714353007431745, 2.06811441038134});
  expect_values(first[2],
                {-0.431624707068337, 1.3919619762095, -1.7118518624009, 1.24411172420188});
  const Tensor squares = first[0].square().sum() + first[1].square().sum();
  const auto second = autograd::grad({squares}, {x, conv->weight});
  expect_values(second[0],
                {-6.5334655563164, 3.85962061275631, 11.2185548441616, 0.760199266173024});
  expect_values(second[1],
                {-11.9980102759138, -23.2082524925845, -20.0031955471318, 20.2670423586002});
  EXPECT_NEAR(sum(second[0]), 20.0762645809191, 1e-10);
  EXPECT_NEAR(sum(second[1]), 3.96477330764925, 1e-10);

  expect_values(
      F::conv_transpose1d(sines(12).view({3, 4}), sines(18, 0.23, 0.4).view({3, 2, 3}),
                          F::ConvTranspose1dFuncOptions().stride(2).padding(1).output_padding(1)),
      {0.952012215395929, 1.92471078283201, 1.18173757049162, 2.22449882875434, 1.25152028920282});
  const Tensor volume = with_values(ConvTranspose3d(
      ConvTranspose3dOptions(2, 1, {2, 3, 2}).stride({1, 2, 1})))(sines(16).view({1, 2, 2, 2, 2}));
  EXPECT_EQ(volume.sizes(), IntArrayRef({1, 1, 3, 5, 3}));
  expect_values(volume, {0.151211353821204, 0.342103542138016, 0.454115654783666, 0.160042300128453,
                         0.645873213678857, 0.710486838716854});
  EXPECT_NEAR(sum(volume), 92.199924414843, 1e-11);
}

TEST(Windows, ConvTransposeOutputSize) {
  ConvTranspose2d conv = with_values(
      ConvTranspose2d(ConvTranspose2dOptions(4, 2, 3).stride(2).padding(1).bias(false)));
  const Tensor x = sines(72).view({2, 4, 3, 3}), y = conv(x, IntArrayRef({6, 5}));
  EXPECT_EQ(y.sizes(), IntArrayRef({2, 2, 6, 5}));
  expect_values(y, {-0.336030493917026, -0.237734772556479, -0.0276564162219519, 0.323664973792179,
                    0.284460827666649, 0.760121587830913, 1.52902664740909});
  EXPECT_NEAR(sum(y), -36.6699845647131, 1e-11);
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

TEST(Windows, PoolsOfVolumes) {
  const Tensor x = sines(120).view({1, 2, 4, 3, 5});
  MaxPool3d pool(MaxPool3dOptions({2, 3, 2}).stride({1, 2, 2}).padding({1, 1, 0}).ceil_mode(true));
  const auto [y, places] = pool->forward_with_indices(x);
  EXPECT_EQ(y.sizes(), IntArrayRef({1, 2, 5, 2, 3}));
  expect_values(y, {0.925211520788168, 0.939099356319068, 0.999815615134291, 0.925211520788168});
  expect_values(places, {5, 3, 4, 5, 7, 9});
  EXPECT_NEAR(sum(y), 41.578879487707, 1e-12);
  EXPECT_EQ(sum(places), 1814);
  EXPECT_TRUE(same_bits(pool(x), y));
  EXPECT_TRUE(same_bits(F::max_pool3d(x.squeeze(0), pool->options), y.squeeze(0)));
  EXPECT_TRUE(same_bits(std::get<1>(F::max_pool3d_with_indices(x, pool->options)), places));

  auto options = AvgPool3dOptions({2, 3, 2}).stride({1, 2, 2}).padding({1, 1, 0}).ceil_mode(true);
  const Tensor mean = AvgPool3d(options)(x), whole = x.mul(100).trunc().to(kLong);
  expect_values(mean, {0.18517944871947, 0.182440929402836, 0.117636217119787, 0.0141051803624403});
  EXPECT_NEAR(sum(mean), 0.188033969764412, 1e-12);
  expect_values(F::avg_pool3d(whole, options), {18, 18, 11, 1, -12, -18}, 0);
  options.count_include_pad(false);
  EXPECT_NEAR(sum(F::avg_pool3d(x, options)), 0.328179619638863, 1e-12);
  expect_values(F::avg_pool3d(whole, options), {55, 54, 35, 4, -36, -56}, 0);
  EXPECT_EQ(sum(F::avg_pool3d(whole, options)), 26);
  EXPECT_NEAR(sum(AvgPool3d(AvgPool3dOptions(2).divisor_override(3))(x)), -0.704716838783188,
              1e-12);
  expect_values(F::avg_pool3d(whole, AvgPool3dOptions(2).divisor_override(-3)),
                {-110, -146, 83, -18, 128, 142}, 0);

  const Tensor kept = AdaptiveAvgPool3d(AdaptiveAvgPool3dOptions({2, nullopt, 3}))(x);
  EXPECT_EQ(kept.sizes(), IntArrayRef({1, 2, 2, 3, 3}));
  expect_values(kept, {-0.0656390419128561, 0.414338693905474, 0.790622120929749});
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
  EXPECT_EQ(text_of(AvgPool3d(options)),
            "ramet::nn::AvgPool3d(kernel_size=[2, 3, 2], stride=[1, 2, 2], padding=[1, 1, 0])");
}

TEST(Windows, AdaptiveMaxPools) {
  const Tensor x = sines(120).view({1, 2, 4, 3, 5});
  const auto [y, places] =
      AdaptiveMaxPool3d(AdaptiveMaxPool3dOptions({3, 2, 3}))->forward_with_indices(x);
  EXPECT_EQ(y.sizes(), IntArrayRef({1, 2, 3, 2, 3}));
  expect_values(y, {0.999661541408774, 0.999661541408774, 0.999815615134291, 0.999661541408774});
  expect_values(places, {21, 21, 4, 21, 21, 23}, 0);
  EXPECT_NEAR(sum(y), 29.5351347245439, 1e-12);
  EXPECT_EQ(sum(places), 1052);
  const AdaptiveMaxPool2dOptions kept({2, nullopt});
  expect_values(AdaptiveMaxPool2d(kept)(x.squeeze(0)),
                {0.925211520788168, 0.72538438746682, 0.751280405140293, 0.939099356319068});
  EXPECT_EQ(sum(std::get<1>(F::adaptive_max_pool2d_with_indices(x.squeeze(0), kept))), 580);
  EXPECT_EQ(text_of(AdaptiveMaxPool2d(kept)),
            "ramet::nn::AdaptiveMaxPool2d(output_size=[2, None])");
  expect_values(std::get<1>(AdaptiveMaxPool1d(4)->forward_with_indices(sines(14).view({2, 7}))),
                {1, 3, 4, 5, 0, 1}, 0);
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
  EXPECT_EQ(sum(leaf.grad()), 0);
  EXPECT_EQ(AdaptiveMaxPool2d(3)(ones({0, 3, 4, 4})).sizes(), IntArrayRef({0, 3, 3, 3}));
  EXPECT_ERROR_TEXT(AdaptiveMaxPool2d(-1)(leaf),
                    "[adaptive_max_pool2d] output_size: got [-1, -1], expected no negative");
  EXPECT_ERROR_TEXT(AdaptiveMaxPool2d(2)(ones({2, 3, 0, 4})),
                    "[adaptive_max_pool2d] got float32[2, 3, 0, 4]");
  EXPECT_THROW(AdaptiveMaxPool1d(2)(ones({2, 3}, kLong)), NotImplementedError);
}

}  // namespace
}  // namespace ramet::nn
