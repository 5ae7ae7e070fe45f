// Rows of the operation table: functions of several tensors, element by element, with broadcasting.
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_references.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

void add_arithmetic(Table& t) {
  t.binary("add", kAll, -2, 2, CALL_IN_PLACE_OUT(add, x[0], x[1]), point_of(2, "add"));
  t.binary("add.alpha", kAll, -2, 2, CALL_IN_PLACE_OUT(add, x[0], x[1], 2), point_of(2, "add", 2));
  t.unary("add.number", kAll, -2, 2, CALL_IN_PLACE_OUT(add, x[0], 3), point_with(3, "add"))
      .gives(integer_at_least);
  t.binary("sub", kNumbers, -2, 2, CALL_IN_PLACE_OUT(sub, x[0], x[1]), point_of(2, "sub"));
  t.unary("sub.number", kNumbers, -2, 2, CALL_IN_PLACE_OUT(sub, x[0], 3), point_with(3, "sub"));
  t.binary("rsub", kNumbers, -2, 2, CALL(rsub, x[0], x[1]),
           [](double a, double b) { return b - a; });
  t.unary("rsub.number", kNumbers, -2, 2, CALL(rsub, x[0], 3, 2),
          [](double a) { return 3 - 2 * a; });
  t.binary("mul", kAll, -2, 2, CALL_IN_PLACE_OUT(mul, x[0], x[1]), point_of(2, "mul"));
  t.unary("mul.number", kAll, -2, 2, CALL_IN_PLACE_OUT(mul, x[0], 3), point_with(3, "mul"))
      .gives(integer_at_least);
  t.binary("div", kAll, 0.5, 3, CALL_IN_PLACE_OUT(div, x[0], x[1]), point_of(2, "div"))
      .gives(floating);
  t.unary("div.number", kAll, -2, 2, CALL_IN_PLACE_OUT(div, x[0], 4), point_with(4, "div"))
      .gives(floating);
  t.binary("div.trunc", kNumbers, 0.5, 9, CALL_IN_PLACE_OUT(div, x[0], x[1], "trunc"),
           point_of(2, "div_trunc"))
      .flat();
  t.binary("div.floor", kNumbers, 0.5, 9, CALL_IN_PLACE_OUT(div, x[0], x[1], "floor"),
           point_of(2, "div_floor"))
      .flat();
  t.binary("floor_divide", kNumbers, 0.5, 9, CALL_IN_PLACE_OUT(floor_divide, x[0], x[1]),
           point_of(2, "div_floor"))
      .flat();
  t.unary("floor_divide.number", kAll, -9, 9, CALL_IN_PLACE_OUT(floor_divide, x[0], 2),
          point_with(2, "div_floor"))
      .flat()  // as in Python, inf // 2 is NaN
      .gives(integer_at_least);
  t.unary("div.number_floor", kAll, -9, 9, CALL_IN_PLACE_OUT(div, x[0], 2, "floor"),
          point_with(2, "div_floor"))
      .flat()
      .gives(integer_at_least);
}

void add_powers(Table& t) {
  t.binary("pow", kNumbers, 0.4, 3, CALL_IN_PLACE_OUT(pow, x[0], x[1]), point_of(2, "pow"))
      .within(2);
  t.unary("pow.number", kAll, -3, 3, CALL_IN_PLACE_OUT(pow, x[0], 3), point_of(1, "cube"))
      .gives(integer_at_least);
  t.unary("pow.base", kAll, -2, 2, CALL_OUT(pow, Scalar(2.5), x[0]), point_after(2.5, "pow"))
      .gives(floating)
      .within(2);
  t.binary("remainder", kNumbers, 0.7, 9, CALL_IN_PLACE_OUT(remainder, x[0], x[1]),
           point_of(2, "remainder"))
      .within(4);
  t.unary("remainder.number", kAll, -9, 9, CALL_IN_PLACE_OUT(remainder, x[0], 4),
          point_with(4, "remainder"))
      .gives(integer_at_least);
  t.unary("remainder.dividend", kAll, 1, 5, CALL_OUT(remainder, Scalar(7), x[0]),
          point_after(7, "remainder"))
      .within(4)
      .gives(integer_at_least);
  t.binary("fmod", kNumbers, 0.7, 9, CALL_IN_PLACE_OUT(fmod, x[0], x[1]), point_of(2, "fmod"))
      .within(4);
  t.unary("fmod.number", kAll, -9, 9, CALL_IN_PLACE_OUT(fmod, x[0], 4), point_with(4, "fmod"))
      .gives(integer_at_least);
  t.pointwise("addcmul", kNumbers, {real({2, 3}), real({3}), real({2, 1})},
              CALL_IN_PLACE_OUT(addcmul, x[0], x[1], x[2], 2), point_of(3, "addcmul", 2));
  t.pointwise("addcdiv", kFloats, {real({2, 3}), real({3}), real({2, 1}, 0.5, 2)},
              CALL_IN_PLACE_OUT(addcdiv, x[0], x[1], x[2], 2), point_of(3, "addcdiv", 2));
  t.pointwise("lerp", kFloats, {real({2, 3}), real({3}), real({2, 1}, 0, 1)},
              CALL_IN_PLACE_OUT(lerp, x[0], x[1], x[2]), point_of(3, "lerp"));
  t.binary("lerp.number", kFloats, -2, 2, CALL_IN_PLACE_OUT(lerp, x[0], x[1], 0.25),
           point_with(0.25, "lerp", 2));
}

