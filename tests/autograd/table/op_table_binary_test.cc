// Rows of the operation table: functions of several tensors, element by element, with broadcasting.
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_references.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

void add_arithmetic(Table& t) {
  t.binary(
       "add", kAll, -2, 2, [](V x) { return add(x[0], x[1]); }, point_of(2, "add"))
      .changes([](V x) { return x[0].add_(x[1]); })
      .writes([](Tensor& o, V x) { return add_out(o, x[0], x[1]); });
  t.binary(
       "add.alpha", kAll, -2, 2, [](V x) { return add(x[0], x[1], 2); }, point_of(2, "add", 2))
      .changes([](V x) { return x[0].add_(x[1], 2); })
      .writes([](Tensor& o, V x) { return add_out(o, x[0], x[1], 2); });
  t.unary(
       "add.number", kAll, -2, 2, [](V x) { return add(x[0], 3); }, point_with(3, "add"))
      .gives(integer_at_least)
      .changes([](V x) { return x[0].add_(3); })
      .writes([](Tensor& o, V x) { return add_out(o, x[0], 3); });
  t.binary(
       "sub", kNumbers, -2, 2, [](V x) { return sub(x[0], x[1]); }, point_of(2, "sub"))
      .changes([](V x) { return x[0].sub_(x[1]); })
      .writes([](Tensor& o, V x) { return sub_out(o, x[0], x[1]); });
  t.unary(
       "sub.number", kNumbers, -2, 2, [](V x) { return sub(x[0], 3); }, point_with(3, "sub"))
      .changes([](V x) { return x[0].sub_(3); })
      .writes([](Tensor& o, V x) { return sub_out(o, x[0], 3); });
  t.binary(
      "rsub", kNumbers, -2, 2, [](V x) { return rsub(x[0], x[1]); },
      [](double a, double b) { return b - a; });
  t.unary(
      "rsub.number", kNumbers, -2, 2, [](V x) { return rsub(x[0], 3, 2); },
      [](double a) { return 3 - 2 * a; });
  t.binary(
       "mul", kAll, -2, 2, [](V x) { return mul(x[0], x[1]); }, point_of(2, "mul"))
      .changes([](V x) { return x[0].mul_(x[1]); })
      .writes([](Tensor& o, V x) { return mul_out(o, x[0], x[1]); });
  t.unary(
       "mul.number", kAll, -2, 2, [](V x) { return mul(x[0], 3); }, point_with(3, "mul"))
      .gives(integer_at_least)
      .changes([](V x) { return x[0].mul_(3); })
      .writes([](Tensor& o, V x) { return mul_out(o, x[0], 3); });
  t.binary(
       "div", kAll, 0.5, 3, [](V x) { return div(x[0], x[1]); }, point_of(2, "div"))
      .gives(floating)
      .changes([](V x) { return x[0].div_(x[1]); })
      .writes([](Tensor& o, V x) { return div_out(o, x[0], x[1]); });
  t.unary(
       "div.number", kAll, -2, 2, [](V x) { return div(x[0], 4); }, point_with(4, "div"))
      .gives(floating)
      .changes([](V x) { return x[0].div_(4); })
      .writes([](Tensor& o, V x) { return div_out(o, x[0], 4); });
  t.binary(
       "div.trunc", kNumbers, 0.5, 9, [](V x) { return div(x[0], x[1], "trunc"); },
       point_of(2, "div_trunc"))
      .flat()
      .changes([](V x) { return x[0].div_(x[1], "trunc"); })
      .writes([](Tensor& o, V x) { return div_out(o, x[0], x[1], "trunc"); });
  t.binary(
       "div.floor", kNumbers, 0.5, 9, [](V x) { return div(x[0], x[1], "floor"); },
       point_of(2, "div_floor"))
      .flat()
      .changes([](V x) { return x[0].div_(x[1], "floor"); })
      .writes([](Tensor& o, V x) { return div_out(o, x[0], x[1], "floor"); });
  t.binary(
       "floor_divide", kNumbers, 0.5, 9, [](V x) { return floor_divide(x[0], x[1]); },
       point_of(2, "div_floor"))
      .flat()
      .changes([](V x) { return x[0].floor_divide_(x[1]); })
      .writes([](Tensor& o, V x) { return floor_divide_out(o, x[0], x[1]); });
  t.unary(
       "floor_divide.number", kAll, -9, 9, [](V x) { return floor_divide(x[0], 2); },
       point_with(2, "div_floor"))
      .flat()  // as in Python, inf // 2 is NaN
      .gives(integer_at_least)
      .changes([](V x) { return x[0].floor_divide_(2); })
      .writes([](Tensor& o, V x) { return floor_divide_out(o, x[0], 2); });
  t.unary(
       "div.number_floor", kAll, -9, 9, [](V x) { return div(x[0], 2, "floor"); },
       point_with(2, "div_floor"))
      .flat()
      .gives(integer_at_least)
      .changes([](V x) { return x[0].div_(2, "floor"); })
      .writes([](Tensor& o, V x) { return div_out(o, x[0], 2, "floor"); });
}

