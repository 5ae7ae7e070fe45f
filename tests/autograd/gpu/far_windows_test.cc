// Paddings, dilations, strides and kernels far larger than the image, on a GPU: no number wraps,
// and nobody walks over what lies outside.
#include "runtime/allocator.h"
#include "tests/autograd/fuzz_windows.h"
#include "tests/autograd/gpu/gpu_tensors.h"

namespace ramet::kernels {
namespace {

TEST(FarWindowsOnGpu, Draws) {
  for (bool pools : {false, true}) {
    int counts[3] = {};
    fuzz::check_tapes(100, 60, [&](fuzz::Tape& tape) {
      const FarDraw what = pools ? check_far_pool(tape, kGpu) : check_far_convolution(tape, kGpu);
      ++counts[static_cast<int>(what)];
    });
    EXPECT_GT(counts[0], counts[1]);
  }
}

TEST(FarWindowsOnGpu, OnlyTheMiddleOfTheKernelMeetsTheImage) {
  for (int64_t far : {int64_t{10000}, int64_t{1} << 61, int64_t{1} << 62}) {
    const Tensor x = ones({1, 1, 6, 6}).to(kGpu).requires_grad_(),
                 w = ones({1, 1, 3, 3}).to(kGpu).requires_grad_();
    set_memory_limit(kGpu, memory_stats(kGpu).current + (1 << 20));
    const Tensor y = conv2d(x, w, {}, 1, far, far);
    y.sum().backward();
    set_memory_limit(kGpu, 0);
    expect_near(y, std::vector<double>(36, 1), 0, "result");
    expect_near(x.grad(), std::vector<double>(36, 1), 0, "gradient of the input");
    expect_near(w.grad(), {0, 0, 0, 0, 36, 0, 0, 0, 0}, 0, "gradient of the weight");
  }
}

TEST(FarWindowsOnGpu, PoolsWithKernelsOfTwoToThe32AndHalfAsMuchPadding) {
  const int64_t kernel = int64_t{1} << 32;
  const Tensor x = ones({1, 1, 6, 6}).to(kGpu).requires_grad_();
  const Tensor largest = max_pool2d(x, kernel, 1, kernel / 2),
               mean = avg_pool2d(x, kernel, 1, kernel / 2);
  expect_near(largest, std::vector<double>(49, 1), 0, "maximum");
  expect_near(mean.mul(0x1p64), std::vector<double>(49, 36), 1e-6, "average");
  (largest.sum() + mean.mul(0x1p64).sum()).backward();
  std::vector<double> want(36, 49);
  want[0] += 49;
  expect_near(x.grad(), want, 1e-6, "gradient");
  expect_near(max_pool2d(ones({1, 1, 5, 5}).to(kGpu), 2, INT64_MAX, 0, 1, true), {1}, 0,
              "rounded up");
}

}  // namespace
}  // namespace ramet::kernels
