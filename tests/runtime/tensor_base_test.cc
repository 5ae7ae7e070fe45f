#include "runtime/tensor/tensor_base.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>

#include "runtime/base/checked_size.h"
#include "runtime/base/context.h"
#include "runtime/memory/allocator.h"
#include "tests/runtime/expect_error.h"

using ramet::detail::tls;

namespace ramet {
namespace {

const Device kCpu(kCPU, 0);

TEST(TensorBase, EveryRank) {
  for (size_t rank = 0; rank <= 64; ++rank) {
    std::vector<int64_t> sizes(rank, 1);
    if (rank > 0) sizes[rank - 1] = 3;
    if (rank > 1) sizes[0] = 2;
    TensorBase t = TensorBase::empty(sizes, kDouble, kCpu);
    EXPECT_EQ(t.dim(), static_cast<int64_t>(rank));
    EXPECT_TRUE(t.sizes() == sizes);
    EXPECT_TRUE(t.raw_strides() == contiguous_strides(sizes));
    EXPECT_EQ(t.numel(), rank == 0 ? 1 : rank == 1 ? 3 : 6);
    EXPECT_TRUE(t.raw_contiguous());
    TensorBase view(t.shallow_impl());
    TensorBase copy = TensorBase::over(t.storage_impl(), 0, sizes, t.raw_strides(), kDouble);
    for (const TensorBase& v : {view, copy}) {
      EXPECT_TRUE(same_sizes(v, t) && same_strides(v, t));
      EXPECT_EQ(v.ptr(), t.ptr());
      EXPECT_EQ(v->storage, t->storage);
    }
  }
  const std::vector<int64_t> many(65, 1);
  EXPECT_ERROR(TensorBase::empty(many, kFloat, kCpu), Error, "rank: got 65, expected at most 64");
}

TEST(TensorBase, EmptyTensors) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
           {0}, {0, 3}, {3, 0}, {2, 0, 4}, {int64_t{1} << 59, 0, 8}}) {
    TensorBase t = TensorBase::empty(sizes, kFloat, kCpu);
    EXPECT_EQ(t.numel(), 0);
    EXPECT_EQ(t.nbytes(), 0u);
    EXPECT_TRUE(t.raw_contiguous());
    EXPECT_TRUE(t.sizes() == sizes);
  }
  EXPECT_TRUE(contiguous_strides({2, 0, 3}) == (std::vector<int64_t>{3, 3, 1}));  // LibTorch's
}

TEST(TensorBase, RefusesImpossibleSizes) {
  using Sizes = std::vector<int64_t>;
  constexpr int64_t k31 = int64_t{1} << 31, k32 = 2 * k31, k62 = k31 * k31;
  const std::tuple<Sizes, ScalarType, const char*> sizes[] = {
      {{2, -1}, kFloat, "Trying to create tensor with negative dimension -1: got [2, -1]"},
      {{0, -1}, kFloat, "negative dimension -1"},
      {{k62, 4, 0, -2}, kFloat, "negative dimension -2"},
      {{k32, k31}, kByte, "fewer than 2^63 elements"},
      // Of an empty tensor, too: a product of some of its extents never wraps.
      {{0, k32, k31}, kByte, "fewer than 2^63 elements"},
      {{k62 / 2}, kFloat, "fewer than 2^63 bytes"},
      {{int64_t{1} << 50}, kFloat, "expected less than 2^47"},
  };
  for (const auto& [s, t, text] : sizes) EXPECT_ERROR(TensorBase::empty(s, t, kCpu), Error, text);
  const std::tuple<Sizes, Sizes, const char*> strided[] = {
      {{2}, {1, 1}, "strides: got 2 of them, expected 1"},
      {{2}, {-1}, "strides: got [-1]"},
      {{3}, {INT64_MAX}, "less than 2^47 bytes"},
      {{2, 2}, {INT64_MAX, 1}, "less than 2^47 bytes"},
      {{2}, {INT64_MAX / 2}, "less than 2^47 bytes"},
  };
  for (const auto& [s, strides, text] : strided)
    EXPECT_ERROR(TensorBase::empty_strided(s, strides, kFloat, kCpu), Error, text);
}

