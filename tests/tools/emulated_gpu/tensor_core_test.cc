// The emulated instructions of runtime/cuda/ptx.h, in the kernel that they exist for.
#include "tests/tools/emulated_gpu/tensor_core.h"

#include <array>
#include <cmath>

#include "runtime/cuda/ptx.h"
#include "tests/tools/emulated_gpu/emulated_devices.h"

namespace ramet::testing {
namespace {

/// The largest error of a product; infinite where a result is NaN.
double worst_error(Forgotten forgotten, int m, int n, int k) {
  const auto drawn_a = uniform(size_t(m * k), 1), drawn_b = uniform(size_t(k * n), 2);
  const std::vector<__nv_bfloat16> a(drawn_a.begin(), drawn_a.end());
  const std::vector<__nv_bfloat16> b(drawn_b.begin(), drawn_b.end());
  DeviceArray<__nv_bfloat16> da(a), db(b);
  DeviceArray<float> dc{size_t(m * n)};
  EXPECT_CUDA(tensor_core_matmul(forgotten, da, db, dc, m, n, k, nullptr), cudaSuccess);
  const auto c = dc.host();
  double worst = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double expected = 0;
      for (int t = 0; t < k; ++t)
        expected += double(float(a[size_t(i * k + t)])) * double(float(b[size_t(t * n + j)]));
      const double error = std::fabs(double(c[size_t(i * n + j)]) - expected);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  return worst;
}

TEST(TensorCore, Matmul) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    for (const auto& [m, n, k] :
         {std::array<int, 3>{64, 64, 64}, {70, 88, 104}, {33, 136, 40}, {1, 8, 8}})
      EXPECT_LT(worst_error(Forgotten::Nothing, m, n, k), 1e-4)
          << schedule.name << " " << m << " " << n << " " << k;
  }
}

// Poison makes the missing wait and the buffer that is refilled too early visible in every run.
TEST(TensorCore, ForgottenSynchronisationIsNaN) {
  RAMET_SKIP_IF_CHECKED();
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    EXPECT_EQ(worst_error(Forgotten::Wait, 64, 64, 96), INFINITY) << schedule.name;
    EXPECT_EQ(worst_error(Forgotten::SecondBarrier, 64, 64, 96), INFINITY) << schedule.name;
  }
}

TEST(TensorCore, FaultsAreNamed) {
  Devices devices;
  ASSERT_CUDA(tensor_core_half_warp(nullptr), cudaSuccess);
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_NE(emulated::last_report().find("HALF A WARP"), std::string::npos);
  EXPECT_NE(emulated::last_report().find("tensor_core.cu:"), std::string::npos);
  ASSERT_CUDA(cudaDeviceReset(), cudaSuccess);
  DeviceArray<float> x(std::vector<float>(256, 1.0f));
  ASSERT_CUDA(tensor_core_misaligned(x, nullptr), cudaSuccess);
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
  EXPECT_NE(emulated::last_report().find("MISALIGNED"), std::string::npos);
  EXPECT_NE(emulated::last_report().find("tensor_core.cu:"), std::string::npos);
}

// Within half a unit in the last place of the C library's value in double precision, over all
// binades. Infinities, zeros and subnormal numbers are as PTX ISA has them ("ex2"). The result is
// the same to the last bit on every machine (Note [Approximations]).
TEST(TensorCore, PowerOfTwo) {
  uint64_t digest = 0;
  double worst = 0;
  for (uint32_t sign : {0u, 0x80000000u})
    for (uint32_t bits = sign; bits < sign + 0x43000000u; bits += 1009) {
      const float x = emulated::float_of(bits), got = ptx::ex2(x);
      digest = (digest ^ emulated::bits_of(got)) * 0x100000001b3u;
      if (x < -126) {
        EXPECT_EQ(got, 0) << x;
        continue;
      }
      int exponent;
      const double want = std::exp2(static_cast<double>(x));
      std::frexp(want, &exponent);
      worst = std::max(worst, std::fabs(got - want) / std::ldexp(1.0, exponent - 24));
    }
  EXPECT_LE(worst, 0.5 + 1e-6);
  EXPECT_EQ(digest, 0xf17e4221e629d1a5u);
  EXPECT_EQ(ptx::ex2(-INFINITY), 0);
  EXPECT_FALSE(std::signbit(ptx::ex2(-INFINITY)));
  EXPECT_EQ(ptx::ex2(-126.0f), 0x1p-126f);
  EXPECT_EQ(ptx::ex2(std::nextafter(-126.0f, -127.0f)), 0);
  for (float one : {0.0f, -0.0f, 1e-40f, -1e-40f}) EXPECT_EQ(ptx::ex2(one), 1);
  EXPECT_EQ(ptx::ex2(128), INFINITY);
  EXPECT_EQ(ptx::ex2(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(ptx::ex2(NAN)));
}

}  // namespace
}  // namespace ramet::testing
