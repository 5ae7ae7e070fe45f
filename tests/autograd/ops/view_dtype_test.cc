// x.view(dtype), and what a tensor says of itself: device number, output number, promotion.
#include <gtest/gtest.h>

#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

TEST(ViewDtype, SharesBytes) {
  const Tensor x = tensor({1.f, -2.f}), bits = x.view(kInt);
  EXPECT_EQ(bits.scalar_type(), kInt);
  EXPECT_EQ(bits.data_ptr<int32_t>()[0], 0x3F800000);
  bits.zero_();
  EXPECT_EQ(x[0].item<float>(), 0);
  EXPECT_EQ(x._version(), bits._version());
}

// Shapes and texts of PyTorch 2.15.
TEST(ViewDtype, OtherItemSizes) {
  const Tensor x = arange(6, kFloat);
  EXPECT_EQ(x.view(kDouble).sizes(), IntArrayRef({3}));
  EXPECT_EQ(x.view(kShort).sizes(), IntArrayRef({12}));
  EXPECT_EQ(x.view({2, 3}).view(kByte).sizes(), IntArrayRef({2, 12}));
  EXPECT_EQ(x.view({2, 3}).view(kByte).strides(), IntArrayRef({12, 1}));
  EXPECT_EQ(x.view(kDouble).view(kFloat).slice(0, 2).storage_offset(), 2);
  EXPECT_EQ(x.slice(0, 2).view(kDouble).storage_offset(), 1);
  const auto refused = [](const Tensor& t, ScalarType dtype, const char* why) {
    EXPECT_ERROR_TEXT(t.view(dtype), why);
  };
  refused(x.slice(0, 1, 5), kDouble, "self.storage_offset() must be divisible by 2");
  refused(x.slice(0, 1), kDouble, "self.size(-1) must be divisible by 2");
  refused(x.view({2, 3}).t(), kShort, "self.stride(-1) must be 1");
  refused(arange(9, kFloat).view({3, 3}).slice(1, 0, 2), kDouble, "must be divisible by 2");
  refused(ones({}), kShort, "self.dim() cannot be 0");
  EXPECT_EQ(ones({}).view(kInt).item<int>(), 0x3F800000);
}

TEST(ViewDtype, NoHistory) {
  const Tensor w = leaf({1, 2}), y = w * 2;
  EXPECT_FALSE(w.view(kLong).requires_grad());
  EXPECT_FALSE(y.view(kDouble).requires_grad());
}

TEST(TensorFacts, DeviceOutputAndReset) {
  const Tensor x = leaf({1, 2, 3, 4}), y = x * 2;
  EXPECT_EQ(x.get_device(), 0);
  EXPECT_EQ(empty({1}, TensorOptions(Device(kCPU, 1))).get_device(), 1);
  EXPECT_EQ(x.output_nr(), 0);
  EXPECT_EQ(y.output_nr(), 0);
  Tensor z = y;
  z.reset();
  EXPECT_FALSE(z.defined());
  EXPECT_TRUE(y.defined());
  z.reset();
}

TEST(Promotion, ResultTypeAndCanCast) {  // what LibTorch gives
  const Tensor f = ones({2}), l = ones({2}, kLong), d0 = ones({}, kDouble);
  EXPECT_EQ(result_type(f, l), kFloat);
  EXPECT_EQ(result_type(f, d0), kFloat);
  EXPECT_EQ(result_type(l, d0), kDouble);
  EXPECT_EQ(result_type(l, 2.5), kFloat);
  EXPECT_EQ(result_type(2.5, l), kFloat);
  EXPECT_EQ(result_type(Scalar(1), Scalar(2.0)), kFloat);
  EXPECT_EQ(result_type(Scalar(true), Scalar(1)), kLong);
  EXPECT_THROW(result_type(Tensor(), f), Error);
  EXPECT_FALSE(can_cast(kInt, kBool));
  EXPECT_TRUE(can_cast(kBool, kInt));
  EXPECT_FALSE(can_cast(kFloat, kInt));
  EXPECT_TRUE(can_cast(kLong, kByte));
  EXPECT_TRUE(can_cast(kDouble, kHalf));
}

}  // namespace
}  // namespace ramet
