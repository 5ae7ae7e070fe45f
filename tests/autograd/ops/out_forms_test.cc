// In-place and out forms beyond what the operation table tries. Which dtypes and devices `out` may
// have; memory that operands and `out` share; in-place functions. What in-place truth values do to
// the history; any and all over lists of dimensions.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Values = std::vector<double>;

Tensor nothing(ScalarType t) { return empty({0}, t); }

TEST(OutForms, ResultMustBeCastable) {
  const Tensor x = constant({0.25, 4});
  Tensor wide = nothing(kDouble), narrow = nothing(kFloat), whole = nothing(kLong);
  sqrt_out(wide, x);
  EXPECT_EQ(values(wide), (Values{0.5, 2}));
  sqrt_out(narrow, x);
  EXPECT_EQ(values(narrow), (Values{0.5, 2}));
  EXPECT_EQ(narrow.scalar_type(), kFloat);
  EXPECT_ERROR_TEXT(sqrt_out(whole, x), "[sqrt_out] result type Double can't be cast");
  EXPECT_ERROR_TEXT(pow_out(whole, x, 2), "[pow_out] result type Double");
  EXPECT_ERROR_TEXT(gelu_out(whole, x), "[gelu_out] result type Double");
  Tensor numbers = nothing(kDouble);
  eq_out(numbers, x, 4);
  EXPECT_EQ(values(numbers), (Values{0, 1}));
  logical_and_out(numbers, x, constant({0, 3}));
  EXPECT_EQ(values(numbers), (Values{0, 1}));
}

// The function's result, cast: whole numbers wrap around and 16-bit ones are rounded before.
TEST(OutForms, ComputeInTheResultsDtype) {
  const Tensor six = constant({6}).to(kChar), hundred = constant({100}).to(kChar);
  for (const ScalarType t : {kInt, kLong, kFloat, kDouble}) {
    Tensor out = nothing(t);
    add_out(out, hundred, hundred);
    EXPECT_EQ(values(out.to(kDouble)), Values{-56}) << t;
    mul_out(out, hundred, hundred);
    EXPECT_EQ(values(out.to(kDouble)), Values{16}) << t;
    pow_out(out, six, six);
    EXPECT_EQ(values(out.to(kDouble)), Values{64}) << t;
    pow_out(out, six.to(kShort), six.to(kShort));
    EXPECT_EQ(values(out.to(kDouble)), Values{-18880}) << t;
    neg_out(out, constant({-128}).to(kChar));
    EXPECT_EQ(values(out.to(kDouble)), Values{-128}) << t;
  }
  const Tensor yes = constant({1}).to(kBool);
  for (const ScalarType t : {kByte, kLong, kFloat, kDouble}) {
    Tensor out = nothing(t);
    add_out(out, yes, yes, 3);
    EXPECT_EQ(values(out.to(kDouble)), Values{1}) << t;
  }
  Tensor wide = nothing(kDouble);
  add_out(wide, constant({2048}).to(kHalf), constant({1}).to(kHalf));
  EXPECT_EQ(values(wide), Values{2048});
  exp_out(wide, constant({1}).to(kBFloat16));
  EXPECT_EQ(values(wide), Values{2.71875});
}

TEST(OutForms, OthersNeedTheResultsOwnDtype) {
  const Tensor x = constant({1, 4}), at = tensor({1, 0});
  Tensor narrow = nothing(kFloat), whole = nothing(kLong);
  for (const auto& wrong : std::vector<std::function<void()>>{
           [&] { gather_out(narrow, x, 0, at); }, [&] { index_select_out(narrow, x, 0, at); },
           [&] { amax_out(narrow, x); }, [&] { argmax_out(narrow, x); },
           [&] { norm_out(narrow, x); }, [&] { softmax_out(narrow, x, 0); },
           [&] { sum_out(narrow, x); }, [&] { sum_out(narrow, x, {0}, false, kDouble); },
           [&] { max_out(narrow, whole, x, 0); }, [&] { max_out(narrow, narrow, x, 0); },
           [&] { dot_out(narrow, x, x); }})
    EXPECT_ERROR_TEXT(wrong(), "Expected out tensor to have dtype");
  EXPECT_ERROR_TEXT(any_out(whole, x), "[any_out] only supports bool tensor");
  EXPECT_ERROR_TEXT(mean_out(narrow, at, {0}), "[mean_out] could not infer");
  EXPECT_EQ(narrow.sizes(), IntArrayRef({0})) << "untouched";
}

