// Work on a GPU that ends when a test opens the gate.
#pragma once
#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "tests/runtime/cuda/gpus.h"

#if RAMET_GPU_EMULATED
#include "tools/emulated_gpu/checker/checks.h"
/// For tests in which something runs while a gate is closed.
#define RAMET_SKIP_IF_ONE_AT_A_TIME()       \
  if (ramet::emulated::checks().grid_begin) \
  GTEST_SKIP() << "under the checker one operation runs at a time, on whichever device"
#else
#define RAMET_SKIP_IF_ONE_AT_A_TIME() (void)0
#endif

namespace ramet::testing {

/// Host code among the device's kernels.
inline void queue(int device, void (*work)(void*), void* data) {
  cuda::DeviceState& state = cuda::device_state(device, "test");
  const cuda::CardGuard card("test", state);
  RAMET_CUDA("test", device,
             cudaLaunchHostFunc(state.stream(cuda::Queue::kCompute, "test"), work, data));
}

/// queue(device, Gate::wait, &gate): until the gate is open.
struct Gate {
  std::atomic<bool> open{false}, passed{false};
  static void wait(void* gate) {
    auto& g = *static_cast<Gate*>(gate);
    while (!g.open) std::this_thread::yield();
    g.passed = true;
  }
};

/// Opens the gate after 100 ms: a caller that does not wait for the work after it finds it not
/// passed.
class OpensLater {
 public:
  explicit OpensLater(Gate& gate)
      : thread_([&gate] {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          gate.open = true;
        }) {}
  ~OpensLater() { thread_.join(); }
  OpensLater(const OpensLater&) = delete;

 private:
  std::thread thread_;
};

}  // namespace ramet::testing
