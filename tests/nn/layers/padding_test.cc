// Pad modules and pad: negative numbers, how they print, what they refuse. Numbers:
// tests/nn/goldens.
#include "nn/layers/image/padding.h"

#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"
#include "nn/layers/image/conv.h"
#include "nn/module/sequential.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

// A negative number cuts first, and the border comes from what is left.
TEST(Padding, CutsBeforeItFills) {
  const Tensor x = sines(10).view({2, 5});
  const auto padded = [](const Tensor& t, const std::vector<int64_t>& pad, auto mode) {
    return F::pad(t, F::PadFuncOptions(pad).mode(mode));
  };
  const Tensor left = x.narrow(1, 1, 4);
  EXPECT_TRUE(same_bits(padded(x, {-1, 3}, kReflect), padded(left, {0, 3}, kReflect)));
  EXPECT_TRUE(same_bits(padded(x, {-1, 3}, kCircular), padded(left, {0, 3}, kCircular)));
  EXPECT_TRUE(same_bits(padded(x, {-1, 3}, kReplicate), padded(left, {0, 3}, kReplicate)));
  EXPECT_TRUE(same_bits(padded(x, {-1, 3}, kConstant), padded(left, {0, 3}, kConstant)));
}

TEST(Padding, ModulesTakeMoreDimensionsAndMeetOthers) {
  const Tensor x = sines(2 * 3 * 4 * 5 * 6).view({2, 3, 4, 5, 6});
  EXPECT_EQ(ZeroPad2d(ZeroPad2dOptions({1, 1, 2, 0}))(x).sizes(), IntArrayRef({2, 3, 4, 7, 8}));
  Sequential net(ReflectionPad2d(1), Conv2d(Conv2dOptions(1, 2, 3)));
  EXPECT_EQ(net->forward(ones({1, 1, 4, 5})).sizes(), IntArrayRef({1, 2, 4, 5}));
}

TEST(Padding, PrintsAsInLibTorch) {
  EXPECT_EQ(text_of(ReflectionPad1d(2)), "ramet::nn::ReflectionPad1d(padding=[2, 2])");
  EXPECT_EQ(text_of(ConstantPad2d(ConstantPad2dOptions({3, 0, 2, 1}, 3.5))),
            "ramet::nn::ConstantPad2d(padding=[3, 0, 2, 1], value=3.5)");
}

TEST(Padding, Refuses) {
  const Tensor x = ones({4, 6}), y = ones({1, 2, 5});
  EXPECT_ERROR_TEXT(ReflectionPad2d(1)(x), "Padding size 4 is not supported for 2D input tensor");
  EXPECT_ERROR_TEXT(ZeroPad3d(1)(x), "got padding length 6 and input of dimension 2");
  EXPECT_ERROR_TEXT(ConstantPad1d(-4, 1)(x), "resulted in an invalid output size");
  EXPECT_ERROR_TEXT(ReflectionPad1d(5)(y), "less than the corresponding input dimension");
  EXPECT_ERROR_TEXT(F::pad(y, F::PadFuncOptions({1, 1}).mode(kReflect).value(2)),
                    "Padding mode \"reflect\" doesn't take in value argument");
  EXPECT_ERROR_TEXT(ReplicationPad2dOptions({1, 2, 3}), "Expected 4 values");
}

}  // namespace
}  // namespace ramet::nn