TEST(OutForms, SumsOverDimensionsComputeInTheDtypeOfOut) {  // as LibTorch
  const Tensor x = constant({1.5, 1.5});
  Tensor whole = nothing(kLong), narrow = nothing(kFloat);
  sum_out(whole, x, {0});
  EXPECT_EQ(values(whole), Values{2});
  prod_out(whole, x, 0);
  EXPECT_EQ(values(whole), Values{1});
  cumsum_out(whole, x, 0);
  EXPECT_EQ(values(whole), (Values{1, 2}));
  mean_out(narrow, x, {0});
  EXPECT_EQ(values(narrow), Values{1.5});
}

TEST(OutForms, ValuesAndPositions) {
  const Tensor x = constant({3, 9, 4, 8, 2, 8}).view({2, 3});
  Tensor values_out = nothing(kDouble), positions = nothing(kLong);
  const auto [v, at] = max_out(values_out, positions, x, 1);
  EXPECT_TRUE(v.is_same(values_out) && at.is_same(positions));
  EXPECT_EQ(values(v), (Values{9, 8}));
  EXPECT_EQ(values(at), (Values{1, 0}));
}

TEST(OutForms, OutMayBeAnOperand) {
  Tensor x = constant({1, 2, 3, 4}).view({2, 2});
  Tensor rows = x.t();  // the same memory the other way round
  exp_out(rows, x);
  EXPECT_EQ(values(x), (Values{std::exp(1), std::exp(3), std::exp(2), std::exp(4)}));
  Tensor y = constant({4, 1, 3, 2});
  index_select_out(y, y, 0, tensor({3, 2, 1, 0}));
  EXPECT_EQ(values(y), (Values{2, 3, 1, 4}));
  // As an operand it is read after the resizing. That is refused, as in LibTorch (except its mm,
  // which gives zeros).
  const Tensor wide = ones({2, 4}, kDouble), yes = ones({2, 4}, kBool);
  Tensor narrow = constant({1, 2}).view({2, 1});
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { add_out(narrow, narrow, wide); }, [&] { where_out(narrow, yes, narrow, wide); },
           [&] { maximum_out(narrow, wide, narrow); }, [&] { ge_out(narrow, narrow, wide); },
           [&] { pow_out(narrow, wide, narrow); }, [&] { addcmul_out(narrow, wide, wide, narrow); },
           [&] { mm_out(narrow, narrow, wide.narrow(0, 0, 1)); }})
    EXPECT_ERROR_TEXT(call(), "output with shape [2, 1] doesn't match the broadcast shape");
  EXPECT_EQ(values(narrow), (Values{1, 2}));
  cumsum_out(y, y, 0);
  EXPECT_EQ(values(y), (Values{2, 5, 6, 10}));
}

