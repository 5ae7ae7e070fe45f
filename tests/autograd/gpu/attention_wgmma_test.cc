// The attention body with wgmma and bulk copies, compared with the whole matrix of scores in
// float64 and with the body with mma.sync. Of real GPUs those of compute capability 9.0 run it.
#include <cmath>
#include <string>
#include <utility>

#include "runtime/cuda/gpu.h"
#include "tests/autograd/gpu/attention_check.h"

namespace ramet::kernels {
namespace {

constexpr AttentionBody kWgmma = AttentionBody::kWgmma;

int capability() {
  int major = 0, minor = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), cudaSuccess);
  return major * 10 + minor;
}
#define RAMET_NEEDS_HOPPER() \
  if (capability() != 90)    \
  GTEST_SKIP() << "for cards of compute capability 9.0 only: got " << capability() / 10. << "\n"

TEST(AttentionByWgmma, AsInDoublePrecision) {
  RAMET_NEEDS_HOPPER();
  for (ScalarType t : {kHalf, kBFloat16})
    for (bool causal : {false, true}) {
      check({1, 1, 1, 1, 64, t, causal, kWgmma});
      check({2, 3, 70, 130, 64, t, causal, kWgmma});
      check({1, 1, 130, 70, 128, t, causal, kWgmma});
    }
}

// Several blocks of rows, tiles that all rows use whole, and both stages more than once. Some
// warpgroups use nothing of a block's last tiles, or have no rows.
TEST(AttentionByWgmma, ManyTiles) {
  RAMET_NEEDS_HOPPER();
  check({1, 1, 70, 660, 64, kBFloat16, false, kWgmma});
  check({1, 1, 330, 350, 64, kHalf, true, kWgmma});
  check({1, 1, 140, 530, 128, kHalf, false, kWgmma});
  check({1, 1, 270, 270, 128, kBFloat16, true, kWgmma});
  check({1, 1, 200, 129, 128, kBFloat16, true, kWgmma});
}

// The bodies take different numbers of keys at once, so they round their probabilities differently.
// The difference is half a unit of results below 2, and a few units of a float.
TEST(AttentionByWgmma, AsByMma) {
  RAMET_NEEDS_HOPPER();
  for (ScalarType t : {kHalf, kBFloat16})
    for (int64_t columns : {64, 128})
      for (bool causal : {false, true})
        for (const auto& [q_rows, k_rows] :
             {std::pair(1, 300), std::pair(64, 128), std::pair(193, 257), std::pair(300, 40)}) {
          SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(q_rows) + " x " +
                       std::to_string(k_rows) + " x " + std::to_string(columns) +
                       (causal ? " causal" : ""));
          Case c{2, 2, q_rows, k_rows, columns, t, causal, kWgmma, 0.2};
          const Forward a = forward_of(c);
          EXPECT_EQ(a.o, forward_of(c).o) << "not the same again";
          c.body = AttentionBody::kTensorCores;
          const Forward b = forward_of(c);
          for (size_t i = 0; i < a.o.size(); ++i)
            ASSERT_NEAR(a.o[i], b.o[i], t == kHalf ? 0x1p-11 : 0x1p-8) << i;
          for (size_t i = 0; i < a.log_sum.size(); ++i)
            ASSERT_NEAR(a.log_sum[i], b.log_sum[i], 1e-5) << i;
        }
}

// Rows of one operand with gaps between them. No kernel may read past the last row: the tail of a
// tile is zeros, not the next head.
TEST(AttentionByWgmma, NothingBeyondTheLastRow) {
  RAMET_NEEDS_HOPPER();
  constexpr int64_t kRows = 40, kColumns = 64;
  const auto with_nan = [&](int64_t seed) {  // rows kRows and on are NaN
    Tensor t = drawn({1, 2 * kRows, 1, kColumns}, kDouble, seed);
    for (int64_t i = kRows * kColumns; i < t.numel(); ++i) t.data_ptr<double>()[i] = NAN;
    return t.to(kBFloat16).to(kGpu);
  };
  const Tensor q = with_nan(1), k = with_nan(2), v = with_nan(3),
               o(TensorBase::empty({1, 1, kRows, kColumns}, kBFloat16, kGpu)),
               log_sum(TensorBase::empty(kRows, kFloat, kGpu));
  attention_forward(
      q.stream(), {apart(q), apart(k), apart(v), dense(o), log_sum.data_ptr(), nullptr, 1, 1, kRows,
                   kRows, kColumns, 0.2, kBFloat16, false, kWgmma});
  for (double x : numbers(o)) ASSERT_LE(std::fabs(x), 1);
  for (double x : numbers(log_sum)) ASSERT_LE(std::fabs(x), 20);
}

}  // namespace
}  // namespace ramet::kernels
