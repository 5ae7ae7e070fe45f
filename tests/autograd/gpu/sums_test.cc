// Long sums on a GPU that are cut into segments: the CPU's values, whatever is left over at their
// ends, and the same bits again.
#include <cmath>
#include <limits>

#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "runtime/cuda/device_state.h"
#include "tests/autograd/gpu/gpu_tensors.h"

namespace ramet::kernels {
namespace {

double tolerance_of(ScalarType t) {
  return t == kDouble ? 1e-12 : t == kFloat ? 2e-6 : t == kHalf ? 1e-3 : t == kBFloat16 ? 8e-3 : 0;
}
uint64_t most_threads() { return cuda::device_state(0, "test").launches().most_threads; }

TEST(SumsOnGpu, Dot) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16, kInt, kLong})
    for (int64_t n : {0, 1, 300, 4096, 4097, 12288, 50001}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(n));
      if (t == kHalf && n > 5000) continue;  // more than it can hold
      // Of both signs; small whole numbers among integers.
      const auto operand = [&](int64_t seed) { return drawn({2 * n}, kFloat, seed).mul(9).to(t); };
      const Tensor a = operand(1).slice(0, 0, 2 * n, 2), b = operand(2).slice(0, 0, n),
                   size = a.to(kDouble).abs().dot(b.to(kDouble).abs());
      const Tensor there = a.to(kGpu), with = b.to(kGpu);
      cuda::device_state(0, "test").forget_launches();
      const Tensor y = there.dot(with);
      if (n > 4 * 4096) { EXPECT_GE(most_threads(), 1024u); }
      const double want = a.to(kDouble).dot(b.to(kDouble)).item<double>();
      EXPECT_NEAR(numbers(y)[0], want, tolerance_of(t) * std::max(1.0, size.item<double>()));
      EXPECT_EQ(numbers(there.dot(with)), numbers(y));
    }
}

TEST(SumsOnGpu, RunningSum) {
  const std::vector<std::vector<int64_t>> shapes = {{1024}, {1025},    {5000},      {2, 3000},
                                                    {3, 0}, {2500, 3}, {2, 1500, 2}};
  for (ScalarType t : {kFloat, kDouble, kBFloat16, kShort, kBool})
    for (const std::vector<int64_t>& sizes : shapes) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(sizes[0]));
      const int64_t dim = sizes.size() == 3 ? 1 : sizes.back() == 3 ? 0 : -1;
      const Tensor x = drawn(sizes, kFloat, 7).mul(9).to(t), there = x.to(kGpu);
      const std::vector<double> want = numbers((t == kBFloat16 ? x.to(kDouble) : x).cumsum(dim));
      expect_near(there.cumsum(dim), want, 4 * tolerance_of(t), "values");
      EXPECT_EQ(numbers(there.cumsum(dim)), numbers(there.cumsum(dim)));
      if (t != kDouble) continue;
      const auto gradient = [&](Device device) {  // sums from the end
        const Tensor leaf = x.to(device).detach().requires_grad_();
        leaf.cumsum(dim).mul(x.to(device)).sum().backward();
        return leaf.grad();
      };
      expect_near(gradient(kGpu), numbers(gradient(kHost)), 1e-11, "gradient");
    }
}

// A sum of ones is exact: what a segment adds twice, or leaves out, shows.
TEST(SumsOnGpu, EverySegmentCountsOnce) {
  const int64_t n = 5 * 1024 * 1024 + 5, line = 1024 * 1024 + 5;
  const Tensor one = ones({1}, TensorOptions(kLong).device(kGpu)), many = one.expand({n});
  EXPECT_EQ(many.dot(many).item<int64_t>(), n);
  const Tensor sums = ones({line}, TensorOptions(kBool).device(kGpu)).cumsum(0);
  EXPECT_TRUE(sums.eq(arange(1, line + 1, one.options())).all().item<bool>());
}

// In the first part of many, in the last, or in a part of its own; whichever way channels lie.
TEST(SumsOnGpu, MeansOfInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const Device device : {kHost, kGpu})
    for (const std::vector<int64_t>& sizes :
         std::vector<std::vector<int64_t>>{{8, 2}, {5000, 2}, {4, 2, 3}, {1000, 2, 5}})
      for (int64_t at : {int64_t{0}, sizes[0] - 1}) {
        SCOPED_TRACE(std::string(device == kGpu ? "GPU, " : "CPU, ") + std::to_string(sizes[0]) +
                     " of " + std::to_string(sizes.size()) + " dimensions, at " +
                     std::to_string(at));
        const Tensor on_host = drawn(sizes, kFloat, 3);
        on_host.narrow(0, at, 1).narrow(1, 0, 1).fill_(-inf);
        const Tensor x = on_host.to(device), mean = zeros({2}, TensorOptions(device)),
                     var = ones({2}, TensorOptions(device));
        batch_norm(x, {}, {}, mean, var, true, 0.25, 1e-3, true);
        EXPECT_EQ(numbers(mean)[0], -inf);
        EXPECT_TRUE(std::isfinite(numbers(mean)[1]));
        EXPECT_TRUE(std::isnan(numbers(var)[0]));
        EXPECT_TRUE(std::isfinite(numbers(var)[1]));
        // As LibTorch, which has it from the deviations.
        const Tensor both = std::get<1>(var_mean(x, {0}, 1, false));
        EXPECT_TRUE(std::isnan(numbers(both)[0]));
      }
}

}  // namespace
}  // namespace ramet::kernels