void add_powers(Table& t) {
  t.binary(
       "pow", kNumbers, 0.4, 3, [](V x) { return pow(x[0], x[1]); }, point_of(2, "pow"))
      .changes([](V x) { return x[0].pow_(x[1]); })
      .writes([](Tensor& o, V x) { return pow_out(o, x[0], x[1]); })
      .within(2);
  t.unary(
       "pow.number", kAll, -3, 3, [](V x) { return pow(x[0], 3); }, point_of(1, "cube"))
      .gives(integer_at_least)
      .changes([](V x) { return x[0].pow_(3); })
      .writes([](Tensor& o, V x) { return pow_out(o, x[0], 3); });
  t.unary(
       "pow.base", kAll, -2, 2, [](V x) { return pow(Scalar(2.5), x[0]); }, point_after(2.5, "pow"))
      .gives(floating)
      .within(2)
      .writes([](Tensor& o, V x) { return pow_out(o, Scalar(2.5), x[0]); });
  t.binary(
       "remainder", kNumbers, 0.7, 9, [](V x) { return remainder(x[0], x[1]); },
       point_of(2, "remainder"))
      .within(4)
      .changes([](V x) { return x[0].remainder_(x[1]); })
      .writes([](Tensor& o, V x) { return remainder_out(o, x[0], x[1]); });
  t.unary(
       "remainder.number", kAll, -9, 9, [](V x) { return remainder(x[0], 4); },
       point_with(4, "remainder"))
      .gives(integer_at_least)
      .changes([](V x) { return x[0].remainder_(4); })
      .writes([](Tensor& o, V x) { return remainder_out(o, x[0], 4); });
  t.unary(
       "remainder.dividend", kAll, 1, 5, [](V x) { return remainder(Scalar(7), x[0]); },
       point_after(7, "remainder"))
      .within(4)
      .gives(integer_at_least)
      .writes([](Tensor& o, V x) { return remainder_out(o, Scalar(7), x[0]); });
  t.binary(
       "fmod", kNumbers, 0.7, 9, [](V x) { return fmod(x[0], x[1]); }, point_of(2, "fmod"))
      .within(4)
      .changes([](V x) { return x[0].fmod_(x[1]); })
      .writes([](Tensor& o, V x) { return fmod_out(o, x[0], x[1]); });
  t.unary(
       "fmod.number", kAll, -9, 9, [](V x) { return fmod(x[0], 4); }, point_with(4, "fmod"))
      .gives(integer_at_least)
      .changes([](V x) { return x[0].fmod_(4); })
      .writes([](Tensor& o, V x) { return fmod_out(o, x[0], 4); });
  t.pointwise(
       "addcmul", kNumbers, {real({2, 3}), real({3}), real({2, 1})},
       [](V x) { return addcmul(x[0], x[1], x[2], 2); }, point_of(3, "addcmul", 2))
      .changes([](V x) { return x[0].addcmul_(x[1], x[2], 2); })
      .writes([](Tensor& o, V x) { return addcmul_out(o, x[0], x[1], x[2], 2); });
  t.pointwise(
       "addcdiv", kFloats, {real({2, 3}), real({3}), real({2, 1}, 0.5, 2)},
       [](V x) { return addcdiv(x[0], x[1], x[2], 2); }, point_of(3, "addcdiv", 2))
      .changes([](V x) { return x[0].addcdiv_(x[1], x[2], 2); })
      .writes([](Tensor& o, V x) { return addcdiv_out(o, x[0], x[1], x[2], 2); });
  t.pointwise(
       "lerp", kFloats, {real({2, 3}), real({3}), real({2, 1}, 0, 1)},
       [](V x) { return lerp(x[0], x[1], x[2]); }, point_of(3, "lerp"))
      .changes([](V x) { return x[0].lerp_(x[1], x[2]); })
      .writes([](Tensor& o, V x) { return lerp_out(o, x[0], x[1], x[2]); });
  t.binary(
       "lerp.number", kFloats, -2, 2, [](V x) { return lerp(x[0], x[1], 0.25); },
       point_with(0.25, "lerp", 2))
      .changes([](V x) { return x[0].lerp_(x[1], 0.25); })
      .writes([](Tensor& o, V x) { return lerp_out(o, x[0], x[1], 0.25); });
}

