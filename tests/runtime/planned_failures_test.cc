// RAMET_FAIL_ALLOC: every allocation of a piece of work fails once; each failure is a named error
// and loses nothing.
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "runtime/memory/allocator.h"
#include "runtime/memory/pool.h"
#include "runtime/tensor/tensor_base.h"
#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

// Before the library's first allocation, which asks once.
[[maybe_unused]] const int g_set = setenv("RAMET_FAIL_ALLOC", "0", 1);
const Device kHere(kCPU, 0);

// Runs `work` with its first, second, ... allocation failing until it succeeds; returns how many
// failures that took.
int fail_everywhere(const std::function<void()>& work) {
  const int64_t held = memory_stats(kHere).current;
  for (int n = 1;; ++n) {
    pool::fail_allocation_after(static_cast<uint64_t>(n));
    try {
      work();
      EXPECT_EQ(pool::allocations_counted(), static_cast<uint64_t>(n - 1));
      pool::fail_allocation_after(0);
      return n - 1;
    } catch (const OutOfMemoryError& e) {
      EXPECT_NE(std::string(e.what()).find(
                    "[allocate] out of memory (planned by RAMET_FAIL_ALLOC): got a request of"),
                std::string::npos)
          << e.what();
    }
    pool::fail_allocation_after(0);
    EXPECT_EQ(memory_stats(kHere).current, held) << "failure " << n << " kept memory";
  }
}

TEST(PlannedFailures, BadNumberIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own: asked once
  const auto with = [](const char* text) {
    setenv("RAMET_FAIL_ALLOC", text, 1);
    try {
      pool::deallocate(pool::allocate(64), 64);
    } catch (const Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::exit(2);
    }
    std::exit(0);
  };
  for (const char* text : {"x", "-1", "3 "})
    EXPECT_EXIT(with(text), ::testing::ExitedWithCode(2),
                std::string("RAMET_FAIL_ALLOC.*got \"") + text + "\", expected a number");
}

TEST(PlannedFailures, AreOn) {
  EXPECT_TRUE(pool::failures_enabled());
  pool::fail_allocation_after(2);
  void* first = pool::allocate(64);
  EXPECT_ERROR(pool::allocate(64), OutOfMemoryError, "request of 64 bytes");
  void* third = pool::allocate(64);
  EXPECT_EQ(pool::allocations_counted(), 3u);
  pool::deallocate(first, 64);
  pool::deallocate(third, 64);
}

TEST(PlannedFailures, SmallTensor) {
  EXPECT_EQ(fail_everywhere([] { TensorBase::empty({2, 3}, kFloat, kHere); }), 1);  // one block
}

TEST(PlannedFailures, LargeTensor) {
  EXPECT_EQ(fail_everywhere([] { TensorBase::empty({1000}, kFloat, kHere); }), 2);
  EXPECT_EQ(fail_everywhere([] { TensorBase::empty({3 << 20}, kFloat, kHere); }), 2);
}

TEST(PlannedFailures, HighRankAndViews) {
  const std::vector<int64_t> ones(20, 1);
  EXPECT_EQ(fail_everywhere([&] {
              TensorBase a = TensorBase::empty(ones, kFloat, kHere);
              TensorBase b(a.shallow_impl());
              TensorBase c(a.view_impl(ones, ones, 0));
              TensorBase d = TensorBase::over(a.storage_impl(), 0, ones, ones, kFloat);
              TensorBase e = TensorBase::empty_strided(ones, ones, kDouble, kHere);
            }),
            10);
}

TEST(PlannedFailures, Storages) {
  int deleted = 0;
  char memory[8];
  EXPECT_EQ(fail_everywhere([&] {
              StorageImpl* a = StorageImpl::make(100, kHere);
              StorageImpl* b;
              try {
                b = StorageImpl::alias(a, a->data, 10, nullptr);
              } catch (...) {
                a->release();
                throw;
              }
              a->release();
              StorageImpl* c;
              try {
                c = StorageImpl::foreign(memory, sizeof memory, kHere, [&](void*) { ++deleted; });
              } catch (...) {
                b->release();
                throw;
              }
              b->release();
              c->release();
            }),
            3);
  EXPECT_EQ(deleted, 1);
}

}  // namespace
}  // namespace ramet
