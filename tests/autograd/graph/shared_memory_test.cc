// One memory with several owners or views: other storages over it, results that a graph saved too,
// views with histories that are made again. Values of LibTorch 2.15, or worked out by hand.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/index/index_put.h"
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Values = std::vector<double>;

// data(), and memory that is given twice, are other storages over the same bytes. An operation
// still reads bytes before it overwrites them.
TEST(SharedMemory, OtherStoragesOverTheSameMemory) {
  const auto square = [] { return arange(9, kDouble).view({3, 3}).clone(); };
  const Values turned = {0, 3, 6, 1, 4, 7, 2, 5, 8};
  Tensor x = square();
  x.data().copy_(x.data().t());
  EXPECT_EQ(values(x), turned);
  x = square();
  x.data().add_(x.data().t());
  EXPECT_EQ(values(x), (Values{0, 4, 8, 4, 8, 12, 8, 12, 16}));
  x = arange(5, kDouble).clone();
  x.slice(0, 1).add_(x.data().slice(0, 0, 4));
  EXPECT_EQ(values(x), (Values{0, 1, 3, 5, 7}));
  x = arange(3, kDouble).clone();
  x.scatter_(0, tensor({2, 1, 0}), x.data());
  EXPECT_EQ(values(x), (Values{2, 1, 0}));

  const Tensor line = full({64}, int64_t{7}), index = line.slice(0, 30, 33);
  index.copy_(tensor({1, 0, 2}));
  index.index_put_({index.data()}, tensor(int64_t{100}));
  EXPECT_EQ(values(index), (Values{100, 100, 100}));
  EXPECT_EQ(line.sum().item<int64_t>(), 61 * 7 + 300);

  std::vector<double> memory = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const Tensor a = from_blob(memory.data(), {3, 3}, kDouble),
               b = from_blob(memory.data(), {3, 3}, kDouble);
  a.copy_(b.t());
  EXPECT_EQ(values(a), turned);
}

// The indices are a result and what the gradient needs.
TEST(SharedMemory, IndicesOfAPoolWrittenBeforeBackward) {
  const Tensor x = arange(16, kDouble).view({1, 1, 4, 4}).clone().requires_grad_();
  const auto [y, index] = max_pool2d_with_indices(x, 2);
  const Tensor g = autograd::grad({y.square().sum()}, {x}, {}, true, true)[0];
  index.zero_();
  EXPECT_THROW(y.sum().backward(), Error);
  EXPECT_THROW(g.sum().backward(), Error);
}

// A view's history is made again when its base, or another view of it, was written.
TEST(SharedMemory, RetainedGradientsOfViewsFollowTheirHistory) {
  for (const bool by_sibling : {false, true}) {
    const Tensor x = leaf({1, 1, 1, 1}).view({2, 2});
    const Tensor y = x * 2, v = y[0], w = y[1];
    v.retain_grad();
    if (by_sibling) w.mul_(3);
    else y.mul_(3);
    EXPECT_TRUE(v.retains_grad());
    (v * 5).sum().backward();
    EXPECT_TRUE(v.retains_grad());
    EXPECT_EQ(values(v.grad()), (Values{5, 5}));
  }
}

TEST(SharedMemory, MemoryFormatsOfCopies) {
  const Tensor rows = arange(120, kFloat).view({2, 3, 4, 5}),
               last = rows.contiguous(MemoryFormat::ChannelsLast);
  const std::vector<int64_t> by_row = {60, 20, 5, 1}, by_pixel = {60, 1, 15, 3};
  const auto strides_of = [](const Tensor& t) { return t.strides().vec(); };
  EXPECT_EQ(strides_of(last), by_pixel);
  EXPECT_EQ(strides_of(rows.to(kDouble, false, false, MemoryFormat::ChannelsLast)), by_pixel);
  EXPECT_EQ(strides_of(rows.to(kFloat, false, false, MemoryFormat::ChannelsLast)), by_pixel);
  EXPECT_EQ(strides_of(rows.to(kFloat, false, true, MemoryFormat::ChannelsLast)), by_pixel);
  EXPECT_EQ(strides_of(last.to(kFloat, false, false, MemoryFormat::Contiguous)), by_row);
  EXPECT_EQ(strides_of(last.to(kDouble)), by_pixel);
  EXPECT_EQ(strides_of(last.to(Device(kCPU, 1))), by_pixel);
  EXPECT_TRUE(last.to(kFloat, false, false, MemoryFormat::ChannelsLast).is_same(last));
  EXPECT_TRUE(rows.to(kFloat, false, false, MemoryFormat::Contiguous).is_same(rows));
  EXPECT_EQ(values(rows.to(kDouble, false, false, MemoryFormat::ChannelsLast)), values(rows));
  EXPECT_EQ(values(last.to(Device(kCPU, 1)).to(Device(kCPU, 0))), values(rows));
  EXPECT_EQ(last.const_data_ptr(), last.mutable_data_ptr());
  EXPECT_TRUE(last.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(last.is_contiguous(MemoryFormat::Contiguous));
  EXPECT_TRUE(rows.is_contiguous(MemoryFormat::Contiguous));
  EXPECT_FALSE(rows.is_contiguous(MemoryFormat::ChannelsLast));
}

// More dimensions than a kernel takes, none of which merge.
TEST(SharedMemory, IndexingOfManyDimensions) {
  constexpr int kRank = 11;
  std::vector<int64_t> sizes(kRank, 2), order;
  for (int d = kRank; d-- > 0;) order.push_back(d);
  const Tensor dense = arange(int64_t{1} << kRank, kDouble).view(sizes), x = dense.permute(order);
  // Element (i0, ..., i10) of x is the number with bits i10 ... i0.
  const auto reversed = [](int64_t bits) {
    double v = 0;
    for (int d = 0; d < kRank; ++d)
      v += static_cast<double>(bits >> d & 1) * (1 << (kRank - 1 - d));
    return v;
  };
  const Tensor index = tensor({1, 0, 1});
  const Values picked = values(x.index_select(kRank - 1, index).contiguous());
  for (int64_t i = 0; i < int64_t{1} << (kRank - 1); ++i)
    for (int64_t k = 0; k < 3; ++k)
      ASSERT_EQ(picked[static_cast<size_t>(i * 3 + k)], reversed(i * 2 + (k != 1)));
  const Tensor turn = zeros(sizes, kLong).permute(order), all = x.clone(MemoryFormat::Contiguous);
  EXPECT_EQ(values(x.gather(3, turn)), values(all.gather(3, turn.contiguous())));
  Tensor sums = zeros(sizes, kDouble).permute(order), plain = zeros(sizes, kDouble);
  sums.scatter_add_(5, turn, x);
  plain.scatter_add_(5, turn.contiguous(), all);
  EXPECT_EQ(values(sums.contiguous()), values(plain));
}

}  // namespace
}  // namespace ramet