void add_comparisons(Table& t) {
  const auto row = [&t](const char* name, Sample sample, Call call, Point point) -> Row& {
    return t.pointwise(name, kAll, std::move(sample), std::move(call), std::move(point))
        .gives(boolean)
        .no_gradient();
  };
  const Sample two = {real({2, 3}), real({3})};
#define LOGIC(name, Struct)                                                 \
  row(                                                                      \
      #name, two, [](V x) { return name(x[0], x[1]); }, point_of(2, #name)) \
      .changes([](V x) { return x[0].name##_(x[1]); })                      \
      .writes([](Tensor& o, V x) { return name##_out(o, x[0], x[1]); });
#define COMPARE(name, Struct)                                                                   \
  LOGIC(name, Struct)                                                                           \
  row(                                                                                          \
      #name ".number", {real({3, 4})}, [](V x) { return name(x[0], 1); }, point_with(1, #name)) \
      .changes([](V x) { return x[0].name##_(1); })                                             \
      .writes([](Tensor& o, V x) { return name##_out(o, x[0], 1); });
  RAMET_COMPARE_FUNCTIONS(COMPARE)
  RAMET_LOGIC_FUNCTIONS(LOGIC)
#undef COMPARE
#undef LOGIC
#define BITS(name, Struct)                                       \
  t.pointwise(                                                   \
       #name, kBits, {real({2, 3}, -9, 9), real({3}, -9, 9)},    \
       [](V x) { return name(x[0], x[1]); }, point_of(2, #name)) \
      .no_gradient()                                             \
      .changes([](V x) { return x[0].name##_(x[1]); })           \
      .writes([](Tensor& o, V x) { return name##_out(o, x[0], x[1]); });
  RAMET_BITS_FUNCTIONS(BITS)
#undef BITS
  t.binary(
       "isclose", kAll, -2, 2, [](V x) { return isclose(x[0], x[1], 0.25, 0.5); },
       [](double a, double b) {
         return double(a == b || (std::isfinite(b) && std::isfinite(a) &&
                                  std::fabs(a - b) <= 0.5 + std::fabs(0.25 * b)));
       })
      .gives(boolean)
      .no_gradient();
}

void add_choices(Table& t) {
  t.pointwise(
       "where", kAll, {mask({2, 3}), real({2, 3}), real({3})},
       [](V x) { return where(x[0], x[1], x[2]); }, point_of(3, "where"))
      .writes([](Tensor& o, V x) { return where_out(o, x[0], x[1], x[2]); });
  t.pointwise(
       "where.number", kAll, {mask({2, 3}), real({2, 3})}, [](V x) { return where(x[0], 1, x[1]); },
       [](D x) { return x[0] != 0 ? 1 : x[1]; })
      .gives(integer_at_least);
  t.unary(
       "clamp", kAll, -3, 3, [](V x) { return clamp(x[0], Scalar(-1), Scalar(1)); },
       point_of(1, "clamp", -1, 1))
      .changes([](V x) { return x[0].clamp_(Scalar(-1), Scalar(1)); })
      .writes([](Tensor& o, V x) { return clamp_out(o, x[0], Scalar(-1), Scalar(1)); })
      .gives(integer_at_least);
  t.pointwise(
       "clamp.tensors", kNumbers, {real({2, 3}, -3, 3), real({3}, -1, 0), real({1}, 0, 2)},
       [](V x) { return clamp(x[0], std::optional<Tensor>(x[1]), std::optional<Tensor>(x[2])); },
       point_of(3, "clamp_tensor"))
      .changes(
          [](V x) { return x[0].clamp_(std::optional<Tensor>(x[1]), std::optional<Tensor>(x[2])); })
      .writes([](Tensor& o, V x) {
        return clamp_out(o, x[0], std::optional<Tensor>(x[1]), std::optional<Tensor>(x[2]));
      });
  t.unary(
       "clip", kAll, -3, 3, [](V x) { return clip(x[0], Scalar(-1)); }, point_with(-1, "maximum"))
      .changes([](V x) { return x[0].clip_(Scalar(-1)); })
      .writes([](Tensor& o, V x) { return clip_out(o, x[0], Scalar(-1)); })
      .gives(integer_at_least);
  t.unary(
       "clamp_min", kAll, -3, 3, [](V x) { return clamp_min(x[0], 1); }, point_with(1, "maximum"))
      .changes([](V x) { return x[0].clamp_min_(1); })
      .writes([](Tensor& o, V x) { return clamp_min_out(o, x[0], 1); })
      .gives(integer_at_least);
  t.binary(
       "clamp_min.tensor", kAll, -3, 3, [](V x) { return clamp_min(x[0], x[1]); },
       point_of(2, "maximum"))
      .changes([](V x) { return x[0].clamp_min_(x[1]); })
      .writes([](Tensor& o, V x) { return clamp_min_out(o, x[0], x[1]); });
  t.unary(
       "clamp_max", kAll, -3, 3, [](V x) { return clamp_max(x[0], 1); }, point_with(1, "minimum"))
      .changes([](V x) { return x[0].clamp_max_(1); })
      .writes([](Tensor& o, V x) { return clamp_max_out(o, x[0], 1); })
      .gives(integer_at_least);
  t.binary(
       "clamp_max.tensor", kAll, -3, 3, [](V x) { return clamp_max(x[0], x[1]); },
       point_of(2, "minimum"))
      .changes([](V x) { return x[0].clamp_max_(x[1]); })
      .writes([](Tensor& o, V x) { return clamp_max_out(o, x[0], x[1]); });
  t.binary(
       "maximum", kAll, -2, 2, [](V x) { return maximum(x[0], x[1]); }, point_of(2, "maximum"))
      .writes([](Tensor& o, V x) { return maximum_out(o, x[0], x[1]); });
  t.binary(
       "minimum", kAll, -2, 2, [](V x) { return minimum(x[0], x[1]); }, point_of(2, "minimum"))
      .writes([](Tensor& o, V x) { return minimum_out(o, x[0], x[1]); });
  t.binary(
       "max.other", kAll, -2, 2, [](V x) { return max(x[0], x[1]); }, point_of(2, "maximum"))
      .writes([](Tensor& o, V x) { return max_out(o, x[0], x[1]); });
  t.binary(
       "min.other", kAll, -2, 2, [](V x) { return min(x[0], x[1]); }, point_of(2, "minimum"))
      .writes([](Tensor& o, V x) { return min_out(o, x[0], x[1]); });
  t.pointwise(
       "masked_fill", kAll, {real({2, 3}), mask({3})},
       [](V x) { return masked_fill(x[0], x[1], 1); }, [](D x) { return x[1] != 0 ? 1 : x[0]; })
      .changes([](V x) { return x[0].masked_fill_(x[1], 1); })
      .writes([](Tensor& o, V x) { return masked_fill_out(o, x[0], x[1], 1); });
  t.pointwise(
       "native_dropout_backward", kAll, {real({2, 3}), mask({2, 3})},
       [](V x) { return native_dropout_backward(x[0], x[1], 2); }, point_of(2, "scaled_product", 2))
      .alike()
      .gives(floating);
}

std::vector<Row> rows() {
  Table t;
  add_arithmetic(t);
  add_powers(t);
  add_comparisons(t);
  add_choices(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
