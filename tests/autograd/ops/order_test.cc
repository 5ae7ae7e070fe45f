// What orders elements, as public operations: PyTorch's examples, numbers that are nearly in the
// way, errors. Values over dtypes, layouts and devices: the operation table.
#include <cmath>
#include <functional>

#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Values = std::vector<double>;

Tensor mixed() { return constant({1, kNaN, 2, kNaN, -0.0, 0}); }
void expect_both(const std::tuple<Tensor, Tensor>& got, const Values& v, const Values& at) {
  expect_values(std::get<0>(got), v);
  expect_values(std::get<1>(got), at);
}

TEST(Order, AsPyTorch) {  // what PyTorch 2.15 gives
  expect_both(sort(mixed()), {0, 0, 1, 2, kNaN, kNaN}, {4, 5, 0, 2, 1, 3});
  expect_both(sort(mixed(), -1, true), {kNaN, kNaN, 2, 1, 0, 0}, {1, 3, 2, 0, 4, 5});
  EXPECT_TRUE(std::signbit(std::get<0>(sort(mixed()))[0].item<double>()));
  expect_both(topk(mixed(), 3), {kNaN, kNaN, 2}, {1, 3, 2});
  expect_both(median(mixed(), 0), {kNaN}, {1});
  EXPECT_TRUE(std::isnan(median(mixed()).item<double>()));
  EXPECT_EQ(nanmedian(mixed()).item<double>(), 0);
  expect_both(nanmedian(constant({kNaN, kNaN}), 0), {kNaN}, {0});
  expect_both(mode(constant({2, 1, 2, 1, 3}), 0), {1}, {3});
  expect_both(mode(constant({2, 2, 1, 1, 1, 2}), 0), {1}, {4});
  expect_both(kthvalue(constant({5, 3, 4}), 2), {4}, {2});
  expect_both(mode(constant({kNaN, 1, kNaN, 1}), 0), {1}, {3});
}

TEST(Order, OfNumbersAndOfNothing) {
  const Tensor number = constant({3}).view(IntArrayRef()), nothing = zeros({0}, kDouble);
  for (const auto& [v, at] : {sort(number), sort(number, 0, true), topk(number, 1), topk(number, 0),
                              kthvalue(number, 1), median(number, 0), mode(number)}) {
    EXPECT_EQ(v.dim(), 0);
    EXPECT_EQ(v.item<double>(), 3);
    EXPECT_EQ(at.item<int64_t>(), 0);
  }
  EXPECT_EQ(median(number).item<double>(), 3);
  EXPECT_TRUE(std::isnan(median(nothing).item<double>()));
  EXPECT_TRUE(std::isnan(nanmedian(nothing).item<double>()));
  EXPECT_EQ(median(nothing.to(kInt)).item<int32_t>(), INT32_MIN);  // what NaN is cast to
  EXPECT_EQ(std::get<0>(topk(zeros({0, 3}), 0, 0)).sizes(), IntArrayRef({0, 3}));
  EXPECT_EQ(std::get<0>(kthvalue(zeros({2, 0}), 2, 0)).sizes(), IntArrayRef({0}));
}

TEST(Order, GradientsGoWhereValuesWere) {
  Tensor x = constant({4, 1, 9, 1}).requires_grad_();
  std::get<0>(sort(x, -1, true)).mul(constant({1, 2, 3, 4})).sum().backward();
  expect_values(x.grad(), {2, 3, 1, 4});
  x.mutable_grad() = Tensor();
  std::get<0>(topk(x, 2)).sum().backward();
  expect_values(x.grad(), {1, 0, 1, 0});
  x.mutable_grad() = Tensor();
  median(x).backward();  // shared by what is equal to it
  expect_values(x.grad(), {0, 0.5, 0, 0.5});
  EXPECT_FALSE(argsort(x).requires_grad());
  EXPECT_FALSE(std::get<1>(sort(x)).requires_grad());
  Tensor y = constant({kNaN, 1, kNaN}).requires_grad_();
  median(y).backward();
  expect_values(y.grad(), {0.5, 0, 0.5});
  y.mutable_grad() = Tensor();
  nanmedian(y).backward();
  expect_values(y.grad(), {0, 1, 0});
}

