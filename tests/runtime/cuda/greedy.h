// Emulated GPUs with memory that other libraries want, too.
#pragma once
#include "tests/runtime/cuda/caching.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {

/// GPUs of 64 MiB for one test. What is freed stays cached, and a driver, cuBLASLt and NCCL find no
/// memory where not one MiB is free.
class GreedyGpus {
 public:
  static constexpr size_t kMiB = size_t{1} << 20, kCard = 64 * kMiB;
  explicit GreedyGpus(int devices, const char* list = nullptr) : gpus_(settings(devices), list) {}

 private:
  static emulated::Settings settings(int devices) {
    emulated::Settings s = gpu_settings(devices);
    s.driver_memory = kMiB;
    return s;
  }
  const Caching on_{"1"};
  const Gpus gpus_;
};

}  // namespace ramet::testing
