// The emulated instructions of runtime/cuda/ptx.h, in the kernel that they exist for.
#include "tests/runtime/cuda/emulated/tensor_core.h"

#include <array>
#include <cmath>

#include "tests/runtime/cuda/emulated/emulated_devices.h"

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

}  // namespace
}  // namespace ramet::testing
