// What tests of the emulated GPUs share: settings for one test, device memory with an owner, and
// schedules. Every result must be the same under all schedules.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/runtime/control.h"

#define EXPECT_CUDA(call, code) EXPECT_STREQ(cudaGetErrorName(call), #code)
#define ASSERT_CUDA(call, code) ASSERT_STREQ(cudaGetErrorName(call), #code)

/// For tests of what a mistake does when it is not reported.
#define RAMET_SKIP_IF_CHECKED()             \
  if (ramet::emulated::checks().grid_begin) \
  GTEST_SKIP() << "the checker reports this mistake: checker_test.cc"

namespace ramet::testing {

/// Few enough workers for a shared machine, quick deadlocks, no reports on the terminal.
inline emulated::Settings test_settings() {
  emulated::Settings s = emulated::settings_from_environment();
  s.devices = 2;
  s.memory = {size_t(64) << 20};
  s.workers = 2;
  s.timeout_ms = 200;
  s.print_reports = false;
  return s;
}

/// Devices with these settings, and those of the environment again afterwards.
class Devices {
 public:
  explicit Devices(const emulated::Settings& settings = test_settings()) {
    emulated::restart(settings);
  }
  ~Devices() { emulated::restart(emulated::settings_from_environment()); }
};

inline cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  EXPECT_CUDA(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  return stream;
}
inline cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  EXPECT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  return event;
}

struct Schedule {
  std::string name;
  emulated::Settings settings;
};

/// Stream modes and thread orders; the random ones twice.
inline std::vector<Schedule> schedules() {
  using emulated::StreamMode, emulated::ThreadOrder;
  std::vector<Schedule> list;
  const auto add = [&](const char* name, StreamMode streams, ThreadOrder threads, uint64_t seed) {
    emulated::Settings s = test_settings();
    s.streams = streams;
    s.threads = threads;
    s.stream_seed = s.thread_seed = seed;
    list.push_back({name, s});
  };
  add("async forward", StreamMode::Async, ThreadOrder::Forward, 1);
  add("async reverse", StreamMode::Async, ThreadOrder::Reverse, 1);
  add("eager reverse", StreamMode::Eager, ThreadOrder::Reverse, 1);
  add("lazy forward", StreamMode::Lazy, ThreadOrder::Forward, 1);
  add("random 1", StreamMode::Random, ThreadOrder::Random, 1);
  add("random 2", StreamMode::Random, ThreadOrder::Random, 2);
  return list;
}

template <class T> class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    EXPECT_CUDA(cudaMalloc(&data_, count * sizeof(T)), cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    EXPECT_CUDA(cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
                cudaSuccess);
  }
  ~DeviceArray() { (void)cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;

  operator T*() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> copy(count_);
    EXPECT_CUDA(cudaMemcpy(copy.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
                cudaSuccess)
        << emulated::last_report();
    return copy;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

/// Floats of a device's pool, zeros.
class PoolMemory {
 public:
  PoolMemory(int device, size_t count) : device_(device) {
    on_it([&] {
      EXPECT_CUDA(cudaMallocAsync(&data_, count * sizeof(float), nullptr), cudaSuccess);
      EXPECT_CUDA(cudaMemset(data_, 0, count * sizeof(float)), cudaSuccess);
    });
  }
  ~PoolMemory() {
    on_it([&] { (void)cudaFreeAsync(data_, nullptr); });
  }
  PoolMemory(const PoolMemory&) = delete;

  operator float*() const { return static_cast<float*>(data_); }
  void open_to(int peer) const {
    cudaMemPool_t pool = nullptr;
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = peer;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    EXPECT_CUDA(cudaDeviceGetDefaultMemPool(&pool, device_), cudaSuccess);
    EXPECT_CUDA(cudaMemPoolSetAccess(pool, &access, 1), cudaSuccess);
  }

 private:
  template <class F> void on_it(const F& f) const {
    int before = 0;
    EXPECT_CUDA(cudaGetDevice(&before), cudaSuccess);
    EXPECT_CUDA(cudaSetDevice(device_), cudaSuccess);
    f();
    EXPECT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_CUDA(cudaSetDevice(before), cudaSuccess);
  }

  int device_;
  void* data_ = nullptr;
};

inline std::vector<float> uniform(size_t count, unsigned seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(-scale, scale);
  std::vector<float> values(count);
  for (float& value : values) value = draw(generator);
  return values;
}

}  // namespace ramet::testing
