#include <cstring>

#include "runtime/memory/allocator.h"
#include "runtime/memory/storage_impl.h"
#include "runtime/tensor/tensor_base.h"
#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

const Device kFirst(kCPU, 0);

TEST(Storage, ForeignMemoryGoesBackOnce) {
  float memory[4] = {1, 2, 3, 4};
  void* given = nullptr;
  int times = 0;
  StorageImpl* s = StorageImpl::foreign(memory, sizeof memory, Device(kCPU, 2),
                                        [&](void* p) { given = p, ++times; });
  {
    TensorBase a = TensorBase::over(s, 4, {3}, {1}, kFloat);
    s->release();
    TensorBase b(a.view_impl({1}, {1}, 2));
    a = TensorBase();
    EXPECT_EQ(times, 0);
    EXPECT_EQ(*static_cast<float*>(b.ptr()), 4);
    EXPECT_EQ(b.device(), Device(kCPU, 2));
    EXPECT_EQ(b.storage_offset(), 3);
  }
  EXPECT_EQ(times, 1);
  // More than a header can say: refused, and the caller keeps the memory.
  EXPECT_ERROR(StorageImpl::foreign(memory, size_t{1} << 47, kFirst, [&](void*) { ++times; }),
               Error, "expected less than 2^47");
  EXPECT_ERROR(StorageImpl::foreign(memory, SIZE_MAX, kFirst, [&](void*) { ++times; }), Error,
               "expected less than 2^47");
  EXPECT_EQ(times, 1);
  EXPECT_EQ(given, memory);
  StorageImpl::foreign(memory, sizeof memory, kFirst, {})->release();  // no deleter
}

TEST(Storage, AliasHoldsItsMemory) {
  const int64_t held = memory_stats(kFirst).current;
  StorageImpl* flat = StorageImpl::make(4096, kFirst);
  std::memset(flat->data, 0, 4096);
  StorageImpl* a = StorageImpl::alias(flat, static_cast<char*>(flat->data) + 64, 128, nullptr);
  flat->release();
  EXPECT_EQ(memory_stats(kFirst).current - held, 4096);
  static_cast<char*>(a->data)[127] = 1;
  a->release();
  EXPECT_EQ(memory_stats(kFirst).current, held);
}

TEST(Storage, AliasOfSmallTensorHoldsItsBlock) {
  TensorBase t = TensorBase::empty({4}, kFloat, kFirst);
  static_cast<float*>(t.ptr())[3] = 5;
  StorageImpl* a =
      StorageImpl::alias(t.storage_impl(), static_cast<float*>(t.ptr()) + 2, 8, nullptr);
  t = TensorBase();
  TensorBase view = TensorBase::over(a, 0, {2}, {1}, kFloat);
  a->release();
  EXPECT_EQ(static_cast<float*>(view.ptr())[1], 5);
}

TEST(Storage, VersionsAreOwnOrShared) {
  StorageImpl* flat = StorageImpl::make(1024, kFirst);
  StorageImpl* own = StorageImpl::alias(flat, flat->data, 16, nullptr);
  StorageImpl* shared = StorageImpl::alias(flat, flat->data, 16, own);
  EXPECT_STREQ(shared->last_writer(), "nobody");
  own->wrote("add_");
  EXPECT_EQ(own->version(), 1u);
  EXPECT_EQ(shared->version(), 1u);
  EXPECT_EQ(flat->version(), 0u);
  shared->wrote("mul_");
  EXPECT_EQ(own->version(), 2u);
  EXPECT_STREQ(own->last_writer(), "mul_");
  flat->wrote("sgd");
  EXPECT_EQ(own->version(), 2u);
  EXPECT_STREQ(own->last_writer(), "mul_");
  flat->release();
  own->release();  // lives on as long as `shared` counts in it
  shared->wrote("div_");
  EXPECT_STREQ(shared->last_writer(), "div_");
  EXPECT_EQ(shared->version(), 3u);
  shared->release();
}

TEST(Storage, SerialsAreNeverReused) {
  StorageImpl* a = StorageImpl::make(2000, kFirst);
  const uint64_t first = a->serial();
  EXPECT_NE(first, 0u);
  EXPECT_EQ(a->serial(), first);
  a->release();
  StorageImpl* b = StorageImpl::make(2000, kFirst);  // the same block
  EXPECT_GT(b->serial(), first);
  b->release();
}

}  // namespace
}  // namespace ramet
