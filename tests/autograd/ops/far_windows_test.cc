// Paddings, dilations, strides and kernels far larger than the image: taps outside of the image
// cost nothing, and no number wraps.
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "runtime/memory/allocator.h"
#include "tests/autograd/derivatives.h"
#include "tests/autograd/fuzz/fuzz_windows.h"

namespace ramet {
namespace {

const Device kHost(kCPU, 0);
constexpr int64_t kMost = INT64_MAX, k61 = int64_t{1} << 61, k62 = int64_t{1} << 62;

// A padding that no int64 holds; an even kernel has no middle.
TEST(FarWindows, PaddingsThatNoNumberHolds) {
  const Tensor x = ones({1, 1, 4}), w = ones({1, 1, 7}).requires_grad_();
  EXPECT_EQ(conv1d(x, ones({1, 1, 5}), {}, 1, "same", kMost).sum().item<double>(), 4);
  EXPECT_EQ(conv1d(x, ones({1, 1, 6}), {}, 1, "same", kMost).sum().item<double>(), 0);
  conv1d(x, w, {}, 1, "same", kMost).sum().backward();
  expect_values(w.grad(), {0, 0, 0, 4, 0, 0, 0}, 0);
}

TEST(FarWindows, ConvolutionsThatAreRefused) {
  const Tensor x = ones({1, 1, 6, 6}), w = ones({1, 1, 3, 3});
  EXPECT_ERROR_START(conv2d(x, w, {}, 1, 0, kMost),
                     "[conv2d] Calculated padded input size per channel: (6 x 6). Kernel size: "
                     "(more than 9223372036854775807 x more than 9223372036854775807). Kernel size "
                     "can't be greater");
  EXPECT_ERROR_START(conv2d(x, w, {}, 1, kMost),
                     "[conv2d] got a result of more than 9223372036854775807 x more than");
  EXPECT_ERROR_START(conv2d(x, w, {}, 1, k61),
                     "[empty] sizes: got [1, 1, 4611686018427387908, 4611686018427387908]");
  EXPECT_ERROR_START(
      conv2d(ones({1, 2, 6, 6}), ones({2, 2, 3, 3}), {}, 1, 0, 1, k62),
      "[conv2d] Given groups=4611686018427387904, expected weight to be divisible by");
}

// Sums of result, gradients of input, weight and bias, each times a cotangent: LibTorch's numbers.
TEST(FarWindows, ConvolutionsAsPyTorch) {
  struct Case {
    int64_t h, w, kernel, stride, padding, dilation, groups, oh, ow;
    double y, x, weight, bias;
  };
  const Case cases[] = {
      {5, 5, 3, 2, 6, 3, 2, 6, 6, -6.5421223344755, 6.28132993716136, 16.4042949188198,
       -0.359096395335925},
      {2, 2, 5, 1, 2, 1, 1, 2, 2, -6.13216171922599, 11.0722755172928, 4.42624698779095,
       -1.94667084745123},
      {3, 5, 3, 18, 40, 20, 2, 3, 3, 0.969101991748812, 0.988412485750274, -1.47836112511551,
       3.68569053206216},
  };
  for (const Case& c : cases)
    for (ScalarType t : {kDouble, kFloat}) {
      SCOPED_TRACE(detail::join(c.h, "x", c.w, " padding ", c.padding, " dilation ", c.dilation));
      const Tensor x = varied({2, 4, c.h, c.w}, 1).to(t).requires_grad_(),
                   w = varied({4, 4 / c.groups, c.kernel, c.kernel}, 2).to(t).requires_grad_(),
                   b = varied({4}, 3).to(t).requires_grad_();
      const Tensor y = conv2d(x, w, b, c.stride, c.padding, c.dilation, c.groups);
      ASSERT_EQ(y.sizes().vec(), (std::vector<int64_t>{2, 4, c.oh, c.ow}));
      y.backward(varied(y.sizes(), 4).to(t));
      const double tolerance = t == kDouble ? 1e-13 : 1e-6;
      const auto sum = [](const Tensor& of, int seed) {
        return of.to(kDouble).mul(varied(of.sizes(), seed)).sum();
      };
      expect_values(sum(y, 5), {c.y}, tolerance);
      expect_values(sum(x.grad(), 6), {c.x}, tolerance);
      expect_values(sum(w.grad(), 7), {c.weight}, tolerance);
      expect_values(sum(b.grad(), 8), {c.bias}, tolerance);
    }
}

TEST(FarWindows, ConvolutionsTakeNoMemoryForWhatTheyDoNotMeet) {
  // Bytes that f() may take, beyond what is held now.
  const auto within = [](int64_t bytes, const auto& f) {
    set_memory_limit(kHost, memory_stats(kHost).current + bytes);
    EXPECT_NO_THROW(f());
    set_memory_limit(kHost, 0);
  };
  for (ScalarType t : {kFloat, kDouble}) {
    SCOPED_TRACE(name_of(t));
    const int64_t size = static_cast<int64_t>(item_size(t));
    const Tensor x = ones({1, 1, 6, 6}, t).requires_grad_(),
                 w = ones({1, 1, 3, 3}, t).requires_grad_();
    for (int64_t far : {10000, 100000})
      within(8 << 20, [&] { conv2d(x, w, {}, 1, far, far).sum().backward(); });
    // The result has 2008 x 2008 numbers and one channel; 64 channels come in.
    const Tensor deep = ones({1, 64, 6, 6}, t).requires_grad_(),
                 one = ones({1, 64, 3, 3}, t).requires_grad_();
    const int64_t result = 2008 * 2008 * size;
    within(result + (8 << 20), [&] {
      NoGradGuard raw;
      conv2d(deep, one, {}, 1, 1002);
    });
    within(3 * result + (16 << 20), [&] { conv2d(deep, one, {}, 1, 1002).sum().backward(); });
    // Nine single taps: 2006 - 4 + 6 numbers a side.
    within(result + (8 << 20), [&] {
      NoGradGuard raw;
      EXPECT_EQ(conv2d(deep, one, {}, 1, 1501, 500).size(3), 2008);
    });
    within(3 * result + (16 << 20), [&] { conv2d(deep, one, {}, 1, 1501, 500).sum().backward(); });
  }
}

// Outputs further apart than the image is large: no kernel goes through the pixels between them.
TEST(FarWindows, AMillionTapsAndFewOutputs) {
  const Tensor x = ones({1, 1, 16}).requires_grad_(), w = ones({1, 1, 1000000}).requires_grad_();
  const Tensor y = conv1d(x, w, {}, 100000, 1000000);
  expect_values(y, {0, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16}, 0);
  y.sum().backward();
  expect_values(x.grad(), std::vector<double>(16, 10), 0);
  EXPECT_EQ(w.grad().sum().item<double>(), 160);
  EXPECT_EQ(w.grad().slice(2, 100000, 100016).sum().item<double>(), 16);
}

TEST(FarWindows, Draws) {
  for (bool pools : {false, true}) {
    int counts[3] = {};
    fuzz::check_tapes(2000, 60, [&](fuzz::Tape& tape) {
      const FarDraw what = pools ? check_far_pool(tape, kHost) : check_far_convolution(tape, kHost);
      ++counts[static_cast<int>(what)];
    });
    EXPECT_GT(counts[0], counts[1]);
    EXPECT_GT(counts[0], 4 * counts[2]);
  }
}

// ---- pools --------------------------------------------------------------------------------------

TEST(FarWindows, PoolsWithKernelsOfTwoToThe32AndHalfAsMuchPadding) {
  const int64_t kernel = int64_t{1} << 32;
  for (bool last : {false, true})
    for (ScalarType t : {kFloat, kDouble}) {
      SCOPED_TRACE(name_of(t));
      Tensor x = ones({1, 2, 6, 6}, t);
      x.select(2, 3).select(2, 4).fill_(9);
      if (last) x = x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
      x = x.detach().requires_grad_();
      const auto [y, index] = max_pool2d_with_indices(x, kernel, 1, kernel / 2);
      expect_values(y, std::vector<double>(98, 9), 0);
      expect_values(index, std::vector<double>(98, 3 * 6 + 4), 0);
      y.sum().backward();
      EXPECT_EQ(x.grad().sum().item<double>(), 98);
      EXPECT_EQ(x.grad().select(2, 3).select(2, 4).sum().item<double>(), 98);
      // 44 over 2^64 elements, over those in the image, over a given divisor.
      expect_values(avg_pool2d(x, kernel, 1, kernel / 2).mul(0x1p64), std::vector<double>(98, 44),
                    1e-6);
      expect_values(avg_pool2d(x, kernel, 1, kernel / 2, false, false),
                    std::vector<double>(98, 44 / 36.0), 1e-6);
      expect_values(avg_pool2d(x, kernel, 1, kernel / 2, false, true, 11),
                    std::vector<double>(98, 4), 1e-6);
      const Tensor dx = autograd::grad({avg_pool2d(x, kernel, {}, kernel / 2).sum()}, {x})[0];
      expect_values(dx.mul(0x1p64), std::vector<double>(72, 1), 1e-6);
    }
  // Twice as far, and the last window in the middle of the image.
  const Tensor x = varied({1, 1, 5, 5}, 5);
  expect_values(max_pool2d(x, kMost, k61, kMost / 2, 1, true).sum(), {4 * 1.04119806289673}, 1e-12);
  expect_values(avg_pool1d(ones({1, 1, 4}, kDouble), kMost, 1, kMost / 2).mul(0x1p63),
                std::vector<double>(4, 4), 1e-12);
  // An area of integers that no int64 holds: the quotient is 0.
  expect_values(avg_pool2d(ones({1, 1, 3, 3}, kLong), kernel, 1, kernel / 2),
                std::vector<double>(16, 0), 0);
  expect_values(avg_pool2d(full({1, 1, 1, 1}, INT64_MIN, kLong), 1, 1, 0, false, true, -1),
                {static_cast<double>(INT64_MIN)}, 0);
}

TEST(FarWindows, PoolsAsPyTorch) {
  const Tensor x = varied({1, 1, 5, 5}, 5);
  expect_values(
      avg_pool2d(x, 1001, 500, 500, true).mul(1e5),
      {-0.0458567282070755, -0.0908962077926389, -0.0908962077926389, -0.180172483169171});
  expect_values(avg_pool2d(x, 1001, 500, 500, true, false),
                std::vector<double>(4, -0.0183793950080872));
  expect_values(avg_pool2d(x, 1000, 1, 500).mul(1e5), std::vector<double>(36, -0.0459484875202179));
  expect_values(max_pool2d(x, 1001, 500, 500, 1, true), std::vector<double>(4, 1.04119806289673));
}

TEST(FarWindows, PoolsThatRoundUp) {
  const Tensor x = ones({1, 1, 5, 5});
  for (int64_t stride : {int64_t{5}, k62, kMost - 1, kMost}) {
    expect_values(max_pool2d(x, 2, stride, 0, 1, true), {1}, 0);
    expect_values(avg_pool2d(x, 2, stride, 0, true), {1}, 0);
    expect_values(max_pool1d(x.select(0, 0).select(0, 0), 2, stride, 0, 1, true), {1, 1, 1, 1, 1},
                  0);
  }
  EXPECT_ERROR_START(max_pool2d(x, 2, 1, 0, kMost, true),
                     "[max_pool2d] Given input size: (1x5x5). Calculated output size: (1x0x0)");
  EXPECT_ERROR_START(max_pool2d(x, 5, 1, kMost - 4, kMost / 2),
                     "[max_pool2d] padding: got 9223372036854775803 around");
}

// Extents of an expanded tensor, or of one without elements, may be anything.
TEST(FarWindows, InputsLargerThanMemory) {
  const Tensor line = ones({1, 1, 1}).expand({1, 1, k61 + 1}),
               none = zeros({0, 1, 4}).requires_grad_();
  const auto [y, index] = max_pool1d_with_indices(line, 2, k62, 0, k61);
  expect_values(y, {1}, 0);
  expect_values(index, {0}, 0);
  EXPECT_EQ(max_pool1d(none, 3, 1, k61, k61, true).numel(), 0);
  const Tensor w = ones({2, 1, 3}).requires_grad_();
  const Tensor z = conv1d(none, w, {}, 3, k61, k61);
  EXPECT_EQ(z.sizes().vec(), (std::vector<int64_t>{0, 2, 2}));
  z.sum().backward();
  expect_values(w.grad(), std::vector<double>(6, 0), 0);
  EXPECT_EQ(none.grad().sizes().vec(), (std::vector<int64_t>{0, 1, 4}));
  EXPECT_ERROR_START(adaptive_avg_pool1d(ones({1, 1, 4}), kMost / 4),
                     "[adaptive_avg_pool1d] output_size by the input's extent");
}

}  // namespace
}  // namespace ramet
