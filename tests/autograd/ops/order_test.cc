// What orders elements, as public operations: PyTorch's examples, numbers that are nearly in the
// way, errors. Values over dtypes, layouts and devices: the operation table.
#include <cmath>
#include <functional>

#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using Values = std::vector<double>;

Tensor mixed() { return constant({1, kNaN, 2, kNaN, -0.0, 0}); }
void expect_both(const std::tuple<Tensor, Tensor>& got, const Values& v, const Values& at) {
  expect_values(std::get<0>(got), v);
  expect_values(std::get<1>(got), at);
}

TEST(Order, OfNaNsAndZeros) {
  EXPECT_TRUE(std::signbit(std::get<0>(sort(mixed()))[0].item<double>()));  // -0 comes before 0
  expect_both(nanmedian(constant({kNaN, kNaN}), 0), {kNaN}, {0});
  expect_both(mode(constant({kNaN, 1, kNaN, 1}), 0), {1}, {3});
  expect_both(kthvalue(constant({5, 3, 4}), 2), {4}, {2});
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
  median(x).backward();  // shared by what is equal to it
  expect_values(x.grad(), {0, 0.5, 0, 0.5});
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
    EXPECT_ERROR_TEXT(sort(x, dim), "[sort] Dimension out of range");
    EXPECT_ERROR_TEXT(argsort(x, dim), "[argsort] Dimension out of range");
    EXPECT_ERROR_TEXT(topk(x, 1, dim), "[topk] Dimension out of range");
    EXPECT_ERROR_TEXT(mode(x, dim), "[mode] Dimension out of range");
  }
  for (int64_t k : {int64_t{-1}, int64_t{4}, INT64_MIN, INT64_MAX}) {
    EXPECT_ERROR_TEXT(topk(x, k), "[topk] selected index k out of range: got ");
    EXPECT_ERROR_TEXT(kthvalue(x, k),
                      "[kthvalue] selected number k out of range for dimension 1: got ");
  }
  EXPECT_ERROR_TEXT(kthvalue(x, 0), "got 0, expected 1 to 3 for float32[2, 3]");
  EXPECT_ERROR_TEXT(sort(none), "[sort] undefined tensor");
  EXPECT_ERROR_TEXT(topk(none, 1), "[topk] undefined tensor");
  EXPECT_ERROR_TEXT(median(none), "[median] undefined tensor");
  EXPECT_ERROR_TEXT(topk(x.to(kBool), 1), "[topk] does not support bool dtypes");
  EXPECT_ERROR_TEXT(median(x.to(kBool)), "[median] does not support bool dtypes");
  EXPECT_ERROR_TEXT(kthvalue(x.to(kBool), 1), "[kthvalue] does not support bool dtypes");
  const Tensor empty_lines = zeros({0, 3});
  EXPECT_ERROR_TEXT(kthvalue(empty_lines, 1, 0), "reduction dim 0 to have non-zero size");
  EXPECT_ERROR_TEXT(median(empty_lines, 0), "reduction dim 0 to have non-zero size");
  EXPECT_ERROR_TEXT(nanmedian(empty_lines, 0), "reduction dim 0 to have non-zero size");
  EXPECT_ERROR_TEXT(mode(empty_lines, 0), "reduction dim 0 to have non-zero size");
  Tensor values = zeros({0}), at = zeros({0}, kLong), wide = zeros({0}, kDouble);
  EXPECT_ERROR_TEXT(sort_out(wide, at, x), "[sort_out] Expected out tensor to have dtype");
  EXPECT_ERROR_TEXT(topk_out(values, values, x, 1), "[topk_out] Expected out tensor to have");
  Tensor leaf = zeros({3}).requires_grad_();
  EXPECT_ERROR_TEXT(sort_out(values, at, leaf), "[sort_out]");
}

// ---- without repetitions ------------------------------------------------------------------------