// Where the last element lies, compared with arithmetic in 128 bits.
TEST(CheckedSize, Extents) {
  const int64_t numbers[] = {0, 1, 2, 3, 7, int64_t{1} << 31, int64_t{1} << 45, int64_t{1} << 62};
  for (const int64_t a : numbers)
    for (const int64_t b : numbers)
      for (const int64_t s : numbers)
        for (const int64_t t : numbers)
          for (const int64_t first : {int64_t{0}, int64_t{5}, INT64_MAX}) {
            const bool none = a == 0 || b == 0;
            const __int128 right =
                none ? __int128{0}
                     : __int128{first} + __int128{a - 1} * s + __int128{b - 1} * t + 1;
            ASSERT_EQ(strided_extent({a, b}, {s, t}, first),
                      right > INT64_MAX ? -1 : static_cast<int64_t>(right));
            const __int128 elements = __int128{std::max<int64_t>(a, 1)} * std::max<int64_t>(b, 1);
            const bool fits = elements <= INT64_MAX / (none ? 1 : 4) && right < (__int128{1} << 45);
            if (fits) {
              ASSERT_EQ(checked_extent("f", {a, b}, {s, t}, first, kFloat), right * 4);
            } else {
              EXPECT_ERROR(checked_extent("f", {a, b}, {s, t}, first, kFloat), Error,
                           "[f] got sizes");
            }
          }
  EXPECT_EQ(checked_extent("f", {1, 3}, {-5, 2}, 1, kHalf), 12);  // no place lies along the first
  EXPECT_ERROR(checked_extent("f", {2, 3}, {-5, 2}, 1, kHalf), Error, "got strides [-5, 2]");
  EXPECT_ERROR(checked_extent("f", {2, -3}, {5, 2}, 1, kHalf), Error, "got sizes [2, -3]");
  EXPECT_ERROR(checked_extent("f", {2, 3}, {5}, 1, kHalf), Error, "got 1 of them, expected 2");
  EXPECT_ERROR(checked_extent("f", {2}, {5}, -1, kHalf), Error, "storage_offset: got -1");
}

TEST(TensorBase, StridedMemoryIsJustEnough) {
  TensorBase t = TensorBase::empty_strided({2, 3}, {1, 2}, kFloat, kCpu);
  EXPECT_EQ(t.storage_impl()->bytes, 24u);
  EXPECT_FALSE(t.raw_contiguous());
  EXPECT_TRUE(non_overlapping_and_dense(t));
  TensorBase gap = TensorBase::empty_strided({2, 3}, {10, 2}, kShort, kCpu);
  EXPECT_EQ(gap.storage_impl()->bytes, 30u);
  EXPECT_FALSE(non_overlapping_and_dense(gap));
  TensorBase expanded = TensorBase::empty_strided({4, 3}, {0, 1}, kFloat, kCpu);
  EXPECT_EQ(expanded.storage_impl()->bytes, 12u);
  EXPECT_FALSE(non_overlapping_and_dense(expanded));
  EXPECT_EQ(TensorBase::empty_strided({4, 0}, {9, 9}, kFloat, kCpu).storage_impl()->bytes, 0u);
}

TEST(TensorBase, ContiguityIgnoresOnes) {
  TensorBase t = TensorBase::empty({12}, kFloat, kCpu);
  EXPECT_TRUE(TensorBase(t.view_impl({3, 1, 4}, {4, 77, 1}, 0)).raw_contiguous());
  EXPECT_FALSE(TensorBase(t.view_impl({3, 4}, {4, 2}, 0)).raw_contiguous());
  EXPECT_FALSE(TensorBase(t.view_impl({2, 2}, {1, 2}, 0)).raw_contiguous());
  EXPECT_TRUE(TensorBase(t.view_impl({0, 4}, {1, 9}, 0)).raw_contiguous());
  EXPECT_TRUE(TensorBase(t.view_impl({}, {}, 5)).raw_contiguous());
}

TEST(TensorBase, ViewsShareMemoryAndVersions) {
  TensorBase t = TensorBase::empty({3, 4}, kInt, kCpu);
  std::iota(static_cast<int*>(t.ptr()), static_cast<int*>(t.ptr()) + 12, 0);
  TensorBase column(t.view_impl({3}, {4}, 2));
  EXPECT_EQ(column.storage_offset(), 2);
  EXPECT_EQ(static_cast<int*>(column.ptr())[column.raw_strides()[0] * 2], 10);
  column.storage_impl()->wrote("fill_");
  EXPECT_EQ(t.version(), 1u);
  EXPECT_FALSE(t.unique());
  EXPECT_EQ(t.use_count(), 1);
  t = TensorBase();
  EXPECT_EQ(static_cast<int*>(column.ptr())[0], 2);
  EXPECT_TRUE(column.unique());
}

TEST(TensorBase, HandlesCount) {
  TensorBase a = TensorBase::empty({2}, kFloat, kCpu);
  TensorBase b = a;
  EXPECT_TRUE(a.is_same(b) && a.use_count() == 2);
  TensorBase c = std::move(b);
  EXPECT_FALSE(b.defined());
  EXPECT_EQ(b.use_count(), 0);
  EXPECT_EQ(c.use_count(), 2);
  const TensorBase& itself = c;
  c = itself;
  EXPECT_EQ(c.use_count(), 2);
  a = TensorBase::empty({2}, kFloat, kCpu);
  EXPECT_EQ(c.use_count(), 1);
  c.swap(a);
  EXPECT_FALSE(a.is_same(c));
}

