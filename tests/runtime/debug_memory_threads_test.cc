// RAMET_DEBUG_MEMORY: freed blocks are filled, data pointers of another device's memory are refused
// on its workers.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "runtime/base/config.h"
#include "runtime/devices/devices.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/debug_memory.h"
#include "runtime/memory/pool.h"
#include "runtime/tensor/tensor_base.h"
#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

// Before the library's first allocation, which asks once.
[[maybe_unused]] const int g_set = setenv("RAMET_DEBUG_MEMORY", "1", 1);
const Device kHere(kCPU, 0), kOther(kCPU, 1);

TEST(DebugMemory, IsOn) {
  EXPECT_TRUE(debug_memory());
  EXPECT_NE(runtime_config().find("memory checks: on"), std::string::npos);
}

TEST(DebugMemory, BadValueIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own: asked once
  const auto with = [](const char* text) {
    setenv("RAMET_DEBUG_MEMORY", text, 1);
    try {
      std::printf("%d", debug_memory());
    } catch (const Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::exit(2);
    }
    std::exit(0);
  };
  EXPECT_EXIT(with("yes"), ::testing::ExitedWithCode(2),
              "RAMET_DEBUG_MEMORY.*got \"yes\", expected 0 or 1");
}

// Three elements of a float tensor of n elements (first, middle, last), read after a free on this
// thread or on another one.
std::vector<float> read_after_free(int64_t n, bool elsewhere) {
  TensorBase t = TensorBase::empty({n}, kFloat, kHere);
  auto* p = static_cast<volatile float*>(t.ptr());
  for (int64_t i = 0; i < n; ++i) p[i] = 1;
  if (elsewhere) std::thread([&] { t = TensorBase(); }).join();
  else t = TensorBase();
  return {p[0], p[n / 2], p[n - 1]};
}

TEST(DebugMemory, FreedBlocksAreFilled) {
  if (pool::kPassThrough)
    GTEST_SKIP() << "this sanitizer reports the read itself (autograd/use_after_free_test)";
  // inside the implementation's block, from a size class, from the arena
  for (const int64_t n : {4, 1000, 100000, 3000000})
    for (const bool elsewhere : {false, true})
      for (const float v : read_after_free(n, elsewhere)) EXPECT_TRUE(std::isnan(v)) << n;
  empty_cache();
}

std::string error_on_worker(const TensorBase& t) {
  std::string text;
  devices::wait(devices::post(kOther, [&] {
    try {
      detail::check_raw_access(t);
    } catch (const Error& e) { text = e.what(); }
  }));
  return text;
}

TEST(DebugMemory, RawReadsOnAWorker) {
  const TensorBase here = TensorBase::empty({2, 3}, kFloat, kHere),
                   there = TensorBase::empty({2, 3}, kFloat, kOther);
  EXPECT_EQ(error_on_worker(there), "");
  EXPECT_EQ(error_on_worker(here),
            "[data_ptr] raw read of another device's memory: got float32[2, 3] on cpu in code that "
            "runs on cpu:1, expected a tensor of that device; to() makes a copy");
  // This thread is the host's.
  detail::check_raw_access(here);
  detail::check_raw_access(there);
}

}  // namespace
}  // namespace ramet