TEST(Unique, EveryNaNIsOfItsOwn) {  // what PyTorch 2.15 gives
  const auto [v, inverse, counts] = _unique2(mixed(), true, true, true);
  expect_values(v, {0, 1, 2, kNaN, kNaN});
  expect_values(inverse, {1, 3, 2, 4, 0, 0});
  expect_values(counts, {2, 1, 1, 1, 1});
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
    EXPECT_ERROR_TEXT(unique_dim(x, dim), "[unique_dim] Dimension out of range");
    EXPECT_ERROR_TEXT(unique_consecutive(x, false, false, dim),
                      "[unique_consecutive] Dimension out of range");
    EXPECT_ERROR_TEXT(unique_dim(zeros({}), dim), "tensor has no dimensions");
  }
  EXPECT_ERROR_TEXT(unique_dim(zeros({2, 0}), 0),
                    "[unique_dim] There are 0 sized dimensions, and they aren't selected");
  EXPECT_ERROR_TEXT(unique_dim_consecutive(zeros({0, 2}), 1),
                    "[unique_dim_consecutive] There are 0 sized dimensions");
  EXPECT_EQ(std::get<0>(unique_dim(zeros({0, 2}), 0)).sizes(), IntArrayRef({0, 2}));
  EXPECT_ERROR_TEXT(_unique2(Tensor()), "[_unique2] undefined tensor");
  EXPECT_ERROR_TEXT(unique_dim(Tensor(), 0), "[unique_dim] undefined tensor");
}

// ---- places and counts --------------------------------------------------------------------------