TEST(TensorBase, Asks) {
  TensorBase t = TensorBase::empty({2, 3}, kHalf, Device(kCPU, 4));
  EXPECT_EQ(t.size(0) * 10 + t.size(-1), 23);
  EXPECT_EQ(t.device(), Device(kCPU, 4));
  EXPECT_TRUE(t.stream() == (Stream{Device(kCPU, 4), 0}));
  EXPECT_EQ(t.nbytes(), 12u);
  EXPECT_TRUE(t.is_floating_point() && t.is_cpu() && !t.is_cuda());
  EXPECT_ERROR(t.size(2), IndexError, "got 2, expected [-2, 1] for float16[2, 3] on cpu:4");
  EXPECT_ERROR(t.size(-3), IndexError, "got -3");
  EXPECT_EQ(describe(t), "float16[2, 3] on cpu:4");
  EXPECT_EQ(describe(TensorBase()), "undefined tensor");
  EXPECT_EQ(wrap_dim("sum", -1, 3), 2);
  EXPECT_EQ(wrap_dim("sum", -1, 0), 0);
  EXPECT_ERROR(wrap_dim("sum", 3, 3), IndexError,
               "[sum] Dimension out of range: got 3, expected to be in range of [-3, 2]");
  EXPECT_ERROR(wrap_dim("sum", 1, 0), IndexError, "[-1, 0]");
  uint16_t key;
  std::memcpy(&key, &t->dtype, 2);
  EXPECT_EQ(t->key(), key);
  EXPECT_NE(t->key(), TensorBase::empty({2, 3}, kHalf, kCpu)->key());
  EXPECT_NE(t->key(), TensorBase::empty({2, 3}, kFloat, Device(kCPU, 4))->key());
}

TEST(TensorBase, RepointMovesAllHandles) {
  for (const int64_t n : {4, 4000}) {  // embedded and separate storage
    const int64_t held = memory_stats(kCpu).current, there = memory_stats(Device(kCPU, 1)).current;
    TensorBase t = TensorBase::empty({n / 2, 2}, kFloat, kCpu);
    TensorBase same = t, view(t.view_impl({1}, {1}, 1));
    static_cast<float*>(view.ptr())[0] = 7;
    StorageImpl* fresh = StorageImpl::make(static_cast<size_t>(n) * 4 + 64, Device(kCPU, 1));
    t.repoint(fresh, static_cast<char*>(fresh->data) + 64);
    EXPECT_EQ(same.device(), Device(kCPU, 1));
    EXPECT_EQ(same.storage_offset(), 16);
    EXPECT_EQ(static_cast<float*>(view.ptr())[0], 7);  // keeps the old memory
    t.repoint(StorageImpl::make(static_cast<size_t>(n) * 4, kCpu));
    static_cast<float*>(same.ptr())[n - 1] = 1;
    EXPECT_TRUE(same.raw_contiguous());
    t = same = view = TensorBase();
    EXPECT_EQ(memory_stats(kCpu).current, held);
    EXPECT_EQ(memory_stats(Device(kCPU, 1)).current, there);
  }
}

TEST(TensorBase, InferenceModeMarks) {
  TensorBase outside = TensorBase::empty({2}, kFloat, kCpu);
  TensorBase inside;
  {
    ScopedValue<bool> mode(tls.inference_mode, true);
    inside = TensorBase::empty({2}, kFloat, kCpu);
  }
  EXPECT_FALSE(outside->is(TensorImpl::kInference));
  EXPECT_TRUE(inside->is(TensorImpl::kInference));
  EXPECT_TRUE(TensorBase(inside.view_impl({1}, {1}, 0))->is(TensorImpl::kInference));
}

TEST(TensorBase, SmallDataSharesTheBlock) {
  EXPECT_EQ(TensorBase::empty({192}, kFloat, kCpu)->is(TensorImpl::kEmbedded), true);
  EXPECT_EQ(TensorBase::empty({193}, kFloat, kCpu)->is(TensorImpl::kEmbedded), false);
  const int64_t counted = memory_stats(kCpu).allocations;
  TensorBase::empty({192}, kFloat, kCpu);
  EXPECT_EQ(memory_stats(kCpu).allocations, counted);
}

TEST(TensorBase, OwnMemoryCopiesOnWrite) {
  TensorBase t = TensorBase::empty({4}, kFloat, kCpu);
  std::iota(static_cast<float*>(t.ptr()), static_cast<float*>(t.ptr()) + 4, 1.0f);
  StorageImpl* alias = StorageImpl::alias(t.storage_impl(), t.ptr(), 16, nullptr);
  alias->copy_on_write = 1;
  TensorBase piece = TensorBase::over(alias, 4, {2}, {1}, kFloat);
  alias->release();
  TensorBase view(piece.shallow_impl());
  EXPECT_ERROR(piece.own_memory("add_"), Error, "[add_] got float32[2] on cpu");
  view = TensorBase();
  piece.own_memory("add_");
  static_cast<float*>(piece.ptr())[0] = 9;
  EXPECT_EQ(static_cast<float*>(piece.ptr())[1], 3);
  EXPECT_EQ(static_cast<float*>(t.ptr())[1], 2);
  EXPECT_EQ(piece.storage_impl()->copy_on_write, 0u);
}

}  // namespace
}  // namespace ramet
