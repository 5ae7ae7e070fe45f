// Rows of the operation table: mathematical functions of two tensors, whole numbers and their bits.
#include <cfloat>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_references.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

void add_pairs(Table& t) {
#define PAIR(name, dtypes, calls) \
  t.binary(#name, dtypes, -3, 3, calls(name, x[0], x[1]), point_of(2, #name)).within(2)
  PAIR(atan2, kAll, CALL_IN_PLACE_OUT).gives(floating);
  PAIR(copysign, kAll, CALL_IN_PLACE_OUT).gives(floating);
  PAIR(hypot, kFloats, CALL_IN_PLACE_OUT);
  PAIR(logaddexp, kFloats, CALL_OUT);
  PAIR(logaddexp2, kFloats, CALL_OUT);
  PAIR(fmax, kAll, CALL_OUT);
  PAIR(fmin, kAll, CALL_OUT);
#undef PAIR
  t.unary("copysign.number", kAll, -3, 3, CALL_IN_PLACE_OUT(copysign, x[0], -2),
          point_with(-2, "copysign"))
      .gives(floating);
}

void add_rare_pairs(Table& t) {
#define NUMBER(name, dtypes, low, high, number)                                      \
  t.unary(#name ".number", dtypes, low, high, CALL_IN_PLACE_OUT(name, x[0], number), \
          point_with(number, #name))
#define BASE(name, dtypes, low, high, number)                                     \
  t.unary(#name ".base", dtypes, low, high, CALL_OUT(name, Scalar(number), x[0]), \
          point_after(number, #name))
#define PAIR(name, dtypes, low, high)                                     \
  t.pointwise(#name, dtypes, {real({2, 3}, -3, 3), real({3}, low, high)}, \
              CALL_IN_PLACE_OUT(name, x[0], x[1]), point_of(2, #name))
  PAIR(xlogy, kAll, 0.3, 3).gives(floating).within(2);
  NUMBER(xlogy, kAll, -3, 3, 2.5).gives(floating).within(2);
  BASE(xlogy, kAll, 0.3, 3, 1.5).gives(floating).within(2);
  PAIR(heaviside, kAll, -3, 3);
  PAIR(ldexp, kAll, -3, 3).gives(floating).within(2);
  // Next to an infinity there is the largest number of a dtype; the neighbours of other numbers are
  // checked below.
  t.binary("nextafter", kFloats, -3, 3, CALL_IN_PLACE_OUT(nextafter, x[0], x[1]),
           [](double a, double b) { return std::nextafter(a, b); })
      .tame("what is next to an infinity depends on the dtype")
      .within(2);
  PAIR(gcd, kInts, -12, 12).no_gradient();
  PAIR(lcm, kInts, -12, 12).no_gradient();
  PAIR(bitwise_left_shift, kInts, -2, 12).no_gradient();
  PAIR(bitwise_right_shift, kInts, -2, 12).no_gradient();
  NUMBER(bitwise_left_shift, kBits, -9, 9, 6).gives(integer_at_least).no_gradient();
  NUMBER(bitwise_right_shift, kBits, -9, 9, 2).gives(integer_at_least).no_gradient();
  BASE(bitwise_left_shift, kBits, -2, 12, 5).gives(integer_at_least).no_gradient();
  BASE(bitwise_right_shift, kBits, -2, 12, 100).gives(integer_at_least).no_gradient();
#undef PAIR
#undef BASE
#undef NUMBER
  const auto powers = [&t](const char* name, Calls call, Point point) -> Row& {
    return t.unary(name, kAll, 0.4, 3, std::move(call), std::move(point)).gives([](ScalarType) {
      return kDouble;
    });
  };
  t.binary("float_power", kAll, 0.4, 3, CALL_OUT(float_power, x[0], x[1]), point_of(2, "pow"))
      .gives([](ScalarType) { return kDouble; });
  powers("float_power.number", CALL_OUT(float_power, x[0], 2.5), point_with(2.5, "pow"));
  powers("float_power.base", CALL_OUT(float_power, Scalar(2), x[0]), point_after(2, "pow"));
  const auto double_alone = [](Row& row) -> Row& { return row.only(set_of(kDouble)); };
  double_alone(t.binary("float_power.in_place", kAll, 0.4, 3,
                        CALL_IN_PLACE(float_power, x[0], x[1]), point_of(2, "pow")));
  double_alone(powers("float_power.in_place_number", CALL_IN_PLACE(float_power, x[0], 3),
                      point_with(3, "pow")));
}

// The neighbours of every number of 16 bits are those of the next and the previous bits, and those
// of wider ones are the C library's.
TEST(BinaryRows, NeighboursAreTheNextNumbers) {
  for (const ScalarType dtype : {kHalf, kBFloat16}) {
    const Tensor bits = arange(-32768, 32768, kInt).to(kShort), x = bits.view(dtype);
    const Tensor order = where(bits.lt(0), bits.to(kInt).neg().sub(32768), bits.to(kInt));
    for (const double side : {-INFINITY, INFINITY}) {
      const Tensor y = nextafter(x, full({}, side, dtype));
      EXPECT_EQ(y.scalar_type(), dtype);
      const Tensor at = y.view(kShort).to(kInt);
      const Tensor reached = where(at.lt(0), at.neg().sub(32768), at);
      // Both zeros are one number, an infinity on that side is its own neighbour, NaN stays.
      const Tensor step = reached.sub(order).mul(side > 0 ? 1 : -1);
      const Tensor want = where(x.eq(side).logical_or(x.isnan()), 0, where(x.eq(0), step, 1));
      EXPECT_TRUE(equal(step.masked_select(x.isnan().logical_not()),
                        want.masked_select(x.isnan().logical_not())));
      EXPECT_TRUE(equal(y.isnan(), x.isnan()));
      const double least = dtype == kHalf ? 0x1p-24 : 0x1p-133;
      for (const double zero : {0.0, -0.0})
        EXPECT_EQ(nextafter(full({}, zero, dtype), full({}, side, dtype)).item<double>(),
                  side > 0 ? least : -least);
    }
  }
  const std::vector<double> values = {
      0, -0.0, 1, -1, 0.1, -2.5, 4, 1e-310, 5e-324, 1e30, -INFINITY, INFINITY, DBL_MAX, NAN, 1e-42};
  for (const double a : values)
    for (const double b : values) {
      const auto expect = [&](const Tensor& y, double want) {
        const double got = y.item<double>();
        if (std::isnan(want)) EXPECT_TRUE(std::isnan(got)) << a << ' ' << b;
        else
          EXPECT_TRUE(got == want && std::signbit(got) == std::signbit(want))
              << a << ' ' << b << ": " << got << ", expected " << want;
      };
      expect(nextafter(full({}, a, kDouble), full({}, b, kDouble)), std::nextafter(a, b));
      const float x = static_cast<float>(a), y = static_cast<float>(b);
      expect(nextafter(full({}, x, kFloat), full({}, y, kFloat)), std::nextafter(x, y));
    }
}

RAMET_OP_TABLE(add_pairs, add_rare_pairs);

}  // namespace
}  // namespace op_table
}  // namespace ramet
