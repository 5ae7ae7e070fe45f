#include "runtime/memory/allocator.h"

#include <cstdint>

#include "runtime/memory/pool.h"
#include "runtime/memory/storage_impl.h"
#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

const Device kOne(kCPU, 1), kTwo(kCPU, 2);
constexpr size_t kMega = size_t{1} << 20;

TEST(Allocator, CountsPerDevice) {
  const MemoryStats before = memory_stats(kOne), other = memory_stats(kTwo);
  StorageImpl* a = StorageImpl::make(1000, kOne);
  StorageImpl* b = StorageImpl::make(5 * kMega, kOne);
  MemoryStats s = memory_stats(kOne);
  EXPECT_EQ(s.current - before.current, static_cast<int64_t>(1000 + 5 * kMega));
  EXPECT_EQ(s.allocations - before.allocations, 2);
  EXPECT_GE(s.peak, s.current);
  EXPECT_EQ(memory_stats(kTwo).current, other.current);
  b->release();
  EXPECT_EQ(memory_stats(kOne).current - before.current, 1000);
  EXPECT_EQ(memory_stats(kOne).peak, s.peak);
  reset_peak_memory_stats(kOne);
  EXPECT_EQ(memory_stats(kOne).peak, memory_stats(kOne).current);
  a->release();
  EXPECT_EQ(memory_stats(kOne).current, before.current);
}

TEST(Allocator, IsAlignedAndWritable) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{769}, kMega, 4 * kMega - 64, 4 * kMega,
                             4 * kMega + 1, 9 * kMega}) {
    StorageImpl* s = StorageImpl::make(bytes, kOne);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s->data) % 64, 0u);
    EXPECT_EQ(s->bytes, bytes);
    if (bytes) static_cast<char*>(s->data)[0] = static_cast<char*>(s->data)[bytes - 1] = 1;
    s->release();
  }
}

TEST(Allocator, KeepsLargeBlocksPerDevice) {
  if (pool::kPassThrough) GTEST_SKIP() << "under sanitizers nothing is kept";
  empty_cache();
  const int64_t none = memory_stats(kOne).cached;
  StorageImpl* a = StorageImpl::make(6 * kMega, kOne);
  void* where = a->data;
  a->release();
  EXPECT_GE(memory_stats(kOne).cached, static_cast<int64_t>(6 * kMega));
  EXPECT_EQ(memory_stats(kTwo).cached, 0);
  StorageImpl* stranger = StorageImpl::make(6 * kMega, kTwo);
  EXPECT_NE(stranger->data, where);
  StorageImpl* again = StorageImpl::make(4 * kMega + 1, kOne);  // a part of it
  EXPECT_GE(again->data, where);
  EXPECT_LT(again->data, static_cast<char*>(where) + 6 * kMega);
  EXPECT_LT(memory_stats(kOne).cached, static_cast<int64_t>(4 * kMega));
  for (StorageImpl* s : {stranger, again}) s->release();
  empty_cache();
  EXPECT_EQ(memory_stats(kOne).cached, none);
  EXPECT_EQ(memory_stats(kTwo).cached, 0);
}

// Each step has sequences of another length. What is kept is bounded by what was in use at once.
TEST(Allocator, KeepsLittleOfChangingSizes) {
  if (pool::kPassThrough) GTEST_SKIP() << "under sanitizers nothing is kept";
  empty_cache();
  reset_peak_memory_stats(kOne);
  for (size_t i = 0; i < 60; ++i) {
    StorageImpl* a = StorageImpl::make((5 + i * 37 % 60) * kMega, kOne);
    StorageImpl* b = StorageImpl::make((5 + i * 37 % 60) * kMega, kOne);
    a->release();
    b->release();
    const MemoryStats s = memory_stats(kOne);
    ASSERT_LE(s.current + s.cached, s.peak + s.peak / 16 + static_cast<int64_t>(8 * kMega)) << i;
  }
  empty_cache();
}

TEST(Allocator, KeepsNothingBeyondTheLimit) {
  if (pool::kPassThrough) GTEST_SKIP() << "under sanitizers nothing is kept";
  empty_cache();
  StorageImpl* a = StorageImpl::make(30 * kMega, kOne);
  StorageImpl* b = StorageImpl::make(30 * kMega, kOne);
  a->release();
  set_memory_limit(kOne, static_cast<int64_t>(40 * kMega));
  EXPECT_LE(memory_stats(kOne).current + memory_stats(kOne).cached,
            static_cast<int64_t>(40 * kMega));
  set_memory_limit(kOne, 0);
  b->release();
  empty_cache();
}

TEST(Allocator, KeepsToItsLimit) {
  const int64_t held = memory_stats(kOne).current;
  set_memory_limit(kOne, held + 10000);
  StorageImpl* a = StorageImpl::make(6000, kOne);
  EXPECT_ERROR(StorageImpl::make(4001, kOne), OutOfMemoryError,
               "out of memory on cpu:1: got a request of 4001 bytes");
  EXPECT_ERROR(StorageImpl::make(4001, kOne), OutOfMemoryError,
               "expected at most " + std::to_string(held + 10000));
  EXPECT_EQ(memory_stats(kOne).current, held + 6000);
  StorageImpl* b = StorageImpl::make(4000, kOne);
  StorageImpl::make(20000, kTwo)->release();  // another device's limit
  a->release();
  StorageImpl::make(5000, kOne)->release();
  set_memory_limit(kOne, 0);
  StorageImpl::make(50000, kOne)->release();
  b->release();
  EXPECT_ERROR(set_memory_limit(kOne, -1), Error, "bytes: got -1");
}

TEST(Allocator, RefusesTheImpossible) {
  EXPECT_ERROR(StorageImpl::make(size_t{1} << 47, kOne), Error, "expected less than 2^47");
  if (!pool::kPassThrough)  // sanitizers end the process on such a request
    EXPECT_ERROR(StorageImpl::make((size_t{1} << 47) - 4096, kOne), OutOfMemoryError,
                 "out of memory on cpu:1");
}

}  // namespace
}  // namespace ramet