void add_comparisons(Table& t) {
  const auto row = [&t](const char* name, Sample sample, Calls call, Point point) -> Row& {
    return t.pointwise(name, kAll, std::move(sample), std::move(call), std::move(point))
        .gives(boolean)
        .no_gradient();
  };
  const Sample two = {real({2, 3}), real({3})};
#define LOGIC(name, Struct) \
  row(#name, two, CALL_IN_PLACE_OUT(name, x[0], x[1]), point_of(2, #name));
#define COMPARE(name, Struct) \
  LOGIC(name, Struct)         \
  row(#name ".number", {real({3, 4})}, CALL_IN_PLACE_OUT(name, x[0], 1), point_with(1, #name));
  RAMET_COMPARE_FUNCTIONS(COMPARE)
  RAMET_LOGIC_FUNCTIONS(LOGIC)
#undef COMPARE
#undef LOGIC
#define BITS(name, Struct)                                             \
  t.pointwise(#name, kBits, {real({2, 3}, -9, 9), real({3}, -9, 9)},   \
              CALL_IN_PLACE_OUT(name, x[0], x[1]), point_of(2, #name)) \
      .no_gradient();
  RAMET_BITS_FUNCTIONS(BITS)
#undef BITS
  t.binary("isclose", kAll, -2, 2, CALL(isclose, x[0], x[1], 0.25, 0.5),
           [](double a, double b) {
             return double(a == b || (std::isfinite(b) && std::isfinite(a) &&
                                      std::fabs(a - b) <= 0.5 + std::fabs(0.25 * b)));
           })
      .gives(boolean)
      .no_gradient();
}

void add_choices(Table& t) {
  t.pointwise("where", kAll, {mask({2, 3}), real({2, 3}), real({3})},
              CALL_OUT(where, x[0], x[1], x[2]), point_of(3, "where"));
  t.pointwise("where.number", kAll, {mask({2, 3}), real({2, 3})}, CALL(where, x[0], 1, x[1]),
              [](D x) { return x[0] != 0 ? 1 : x[1]; })
      .gives(integer_at_least);
  t.unary("clamp", kAll, -3, 3, CALL_IN_PLACE_OUT(clamp, x[0], Scalar(-1), Scalar(1)),
          point_of(1, "clamp", -1, 1))
      .gives(integer_at_least);
  t.pointwise(
      "clamp.tensors", kNumbers, {real({2, 3}, -3, 3), real({3}, -1, 0), real({1}, 0, 2)},
      CALL_IN_PLACE_OUT(clamp, x[0], std::optional<Tensor>(x[1]), std::optional<Tensor>(x[2])),
      point_of(3, "clamp_tensor"));
  t.unary("clip", kAll, -3, 3, CALL_IN_PLACE_OUT(clip, x[0], Scalar(-1)), point_with(-1, "maximum"))
      .gives(integer_at_least);
  t.unary("clamp_min", kAll, -3, 3, CALL_IN_PLACE_OUT(clamp_min, x[0], 1), point_with(1, "maximum"))
      .gives(integer_at_least);
  t.binary("clamp_min.tensor", kAll, -3, 3, CALL_IN_PLACE_OUT(clamp_min, x[0], x[1]),
           point_of(2, "maximum"));
  t.unary("clamp_max", kAll, -3, 3, CALL_IN_PLACE_OUT(clamp_max, x[0], 1), point_with(1, "minimum"))
      .gives(integer_at_least);
  t.binary("clamp_max.tensor", kAll, -3, 3, CALL_IN_PLACE_OUT(clamp_max, x[0], x[1]),
           point_of(2, "minimum"));
  t.binary("maximum", kAll, -2, 2, CALL_OUT(maximum, x[0], x[1]), point_of(2, "maximum"));
  t.binary("minimum", kAll, -2, 2, CALL_OUT(minimum, x[0], x[1]), point_of(2, "minimum"));
  t.binary("max.other", kAll, -2, 2, CALL_OUT(max, x[0], x[1]), point_of(2, "maximum"));
  t.binary("min.other", kAll, -2, 2, CALL_OUT(min, x[0], x[1]), point_of(2, "minimum"));
  t.pointwise("masked_fill", kAll, {real({2, 3}), mask({3})},
              CALL_IN_PLACE_OUT(masked_fill, x[0], x[1], 1),
              [](D x) { return x[1] != 0 ? 1 : x[0]; });
  t.pointwise("native_dropout_backward", kAll, {real({2, 3}), mask({2, 3})},
              CALL(native_dropout_backward, x[0], x[1], 2), point_of(2, "scaled_product", 2))
      .alike()
      .gives(floating);
}

RAMET_OP_TABLE(add_arithmetic, add_powers, add_comparisons, add_choices);

}  // namespace
}  // namespace op_table
}  // namespace ramet
