// Padding: derivatives and strides, what is copied, what is refused.
#include "autograd/ops/shape/pad.h"

#include <gtest/gtest.h>

#include <limits>

#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "kernels/kernel.h"
#include "tests/error_text.h"

namespace ramet {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max(),
                  kMin = std::numeric_limits<int64_t>::min();
const char* const kModes[] = {"constant", "reflect", "replicate", "circular"};

Tensor numbers(IntArrayRef sizes, ScalarType dtype = kDouble) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return arange(1, n + 1, kDouble).to(dtype).view(sizes);
}
bool same(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.eq(b).all().item<bool>();
}

TEST(Pad, DifferentiableTwice) {
  for (const char* mode : kModes)
    for (const std::vector<int64_t>& sides :
         {std::vector<int64_t>{1, 2}, {2, 0, 1, 1}, {0, 0, -1, 1}, {-1, -1}, {2, -1, 0, 1}}) {
      SCOPED_TRACE(mode);
      const Tensor x = numbers({1, 3, 4}).requires_grad_();
      const auto f = [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{pad(in[0], sides, mode).square()};
      };
      EXPECT_TRUE(autograd::gradcheck(f, {x}));
      EXPECT_TRUE(autograd::gradgradcheck(f, {x}));
    }
}

TEST(Pad, AnyLayout) {
  for (const char* mode : kModes) {
    SCOPED_TRACE(mode);
    const std::vector<int64_t> sides = {2, 1, 1, 2};
    const Tensor strided = numbers({4, 3, 2}).permute({2, 1, 0});
    EXPECT_TRUE(same(pad(strided, sides, mode), pad(strided.contiguous(), sides, mode)));
    // A convolution's result, which lies as the kernel left it.
    const Tensor image = conv2d(numbers({1, 2, 4, 5}, kFloat), numbers({2, 2, 1, 1}, kFloat));
    EXPECT_TRUE(same(pad(image, sides, mode), pad(image.clone().contiguous(), sides, mode)));
  }
}

TEST(Pad, IsAlwaysACopy) {
  const Tensor x = numbers({2, 5});
  for (const char* mode : kModes)
    for (const std::vector<int64_t>& sides : {std::vector<int64_t>{0, 0}, {-1, 0}, {1, -2}}) {
      const Tensor y = pad(x, sides, mode);
      y.fill_(0);
      EXPECT_TRUE(same(x, numbers({2, 5}))) << mode;
      EXPECT_TRUE(y.is_contiguous());
    }
  EXPECT_TRUE(same(constant_pad_nd(x, {}), x));
  EXPECT_TRUE(same(constant_pad_nd(tensor(3.0), {}), tensor(3.0)));
  // Cut off completely: only the constants are left.
  EXPECT_TRUE(same(constant_pad_nd(x, {-5, 2}, 7), full({2, 2}, 7.0, kDouble)));
  EXPECT_EQ(constant_pad_nd(x, {-2, -3}).sizes(), IntArrayRef({2, 0}));
  EXPECT_TRUE(same(constant_pad_nd(zeros({2, 0}, kDouble), {1, 1}, 7), full({2, 2}, 7.0, kDouble)));
}

int64_t calls = 0;
void count_call(KernelCall& call) { calls += call.done; }

TEST(Pad, ConstantIsAFillAndACopy) {
  const Tensor x = numbers({2, 3, 4, 5});
  calls = 0;
  const KernelObserver before = ramet::detail::kernel_observer.exchange(count_call);
  constant_pad_nd(x, {1, 2, 2, 1});
  ramet::detail::kernel_observer.store(before);
  EXPECT_EQ(calls, 2);
}

TEST(Pad, Refuses) {
  const Tensor x = numbers({1, 2, 5});
  EXPECT_ERROR_TEXT(constant_pad_nd(x, {1}), "Padding length must be divisible by 2");
  EXPECT_ERROR_TEXT(constant_pad_nd(x, {1, 1, 1, 1, 1, 1, 1, 1}),
                    "padding length 8 and input of dimension 3");
  EXPECT_ERROR_TEXT(constant_pad_nd(tensor(1.0), {1, 1}), "input of dimension 0");
  for (const std::vector<int64_t>& sides : {std::vector<int64_t>{-6, 0},
                                            {-3, -3},
                                            {-6, 9},
                                            {kMax, 0},
                                            {kMin, 0},
                                            {kMin, kMax},
                                            {kMin, kMin},
                                            {kMax, kMax},
                                            {kMax - 5, 1}})
    for (const char* mode : kModes)
      EXPECT_ERROR_TEXT(pad(x, sides, mode), "resulted in an invalid output size");
  EXPECT_THROW(constant_pad_nd(x, {kMax - 5, 0}), Error);
  EXPECT_ERROR_TEXT(pad(x, {5, 0}, "reflect"),
                    "Padding size should be less than the corresponding input dimension");
  EXPECT_ERROR_TEXT(pad(x, {6, 0}, "circular"), "wrapping around more than once");
  EXPECT_ERROR_TEXT(pad(x, {-3, 3}, "circular"), "wrapping around more than once");
  EXPECT_ERROR_TEXT(pad(zeros({2, 0}), {1, 0}, "replicate"), "Expected non-zero dimensions");
  EXPECT_ERROR_TEXT(pad(zeros({2, 0}), {1, 0}, "reflect"), "Padding size should be less");
  EXPECT_ERROR_TEXT(pad(x, {-2, -3}, "replicate"), "resulted in an invalid output size");
  EXPECT_ERROR_TEXT(pad(numbers({4, 6}), {1, 1, 1, 1}, "reflect"),
                    "Padding size 4 is not supported for 2D input tensor");
  EXPECT_ERROR_TEXT(pad(x, {}, "circular"), "Padding size 0 is not supported for 3D input tensor");
  EXPECT_ERROR_TEXT(pad(x, {1, 1}, "reflect", 2),
                    "Padding mode \"reflect\" doesn't take in value argument");
  EXPECT_ERROR_TEXT(pad(x, {1, 1}, "mirror"), "Unrecognised padding mode mirror");
  EXPECT_ERROR_TEXT(reflection_pad1d(x, {1, 1, 1}), "padding size is expected to be 2, but got: 3");
  EXPECT_ERROR_TEXT(replication_pad2d(x, {1, 1}), "[replication_pad2d] padding size is expected");
  EXPECT_ERROR_TEXT(reflection_pad3d(x, {1, 1, 1, 1, 1, 1}), "is not supported for 3D input");
  EXPECT_ERROR_TEXT(replication_pad1d(x, {kMax, kMax}), "resulted in an invalid output size");
  EXPECT_ERROR_TEXT(pad_sequence({}), "empty list of sequences");
  EXPECT_ERROR_TEXT(pad_sequence({x, Tensor()}), "undefined");
  EXPECT_ERROR_TEXT(pad_sequence({x, x.select(2, 0)}), "alike but for the first size");
  EXPECT_ERROR_TEXT(pad_sequence({x}, false, 0, "up"), "to be one of left or right, but got up");
  EXPECT_ERROR_TEXT(constant_pad_nd(Tensor(), {1, 1}), "undefined tensor");
  EXPECT_ERROR_TEXT(pad(Tensor(), {1, 1}, "reflect"), "undefined tensor");
}

}  // namespace
}  // namespace ramet