TEST(Order, Errors) {
  const Tensor x = zeros({2, 3}), none;
  for (int64_t dim : {int64_t{2}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
    expect_part(error_of([&] { sort(x, dim); }), "[sort] Dimension out of range");
    expect_part(error_of([&] { argsort(x, dim); }), "[argsort] Dimension out of range");
    expect_part(error_of([&] { topk(x, 1, dim); }), "[topk] Dimension out of range");
    expect_part(error_of([&] { mode(x, dim); }), "[mode] Dimension out of range");
  }
  for (int64_t k : {int64_t{-1}, int64_t{4}, INT64_MIN, INT64_MAX}) {
    expect_part(error_of([&] { topk(x, k); }), "[topk] selected index k out of range: got ");
    expect_part(error_of([&] { kthvalue(x, k); }),
                "[kthvalue] selected number k out of range for dimension 1: got ");
  }
  expect_part(error_of([&] { kthvalue(x, 0); }), "got 0, expected 1 to 3 for float32[2, 3]");
  expect_part(error_of([&] { sort(none); }), "[sort] undefined tensor");
  expect_part(error_of([&] { topk(none, 1); }), "[topk] undefined tensor");
  expect_part(error_of([&] { median(none); }), "[median] undefined tensor");
  expect_part(error_of([&] { topk(x.to(kBool), 1); }), "[topk] does not support bool dtypes");
  expect_part(error_of([&] { median(x.to(kBool)); }), "[median] does not support bool dtypes");
  expect_part(error_of([&] { kthvalue(x.to(kBool), 1); }),
              "[kthvalue] does not support bool dtypes");
  for (const auto& f : std::vector<std::function<void()>>{[] {
                                                            kthvalue(zeros({0, 3}), 1, 0);
                                                          },
                                                          [] {
                                                            median(zeros({0, 3}), 0);
                                                          },
                                                          [] {
                                                            nanmedian(zeros({0, 3}), 0);
                                                          },
                                                          [] {
                                                            mode(zeros({0, 3}), 0);
                                                          }})
    expect_part(error_of(f), "Expected reduction dim 0 to have non-zero size");
  Tensor values = zeros({0}), at = zeros({0}, kLong), wide = zeros({0}, kDouble);
  expect_part(error_of([&] { sort_out(wide, at, x); }),
              "[sort_out] Expected out tensor to have dtype");
  expect_part(error_of([&] { topk_out(values, values, x, 1); }),
              "[topk_out] Expected out tensor to have");
  Tensor leaf = zeros({3}).requires_grad_();
  expect_part(error_of([&] { sort_out(values, at, leaf); }), "[sort_out]");
}

// ---- without repetitions ------------------------------------------------------------------------

TEST(Unique, AsPyTorch) {  // what PyTorch 2.15 gives
  const auto [v, inverse, counts] = _unique2(mixed(), true, true, true);
  expect_values(v, {0, 1, 2, kNaN, kNaN});
  expect_values(inverse, {1, 3, 2, 4, 0, 0});
  expect_values(counts, {2, 1, 1, 1, 1});
  const auto [c, at, lengths] =
      unique_consecutive(constant({kNaN, kNaN, 1, 1, 2}), /*return_inverse=*/true, true);
  expect_values(c, {kNaN, kNaN, 1, 2});
  expect_values(at, {0, 1, 2, 2, 3});
  expect_values(lengths, {1, 1, 2, 1});
  const Tensor rows = integers({1, 2, 0, 5, 1, 2}, {3, 2});
  const auto [slices, of, often] = unique_dim(rows, 0);
  expect_values(slices, {0, 5, 1, 2});
  expect_values(of, {1, 0, 1});
  expect_values(often, {1, 2});
  expect_values(std::get<0>(unique_dim(rows, 1)), {1, 2, 0, 5, 1, 2});
  const auto [same, one_each, ones] = unique_dim_consecutive(rows, 0);
  expect_values(same, {1, 2, 0, 5, 1, 2});
  expect_values(one_each, {0, 1, 2});
  expect_values(ones, {1, 1, 1});
}

TEST(Unique, NothingThatIsNotAskedFor) {
  const Tensor x = constant({3, 1, 3});
  const auto [v, inverse, counts] = _unique2(x);
  EXPECT_EQ(inverse.sizes(), IntArrayRef({0}));
  EXPECT_EQ(counts.sizes(), IntArrayRef({0}));
  EXPECT_EQ(inverse.scalar_type(), kLong);
  EXPECT_EQ(std::get<1>(_unique2(zeros({0, 3}), true, true)).sizes(), IntArrayRef({0, 3}));
  EXPECT_EQ(std::get<1>(_unique(constant({3}).view(IntArrayRef()), true, true)).dim(), 0);
  EXPECT_FALSE(std::get<0>(_unique2(constant({1, 2}).requires_grad_())).requires_grad());
}

TEST(Unique, SlicesInLexicographicOrder) {
  // More columns than a power of two; a NaN is the largest and makes a slice unlike every other.
  const Tensor x = constant({2,    0, 1, 5, 7,  //
                             2,    0, 1, 5, 6,  //
                             kNaN, 0, 1, 5, 7,  //
                             2,    0, 1, 5, 6,  //
                             -1,   9, 9, 9, 9,  //
                             kNaN, 0, 0, 0, 0,  //
                             kNaN, 0, 1, 5, 7})
                       .view({7, 5});
  const auto [v, of, often] = unique_dim(x, 0);
  expect_values(of, {2, 1, 4, 1, 0, 3, 5});
  expect_values(often, {1, 2, 1, 1, 1, 1});
  expect_values(v.select(1, 4), {9, 6, 7, 0, 7, 7});
  expect_values(std::get<1>(unique_dim(x.t(), 1)), {2, 1, 4, 1, 0, 3, 5});
}

TEST(Unique, Errors) {
  const Tensor x = zeros({2, 3});
  for (int64_t dim : {int64_t{2}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
    expect_part(error_of([&] { unique_dim(x, dim); }), "[unique_dim] Dimension out of range");
    expect_part(error_of([&] { unique_consecutive(x, false, false, dim); }),
                "[unique_consecutive] Dimension out of range");
    expect_part(error_of([&] { unique_dim(zeros({}), dim); }), "tensor has no dimensions");
  }
  expect_part(error_of([&] {
                unique_dim(zeros({2, 0}), 0);
              }),
              "[unique_dim] There are 0 sized dimensions, and they aren't selected");
  expect_part(error_of([&] {
                unique_dim_consecutive(zeros({0, 2}), 1);
              }),
              "[unique_dim_consecutive] There are 0 sized dimensions");
  EXPECT_EQ(std::get<0>(unique_dim(zeros({0, 2}), 0)).sizes(), IntArrayRef({0, 2}));
  expect_part(error_of([] { _unique2(Tensor()); }), "[_unique2] undefined tensor");
  expect_part(error_of([] { unique_dim(Tensor(), 0); }), "[unique_dim] undefined tensor");
}

}  // namespace
}  // namespace ramet
