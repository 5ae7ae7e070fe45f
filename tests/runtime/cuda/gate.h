// Work on a GPU that ends when it is let go.
#pragma once
#include <atomic>
#include <thread>

#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"

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

}  // namespace ramet::testing
