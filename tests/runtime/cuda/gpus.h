// GPUs under the device layer, for one test. They are emulated ones, or in a build for real GPUs as
// many logical devices on the real ones.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/library.h"
#if RAMET_GPU_EMULATED
#include "tools/emulated_gpu/runtime/control.h"
/// What only emulated GPUs can do: skips the test on real ones, with the reason.
#define RAMET_EMULATED_ONLY(reason) (void)0
#else
#define RAMET_EMULATED_ONLY(reason) GTEST_SKIP() << "for emulated GPUs only: " << reason

// Settings of emulated GPUs for tests. Real GPUs use only the number of devices.
namespace ramet::emulated {

enum class StreamMode { Async, Eager, Lazy, Random };

struct Settings {
  int devices = 1;
  std::vector<size_t> memory;
  size_t driver_memory = 0;
  int driver_version = 0, nccl_version = 0;
  uint64_t stream_seed = 0;
  bool memory_pools = true, driver_waits = false;
  StreamMode streams = StreamMode::Async;
  bool all_peers = true;
  std::vector<std::pair<int, int> > broken_peers, lost_peers;
  int timeout_ms = 0;
};
inline bool has_context(int) { return false; }

}  // namespace ramet::emulated
#endif

namespace ramet::testing {

inline const Device kCpu(kCPU, 0), kGpu(kCUDA, 0), kSecond(kCUDA, 1);

#if RAMET_GPU_EMULATED
inline emulated::Settings gpu_settings(int devices = 2) {
  emulated::Settings s = emulated::settings_from_environment();
  s.devices = devices;
  s.memory = {size_t{64} << 20};
  s.workers = 2;
  s.timeout_ms = 2000;
  s.print_reports = false;
  return s;
}

/// Devices with these settings and this RAMET_CUDA_DEVICES (null: not set); afterwards those of the
/// environment again.
class Gpus {
 public:
  explicit Gpus(const emulated::Settings& settings = gpu_settings(), const char* list = nullptr) {
    cuda::shutdown();
    emulated::restart(settings);
    if (list) setenv("RAMET_CUDA_DEVICES", list, 1);
    else unsetenv("RAMET_CUDA_DEVICES");
  }
  ~Gpus() {
    cuda::shutdown();
    unsetenv("RAMET_CUDA_DEVICES");
    emulated::restart(emulated::settings_from_environment());
  }
  Gpus(const Gpus&) = delete;
};
#else
inline emulated::Settings gpu_settings(int devices = 2) {
  emulated::Settings s;
  s.devices = devices;
  return s;
}

inline int cards() {
  int found = 0;
  if (cudaGetDeviceCount(&found) != cudaSuccess) (void)cudaGetLastError();
  return found;
}

class Gpus {
 public:
  explicit Gpus(const emulated::Settings& settings = gpu_settings(), const char* list = nullptr) {
    cuda::shutdown();
    const char* before = std::getenv(kName);
    had_ = before != nullptr;
    if (had_) before_ = before;
    const int found = cards();
    std::string each;
    for (int k = 0; k < settings.devices; ++k)
      each += (k ? "," : "") + std::to_string(found > 0 ? k % found : 0);
    setenv(kName, list ? list : each.c_str(), 1);
  }
  ~Gpus() {
    cuda::shutdown();
    if (had_) setenv(kName, before_.c_str(), 1);
    else unsetenv(kName);
  }
  Gpus(const Gpus&) = delete;

 private:
  static constexpr const char* kName = "RAMET_CUDA_DEVICES";
  bool had_ = false;
  std::string before_;
};
#endif

template <class F> std::string message_of(const F& f) {
  try {
    f();
  } catch (const std::exception& e) { return e.what(); }
  return "no exception";
}

#define EXPECT_MESSAGE(statement, part)                                          \
  do {                                                                           \
    const std::string what = ::ramet::testing::message_of([&] { statement; });   \
    EXPECT_NE(what.find(part), std::string::npos) << "the message is: " << what; \
  } while (0)

}  // namespace ramet::testing