TEST(OutForms, OtherDevicesUndefinedAndHistory) {
  const Tensor x = constant({1, 2}), leafy = leaf({1, 2});
  Tensor elsewhere = empty({2}, TensorOptions(kDouble).device(Device(kCPU, 1))), none,
         out = constant({7, 7});
  for (const auto& call : std::vector<std::function<void(Tensor&, const Tensor&)>>{
           [](Tensor&o, const Tensor&a) { exp_out(o, a); },
           [](Tensor&o, const Tensor&a) { tan_out(o, a); },
           [](Tensor&o, const Tensor&a) { silu_out(o, a); },
           [](Tensor&o, const Tensor&a) { add_out(o, a, a); },
           [](Tensor&o, const Tensor&a) { add_out(o, a, 1); },
           [](Tensor&o, const Tensor&a) { pow_out(o, 2, a); },
           [](Tensor&o, const Tensor&a) { clamp_out(o, a, 0, 1); },
           [](Tensor&o, const Tensor&a) { maximum_out(o, a, a); },
           [](Tensor&o, const Tensor&a) {
             cat_out(o, {a, a});
           },
           [](Tensor&o, const Tensor&a) {
             stack_out(o, {a, a});
           },
           [](Tensor&o, const Tensor&a) { sum_out(o, a, {0}); },
           [](Tensor&o, const Tensor&a) {
             take_out(o, a, tensor({0, 1}));
           }}) {
    EXPECT_THROW(call(elsewhere, x), Error);
    EXPECT_THROW(call(none, x), Error);
    EXPECT_THROW(call(out, Tensor()), Error);
    EXPECT_ERROR_TEXT(call(out, leafy), "don't support automatic differentiation");
    EXPECT_EQ(values(out), (Values{7, 7})) << "checks come first";
    NoGradGuard off;
    Tensor fresh = nothing(kDouble);
    call(fresh, leafy);
    EXPECT_FALSE(fresh.requires_grad());
  }
}

TEST(InPlaceForms, Functions) {
#define EXPECT_SAME(name, Row)                                            \
  do {                                                                    \
    Tensor x = constant({0.25, 0.75, 1.5}), y = x.clone();                \
    EXPECT_TRUE(name##_(y).is_same(y));                                   \
    EXPECT_TRUE(allclose(y, name(x), 0, 0, /*equal_nan=*/true)) << #name; \
  } while (false);
  RAMET_UNARY_FUNCTIONS(EXPECT_SAME)
  RAMET_UNARY_COMPOSED(EXPECT_SAME)
#undef EXPECT_SAME
  Tensor x = constant({-2, 0.5, 2});
  clamp_(x, Scalar(-1), Scalar(1));
  EXPECT_EQ(values(x), (Values{-1, 0.5, 1}));
  clamp_min_(x, 0);
  clamp_max_(x, constant({1, 0.25, 1}));
  EXPECT_EQ(values(x), (Values{0, 0.25, 1}));
}

TEST(InPlaceForms, TruthValuesKeepTheDtypeAndCutTheGradient) {
  const Tensor w = leaf({1, 2, 3});
  Tensor y = w * 2;
  y.ge_(4);
  EXPECT_EQ(values(y), (Values{0, 1, 1}));
  EXPECT_EQ(y.scalar_type(), kDouble);
  (y * w).sum().backward();
  EXPECT_EQ(values(w.grad()), (Values{0, 1, 1}));
  Tensor z = tensor({3, 0, 5});
  z.logical_and_(tensor({1, 1, 0}));
  EXPECT_EQ(values(z), (Values{1, 0, 0}));
  EXPECT_THROW(w.eq_(1), Error) << "a leaf that requires grad";
  EXPECT_ERROR_TEXT(y.lt_(ones({2, 3})), "[lt_] output with shape");
}

// PyTorch 2.15: torch.any(x, dim=[]) reduces nothing.
TEST(Truth, OverLists) {
  const Tensor x = tensor({0, 1, 0, 0}).view({2, 2});
  EXPECT_EQ(values(any(x, {0, 1})), Values{1});
  EXPECT_EQ(values(all(x, {0, 1}, true)), Values{0});
  EXPECT_EQ(all(x, {0, 1}, true).sizes(), IntArrayRef({1, 1}));
  EXPECT_EQ(values(x.any(IntArrayRef({-1}))), (Values{1, 0}));
  EXPECT_EQ(values(any(x, std::nullopt, true)), Values{1});
  EXPECT_EQ(values(any(x, IntArrayRef())), (Values{0, 1, 0, 0}));
  EXPECT_THROW(all(x, {0, 2}), Error);
}

}  // namespace
}  // namespace ramet
