// Programs that end while GPUs have work and objects of the whole program hold their memory: with
// the exit code that they chose.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "nn/layers/basic/linear.h"
#include "parallel/apply/data_parallel.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/gpu.h"

namespace ramet {
namespace {

const Device kGpu(kCUDA, 0);
constexpr int kCode = 3;

void with_queued_work() {
  static Tensor t, pinned, host;
  static Event event;
  t = randn({1000, 100}).to(kGpu);
  for (int i = 0; i < 50; ++i) t = (t * 1.01f + 1).tanh();
  pinned = randn({100, 100}).pin_memory();
  host = t.to(TensorOptions(Device(kCPU, 0)), /*non_blocking=*/true);
  event.record(kGpu);
  std::exit(kCode);
}
void with_a_capture() {
  static Captured step([](const Tensor& x) { return (x * 2).tanh().sum(); });
  static Tensor x = randn({1000, 100}).to(kGpu), y;
  for (int k = 0; k < 20; ++k) y = step(x);
  std::exit(kCode);
}
void with_replicas() {
  static nn::Linear net(4, 3);
  net->to(kGpu);
  static Tensor y = nn::parallel::data_parallel(net, randn({8, 4}).to(kGpu),
                                                std::vector<Device>{kGpu, Device(kCUDA, 1)});
  y.sum().backward();
  std::exit(kCode);
}
void with_an_error_that_nobody_heard_of() {
  static Tensor w = randn({4, 2}).to(kGpu);
  static Tensor y = embedding(w, full({2}, 9, kLong).to(kGpu));
  std::exit(kCode);
}
void from_a_worker() {
  devices::post(kGpu, [] {
    const Tensor y = ones({3}).to(kGpu);
    std::exit(kCode);
  });
  std::this_thread::sleep_for(std::chrono::seconds(60));
  std::_Exit(1);
}

TEST(Exit, HasItsCode) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  setenv("RAMET_EMULATED_DEVICES", "2", 1);
  for (const char* mode : {"async", "lazy", "random:3"}) {
    SCOPED_TRACE(mode);
    setenv("RAMET_EMULATED_STREAMS", mode, 1);
    EXPECT_EXIT(with_queued_work(), ::testing::ExitedWithCode(kCode), "");
    EXPECT_EXIT(with_a_capture(), ::testing::ExitedWithCode(kCode), "");
    EXPECT_EXIT(with_replicas(), ::testing::ExitedWithCode(kCode), "");
    EXPECT_EXIT(with_an_error_that_nobody_heard_of(), ::testing::ExitedWithCode(kCode), "");
    EXPECT_EXIT(from_a_worker(), ::testing::ExitedWithCode(kCode), "");
  }
}

}  // namespace
}  // namespace ramet