TEST(Search, InTheCommonDtype) {  // what PyTorch 2.15 gives
  const Tensor sorted = constant({1, 3, 5});
  EXPECT_EQ(searchsorted(sorted, 2.5, true).scalar_type(), kInt);
  EXPECT_EQ(searchsorted(sorted, 2.5).dim(), 0);
  // Of which a number that C++ has says little.
  expect_values(searchsorted(integers({1, 2, 3}), 2.5), {2});
  expect_values(bucketize(integers({1, 2}), sorted), {0, 1});
  expect_values(searchsorted(constant({1, 2, 3}).to(kHalf), 2.0001), {1});
  expect_values(searchsorted(zeros({2, 0}), zeros({2, 3})), {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(searchsorted(sorted, zeros({0}, kDouble)).sizes(), IntArrayRef({0}));
}

TEST(Search, Errors) {
  const Tensor sorted = constant({1, 3, 5}), lines = zeros({2, 3}, kDouble);
  EXPECT_ERROR_TEXT(searchsorted(sorted, 2, false, true, "left"), "can't be set to opposites");
  EXPECT_ERROR_TEXT(searchsorted(sorted, 2, false, false, "x"),
                    "[searchsorted] side can only be 'left' or 'right' but got x");
  EXPECT_ERROR_TEXT(searchsorted(lines, 2), "input value can be a scalar only when");
  EXPECT_ERROR_TEXT(searchsorted(zeros({}, kDouble), 2), "input value can be a scalar only when");
  EXPECT_ERROR_TEXT(searchsorted(zeros({}, kDouble), sorted), "positive dimension");
  EXPECT_ERROR_TEXT(searchsorted(lines, zeros({3, 3}, kDouble)), "first N-1 dimensions");
  EXPECT_ERROR_TEXT(searchsorted(lines, sorted), "first N-1 dimensions");
  const auto by = [&](const Tensor& sorter) {
    searchsorted(sorted, sorted, false, false, std::nullopt, sorter);
  };
  EXPECT_ERROR_TEXT(by(integers({0, 1})), "boundary and sorter must have the same size");
  EXPECT_ERROR_TEXT(by(integers({0, 1, 2}).to(kInt)), "sorter must be a tensor of long dtype");
  EXPECT_ERROR_TEXT(by(integers({0, 1, 3})), "sorter index out of range");
  EXPECT_ERROR_TEXT(by(integers({0, INT64_MIN, 1})), "sorter index out of range");
  EXPECT_ERROR_TEXT(bucketize(sorted, lines), "[bucketize] boundaries tensor must be 1 dimension");
  EXPECT_ERROR_TEXT(bucketize(Tensor(), sorted), "[bucketize] undefined tensor");
  EXPECT_ERROR_TEXT(searchsorted(Tensor(), 1), "[searchsorted] undefined tensor");
  Tensor whole = zeros({0}, kLong);
  EXPECT_ERROR_TEXT(searchsorted_out(whole, sorted, sorted, true), "Expected out tensor");
}

TEST(Counts, AsPyTorch) {  // what PyTorch 2.15 gives
  const Tensor x = integers({1, 3, 1});
  expect_values(bincount(x.to(kByte), std::nullopt, 6), {0, 2, 0, 1, 0, 0});
  EXPECT_EQ(bincount(x, constant({1, 2, 3}).to(kHalf)).scalar_type(), kDouble);
  EXPECT_EQ(bincount(x, constant({1, 2, 3}).to(kFloat)).scalar_type(), kFloat);
  expect_values(bincount(zeros({0}, kLong), zeros({0}), 3), {0, 0, 0});
  EXPECT_EQ(bincount(zeros({0}, kLong), zeros({0}), 3).scalar_type(), kLong);
  EXPECT_EQ(bincount(zeros({0}, kLong)).sizes(), IntArrayRef({0}));
  expect_values(histc(constant({1, 2, 1, 3, kNaN, -1}), 4, 0, 3), {0, 2, 1, 1});
  expect_values(histc(constant({1, 1}), 3), {0, 2, 0});
  expect_values(histc(constant({1, 2, 3, 4}).to(kHalf), 3).to(kDouble), {1, 1, 2});
  expect_values(constant({1, 2}).histc(2, 5, 5), {1, 1});
  expect_values(histc(zeros({0}), 3), {0, 0, 0});
}

TEST(Counts, Errors) {
  const Tensor x = integers({1, 3, 1});
  for (const Tensor& t : {integers({-1}), integers({INT64_MIN}), zeros({2, 2}, kLong),
                          zeros({}, kLong), zeros({2}), zeros({2}, kBool)})
    EXPECT_ERROR_TEXT(bincount(t), "[bincount] only supports 1-d non-negative integral inputs");
  EXPECT_ERROR_TEXT(bincount(integers({INT64_MAX})), "[bincount] too many counts");
  for (int64_t least : {int64_t{-1}, INT64_MIN})
    EXPECT_ERROR_TEXT(bincount(x, std::nullopt, least), "[bincount] minlength should be >= 0");
  for (const Tensor& w : {zeros({2}), zeros({3, 1})})
    EXPECT_ERROR_TEXT(bincount(x, w), "weights should be 1-d and have the same length as input");
  const Tensor y = constant({1, 2});
  for (int64_t bins : {int64_t{0}, int64_t{-1}, INT64_MIN})
    EXPECT_ERROR_TEXT(histc(y, bins), "[histc] bins must be > 0");
  EXPECT_ERROR_TEXT(histc(y, 3, 2, 1), "[histc] max must be larger than min");
  EXPECT_ERROR_TEXT(histc(y, 3, kNaN, 1), "is not finite");
  EXPECT_ERROR_TEXT(histc(constant({1, INFINITY}), 3), "[histc] range of [1, inf] is not finite");
  EXPECT_ERROR_TEXT(histc(x), "[histc] only supports floating-point input");
}

// ---- running ------------------------------------------------------------------------------------

TEST(Running, AtTheEdges) {  // what PyTorch 2.15 gives
  EXPECT_EQ(cumprod(integers({2, 3}), 0, kFloat).scalar_type(), kFloat);
  Tensor small = integers({100, 3}).to(kByte);
  expect_values(small.cumprod_(0).to(kLong), {100, 44});  // in its own dtype
  const double inf = INFINITY;
  expect_values(logcumsumexp(constant({-inf, 0, 0, inf, 1, kNaN, 1}), 0),
                {-inf, 0, std::log(2.0), inf, inf, kNaN, kNaN});
  expect_values(logcumsumexp(constant({1000, 1000, -1000}), 0),
                {1000, 1000 + std::log(2.0), 1000 + std::log(2.0)});
}

TEST(Running, Derivatives) {
  const auto product = [](const std::vector<Tensor>& x) { return x[0].cumprod(1); };
  const auto sizes = [](const Tensor& x) { return x.view({2, 4}).requires_grad_(); };
  expect_derivatives(product, {sizes(constant({2, -3, 0.5, 4, 1, 2, 3, -1}))});
  // One 0, two of them, the first and the last element.
  expect_derivatives(product, {sizes(constant({2, 0, 0.5, 4, 0, 2, 0, -1}))});
  expect_derivatives(product, {sizes(constant({0, 0, 0, 0, 1, 2, 3, 0}))});
  expect_derivatives(OF_X(x[0].cumprod(0)), {sizes(constant({2, 0, 0.5, 4, 0, 2, 0, -1}))});
  // Numbers far from each other: no exponential of a difference overflows.
  Tensor x = constant({-800, 0, 800}).requires_grad_();
  logcumsumexp(x, 0).sum().backward();
  expect_values(x.grad(), {1, 1, 1});
  Tensor y = constant({2, 0, 3}).requires_grad_();
  cumprod(y, 0).sum().backward();
  expect_values(y.grad(), {1, 8, 0});
  Tensor z = constant({1, 2, 3}).requires_grad_();
  Tensor w = z.mul(1);
  w.cumprod_(0).sum().backward();
  expect_values(z.grad(), {9, 4, 2});
}

TEST(Running, Errors) {
  const Tensor x = zeros({2, 3});
  for (int64_t dim : {int64_t{2}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
    EXPECT_ERROR_TEXT(cumprod(x, dim), "[cumprod] Dimension out of range");
    EXPECT_ERROR_TEXT(cummax(x, dim), "[cummax] Dimension out of range");
    EXPECT_ERROR_TEXT(logcumsumexp(x, dim), "[logcumsumexp] Dimension out of range");
  }
  EXPECT_ERROR_TEXT(logcumsumexp(x.to(kLong), 0), "only supports floating-point");
  EXPECT_ERROR_TEXT(x.cumprod_(0, kDouble), "[cumprod_] Bad in-place call");
  EXPECT_ERROR_TEXT(x.to(kBool).cumprod_(0), "[cumprod_] does not support bool");
  EXPECT_ERROR_TEXT(cummin(Tensor(), 0), "[cummin] undefined tensor");
  Tensor whole = zeros({0}, kLong);
  EXPECT_ERROR_TEXT(cumprod_out(whole, x, 0, kFloat), "Expected out tensor");
  EXPECT_ERROR_TEXT(cummax_out(whole, whole, x, 0), "Expected out tensor");
}

TEST(Membership, OfNumbersThatAreNone) {
  const Tensor x = tensor({kNaN, 0., -0.0, 1., kInf, 3.}, kDouble);
  Values many = {kNaN, -kInf, kInf, -0.0, 3, kNaN, 7, 8, 9, 10, 11, 12};
  const Values want = {0, 1, 1, 0, 1, 1};
  EXPECT_EQ(values(isin(x, tensor(ArrayRef<double>(many), kDouble))), want);
  EXPECT_EQ(values(isin(x, tensor(ArrayRef<double>(many), kDouble), true)), want);
  many.resize(5);
  EXPECT_EQ(values(isin(x, tensor(ArrayRef<double>(many), kDouble))), want);
  EXPECT_EQ(values(isin(x, full({50}, kNaN, kDouble), false, true)), Values(6, 1));
  EXPECT_EQ(values(isin(x, empty({0}, kDouble), false, true)), Values(6, 1));
  // Among more that are none than are numbers.
  EXPECT_EQ(values(isin(x, cat({full({50}, kNaN, kDouble), tensor({3., 0.}, kDouble)}))),
            (Values{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(values(isin(x, kNaN)), Values(6, 0));
  EXPECT_EQ(values(isin(kNaN, x)), Values{0});
}
TEST(Membership, InTheCommonType) {
  const Tensor far = tensor({INT64_MAX, INT64_MIN, INT64_MAX - 1});
  const Tensor all = cat({far.slice(0, 0, 2), arange(20)});
  EXPECT_EQ(values(isin(far, all)), (Values{1, 1, 0}));
  EXPECT_EQ(values(isin(tensor({1, 2}), 2.5)), (Values{0, 0}));
  EXPECT_EQ(values(isin(tensor({1, 2}), tensor({2.5, 1.}))), (Values{1, 0}));
  EXPECT_EQ(values(isin(tensor({1.1}).to(kHalf), 1.1)), (Values{1}));  // as eq
  EXPECT_EQ(values(isin(tensor({1, 0}).to(kBool), tensor({0}).to(kBool))), (Values{0, 1}));
  // Numbers and tensors of no dimensions that small integers do not reach.
  const Tensor bytes = tensor({200, 255, 1, 2, 3, 4, 5, 6, 7, 8}).to(kByte),
               minus = full({}, -1, kLong);
  for (const Tensor& tests : {bytes, bytes.slice(0, 0, 2)}) {
    EXPECT_EQ(values(isin(456, tests)), Values{0});
    EXPECT_EQ(values(isin(minus, tests)), Values{0});
    EXPECT_EQ(values(isin(200, tests)), Values{1});
    EXPECT_EQ(values(isin(tests, minus)), Values(static_cast<size_t>(tests.numel()), 0));
  }
  const Tensor leaf = ones({2}).requires_grad_();
  EXPECT_FALSE(isin(leaf, leaf).requires_grad());
}
TEST(Membership, OfManyTakesNoProductOfSizes) {  // 10^10 truth values would be 10 GB
  const Tensor x = arange(100000), y = isin(x, x.mul(2));
  EXPECT_EQ(y.sum().item<int64_t>(), 50000);
  EXPECT_TRUE(equal(y, x.remainder(2).eq(0)));
}

}  // namespace
}  // namespace ramet
