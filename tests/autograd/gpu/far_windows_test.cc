// Paddings, dilations, strides and kernels far larger than the image, on a GPU. No number wraps,
// and no kernel iterates over what lies outside. Positions have 64 bits, as images of more elements
// than a test has memory for need.
#include <functional>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "kernels/gpu/divisor.h"
#include "runtime/memory/allocator.h"
#include "tests/autograd/fuzz/fuzz_windows.h"
#include "tests/autograd/gpu/gpu_tensors.h"
#include "tests/autograd/gpu/wide_positions.h"

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

// Around powers of two, around multiples of the divisor, at the largest number.
template <class I> int64_t wrong_quotients() {
  constexpr int kBits = 8 * sizeof(I) - 1;
  constexpr I kMost = std::numeric_limits<I>::max();
  int64_t wrong = 0, looked_at = 0;
  uint64_t state = 1;
  const auto drawn_number = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<I>((state >> 1 & static_cast<uint64_t>(kMost)) >> (state >> 58) % kBits);
  };
  for (int bit = 0; bit < kBits; ++bit)
    for (int by = -2; by <= 2; ++by) {
      const I d = static_cast<I>((I(1) << bit) + by);
      if (d < 1) continue;
      const Divisor<I> divisor(d);
      std::vector<I> dividends = {0,
                                  1,
                                  static_cast<I>(d - 1),
                                  d,
                                  kMost,
                                  static_cast<I>(kMost / d * d),
                                  static_cast<I>(kMost / d * d - 1)};
      for (int i = 0; i < 50; ++i) {
        const I n = drawn_number(), multiple = static_cast<I>(n / d * d);
        dividends.insert(dividends.end(),
                         {n, multiple, static_cast<I>(multiple > 0 ? multiple - 1 : 0)});
      }
      for (const I n : dividends) {
        I rest = n;
        ++looked_at;
        wrong += divisor(n) != n / d || divisor.take(rest) != n % d || rest != n / d;
      }
    }
  EXPECT_GT(looked_at, 4000);
  return wrong;
}
TEST(PositionsOnGpu, QuotientsByMultiplication) {
  EXPECT_EQ(wrong_quotients<int32_t>(), 0);
  EXPECT_EQ(wrong_quotients<int64_t>(), 0);
}

// What kernels compute in 32 bits and in 64 has the same bits: each row with both, in both layouts.
TEST(PositionsOnGpu, SameBitsInSixtyFourBits) {
  using Function = std::function<std::vector<Tensor>(const Tensor&)>;
  const auto gradients = [](const Tensor& y, std::vector<Tensor> of) {
    std::vector<Tensor> all =
        autograd::grad({y}, of, {drawn(y.sizes(), y.scalar_type(), 7).to(kGpu)});
    all.push_back(y.detach());
    return all;
  };
  const auto leaf = [](IntArrayRef sizes, ScalarType t) {
    return drawn(sizes, t, 3).to(kGpu).requires_grad_();
  };
  const std::vector<std::pair<const char*, Function>> rows = {
      {"convolution",
       [&](const Tensor& x) {
         const Tensor w = leaf({6, 4, 3, 2}, x.scalar_type()), b = leaf({6}, x.scalar_type());
         return gradients(conv2d(x, w, b, {2, 1}, {1, 2}, {1, 2}), {x, w, b});
       }},
      {"of two groups, in bands",
       [&](const Tensor& x) {
         const Tensor w = leaf({4, 2, 1, 1}, x.scalar_type()), b = leaf({4}, x.scalar_type());
         return gradients(conv2d(x, w, b, 1, 0, 1, 2), {x, w, b});
       }},
      {"batch_norm",
       [&](const Tensor& x) {
         const Tensor w = leaf({4}, x.scalar_type()), b = leaf({4}, x.scalar_type());
         return gradients(batch_norm(x, w, b, {}, {}, true, 0.1, 1e-3, true), {x, w, b});
       }},
      {"batch_norm_relu_max_pool2d",
       [&](const Tensor& x) {
         const Tensor w = leaf({4}, x.scalar_type()), b = leaf({4}, x.scalar_type());
         return gradients(batch_norm_relu_max_pool2d(x, w, b, {}, {}, true, 0.1, 1e-3), {x, w, b});
       }},
      {"max_pool2d",
       [&](const Tensor& x) {
         return gradients(max_pool2d(x, {3, 2}, {2, 1}, {1, 0}, {1, 2}), {x});
       }},
      {"avg_pool2d",
       [&](const Tensor& x) {
         return gradients(avg_pool2d(x, {3, 2}, {2, 1}, {1, 1}), {x});
       }},
      {"adaptive_avg_pool2d",
       [&](const Tensor& x) {
         return gradients(adaptive_avg_pool2d(x, {5, 30}), {x});
       }},
      {"strides", [&](const Tensor& x) {
         return std::vector<Tensor>{x.detach().permute({3, 1, 0, 2}).contiguous(),
                                    x.detach().permute({2, 0, 3, 1}).exp(), x.detach().sum({0, 2})};
       }}};
  for (ScalarType t : {kFloat, kDouble})
    for (bool channels_last : {false, true}) {
      Tensor x = drawn({2, 4, 25, 27}, t, 1).to(kGpu);
      if (channels_last) {
        const Tensor planes = x;
        x = autograd::empty_channels_last(2, 4, 25, 27, t, kGpu);
        x.copy_(planes);
      }
      x.requires_grad_();
      for (const auto& [name, f] : rows) {
        SCOPED_TRACE(std::string(name) + " " + name_of(t) +
                     (channels_last ? " channels last" : ""));
        if (std::string(name) == "batch_norm_relu_max_pool2d" && t == kDouble) continue;
        const std::vector<Tensor> narrow = f(x);
        const WidePositions wide;
        const std::vector<Tensor> got = f(x);
        ASSERT_EQ(got.size(), narrow.size());
        for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(numbers(got[i]), numbers(narrow[i])) << i;
      }
    }
}

}  // namespace
}  // namespace ramet::kernels
