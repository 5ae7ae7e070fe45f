// Emulated GPUs under the device layer, for one test.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/cuda/emulated/control.h"
#include "runtime/cuda/library.h"

namespace ramet::testing {

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
