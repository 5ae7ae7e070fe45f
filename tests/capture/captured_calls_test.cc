// What a replay asks of CUDA's runtime: to launch its graphs, and nothing else.
#include <set>

#include "runtime/cuda/copies.h"
#include "tests/capture/training.h"
#include "tests/runtime/cuda/driver_calls.h"

namespace ramet {
namespace capture_tests {
namespace {

using Calls = std::map<std::string, uint64_t>;

TEST(CapturedCalls, NoneButLaunchesInAReplay) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const testing::Gpus one(testing::gpu_settings(1));
  Training run(Device(kCUDA, 0), Kind::kAdamW);
  Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  const auto [x, y] = run.batch(8);
  for (int i = 0; i < 3; ++i) step(x, y);
  ASSERT_EQ(step.counters().replays, 1u);
  Calls before = driver_calls();
  for (int i = 0; i < 5; ++i) step(x, y);
  EXPECT_EQ(driver_calls_since(before), Calls());
  EXPECT_EQ(step.counters().replays, 6u);
  // The counter counts: a copy to the host, and a capture.
  before = driver_calls();
  (void)step(x, y).item<float>();
  EXPECT_GE(driver_calls_since(before)["cudaMemcpyAsync to the host"], 1u);
  before = driver_calls();
  step(x.slice(0, 0, 4), y.slice(0, 0, 4));
  EXPECT_GE(driver_calls_since(before)["cudaGraphInstantiate"], 1u);
}

// Several GPUs have to wait for each other and to exchange data: events and copies from GPU to GPU,
// as many in each step. Nothing is made, allocated or freed, and the host does not wait.
TEST(CapturedCalls, OfSeveralGpusOnlyWhatOrdersAndCopies) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const testing::Gpus two(testing::gpu_settings(2));
#if !RAMET_GPU_EMULATED
  if (!cuda::direct_access(0, 1)) GTEST_SKIP() << "these cards do not reach each other";
#endif
  Training run(DataParallelOptions({Device(kCUDA, 0), Device(kCUDA, 1)}));
  Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  const auto [on_host, y] = run.batch(8);
  const Tensor x = on_host.to(run.home);
  for (int i = 0; i < 3; ++i) step(x, y);
  ASSERT_EQ(step.counters().replays, 1u);
  const auto calls_of_a_step = [&, &y = y] {
    const Calls before = driver_calls();
    const uint64_t waits = host_waits();
    step(x, y);
    EXPECT_EQ(host_waits(), waits);
    return driver_calls_since(before);
  };
  const Calls first = calls_of_a_step();
  const std::set<std::string> may{"cudaEventRecord", "cudaMemcpyPeerAsync", "cudaSetDevice",
                                  "cudaStreamWaitEvent"};
  for (const auto& [name, calls] : first) EXPECT_TRUE(may.count(name)) << name << ": " << calls;
  EXPECT_EQ(calls_of_a_step(), first);
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
