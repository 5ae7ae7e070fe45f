// What the emulated GPU notices without any checker, and how its reports read. A block that has
// failed leaves the device with an error that only a reset takes away.
#include <cmath>

#include "tests/tools/emulated_gpu/emulated_devices.h"
#include "tests/tools/emulated_gpu/kernels.h"
#include "tests/tools/emulated_gpu/planted.h"

namespace ramet::testing {
namespace {

class Faults : public ::testing::Test {
 protected:
  /// The launch is legal, the kernel is not: `code`, and every one of `texts` in the report.
  void expect_fault(cudaError_t launched, const char* code, const std::vector<std::string>& texts) {
    EXPECT_CUDA(launched, cudaSuccess);
    EXPECT_STREQ(cudaGetErrorName(cudaDeviceSynchronize()), code);
    for (const std::string& text : texts)
      EXPECT_NE(emulated::last_report().find(text), std::string::npos)
          << "no \"" << text << "\" in: " << emulated::last_report();
    // Sticky: it stays for every later call, of every kind.
    void* memory = nullptr;
    EXPECT_STREQ(cudaGetErrorName(cudaMalloc(&memory, 4)), code);
    EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), code);
    EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), code);
    EXPECT_CUDA(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(emulated::last_report(), "");
    expect_usable();
  }

  /// Fibers that were abandoned and devices that were reset are as good as new.
  void expect_usable() {
    DeviceArray<float> x(std::vector<float>(64, 1.0f)), y{64};
    EXPECT_CUDA(softmax<float>(x, y, 1, 64, nullptr), cudaSuccess);
    for (const float value : y.host()) EXPECT_FLOAT_EQ(value, 1.0f / 64);
  }

  float* memory() {
    float* x = nullptr;
    EXPECT_CUDA(cudaMalloc(&x, 4096), cudaSuccess);
    return x;
  }

  Devices devices_;
};

TEST_F(Faults, DivergentBarrier) {
  expect_fault(planted_divergent_barrier(memory(), nullptr), "cudaErrorLaunchFailure",
               {"[emulated CUDA] kernel ", "divergent_barrier_kernel", "<<<(1,1,1), (64,1,1), 0>>>",
                "on cuda:0, block (0,0,0): DIVERGENT BARRIER", "thread (32,0,0) is at",
                "planted.cu:", "while thread (0,0,0) waits at planted.cu:"});
}

TEST_F(Faults, Deadlock) {
  expect_fault(planted_deadlock(memory(), nullptr), "cudaErrorLaunchFailure",
               {"deadlock_kernel", "DEADLOCK, no thread of the block can go on",
                "32 thread(s) at __syncthreads() at planted.cu:", "first (16,0,0), last (63,0,0)",
                "32 thread(s) at a warp primitive with mask 0xffffffff at planted.cu:",
                "first (0,0,0), last (47,0,0)"});
}

TEST_F(Faults, ShuffleOfAnAbsentLane) {
  expect_fault(planted_shuffle_of_absent_lane(memory(), nullptr), "cudaErrorLaunchFailure",
               {"absent_lane_kernel", "BAD SHUFFLE", "planted.cu:", "thread (32,0,0)"});
}

TEST_F(Faults, ShuffleOutsideTheMask) {
  expect_fault(planted_shuffle_outside_mask(memory(), nullptr), "cudaErrorLaunchFailure",
               {"BAD SHUFFLE", "reads a lane that is not in the mask"});
}

TEST_F(Faults, MaskWithoutTheCaller) {
  expect_fault(planted_foreign_mask(memory(), nullptr), "cudaErrorLaunchFailure",
               {"BAD MASK: thread (16,0,0)", "with mask 0x0000ffff, which lacks its own lane"});
}

TEST_F(Faults, DivergentWarpPrimitive) {
  expect_fault(
      planted_divergent_shuffle(memory(), nullptr), "cudaErrorLaunchFailure",
      {"DIVERGENT WARP PRIMITIVE: thread (1,0,0)", "meets lanes that wait in another one"});
}

TEST_F(Faults, Assert) {
  std::vector<int> values(64, 1);
  values[41] = 10;
  DeviceArray<int> x(values);
  expect_fault(planted_assert(x, nullptr), "cudaErrorAssert",
               {"assertion failed: x[threadIdx.x] < 10 at planted.cu:", "thread (41,0,0)"});
}

TEST_F(Faults, Trap) {
  expect_fault(planted_trap(nullptr), "cudaErrorLaunchFailure",
               {"__trap() at planted.cu:", "thread (3,0,0)"});
}

// One device's fault is not another's.
TEST_F(Faults, OtherDevicesGoOn) {
  ASSERT_CUDA(planted_trap(nullptr), cudaSuccess);
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  expect_usable();
}

double worst_error(Missing missing) {
  const size_t n = 32;
  const auto a = uniform(n * n, 1), b = uniform(n * n, 2);
  DeviceArray<float> da(a), db(b), dc{n * n};
  EXPECT_CUDA(planted_matmul(missing, da, db, dc, nullptr), cudaSuccess);
  const auto c = dc.host();
  double worst = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      double expected = 0;
      for (size_t k = 0; k < n; ++k) expected += double(a[i * n + k]) * double(b[k * n + j]);
      const double error = std::fabs(double(c[i * n + j]) - expected);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  return worst;
}

// Note [Greedy] of worker.h: not luck, but every time.
TEST(MissingBarrier, GivesWrongNumbersUnderEverySchedule) {
  RAMET_SKIP_IF_CHECKED();
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    EXPECT_LT(worst_error(Missing::Nothing), 1e-5) << schedule.name;
    EXPECT_GT(worst_error(Missing::FirstBarrier), 0.1) << schedule.name;
    EXPECT_GT(worst_error(Missing::SecondBarrier), 0.1) << schedule.name;
  }
}

TEST(UnwrittenMemory, IsNaN) {
  RAMET_SKIP_IF_CHECKED();
  Devices devices;
  DeviceArray<float> x{128}, fresh{64};
  ASSERT_CUDA(planted_uninitialised_shared(x, nullptr), cudaSuccess);
  const auto shared = x.host();
  for (size_t i = 0; i < 128; ++i) EXPECT_EQ(std::isnan(shared[i]), i == 64 + 58) << i;
  ASSERT_CUDA(planted_uninitialised_global(x, fresh, nullptr), cudaSuccess);
  const auto global = x.host();
  for (size_t i = 0; i < 64; ++i) EXPECT_TRUE(std::isnan(global[i])) << i;
}

#if defined(RAMET_EMULATED_ASAN)

using Overruns = ::testing::Test;

TEST(Overruns, AreSeenByAddressSanitizer) {
  // The death test's child must not have threads of the parent's to wait for.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [](auto kernel, int argument) {
    Devices devices;
    DeviceArray<float> x{1024};
    if constexpr (std::is_invocable_v<decltype(kernel), float*, int, cudaStream_t>)
      (void)kernel(x, argument, nullptr);
    else (void)kernel(x, nullptr);
    (void)cudaDeviceSynchronize();
  };
  EXPECT_DEATH(run(planted_dynamic_overrun, 0), "use-after-poison");
  EXPECT_DEATH(run(planted_static_overrun, 1),
               "global-buffer-overflow|planted.cu.*insufficient space for an object");
  EXPECT_DEATH(run(planted_global_overrun, 0), "heap-buffer-overflow");
}

#endif

}  // namespace
}  // namespace ramet::testing
