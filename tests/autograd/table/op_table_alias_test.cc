// Rows of the operation table: functions by their other names.
#include "autograd/ops.h"
#include "tests/autograd/table/op_references.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

void add_names_of_one(Table& t) {
#define ONE(name, of)                                                                          \
  t.pointwise(#name,                                                                           \
              references::reference(#of).integers == references::kNotBool ? kNumbers : kAll,   \
              {real({3, 4}, references::reference(#of).low, references::reference(#of).high)}, \
              CALL_IN_PLACE_OUT(name, x[0]), point_of(1, #of))
  ONE(absolute, abs);
  ONE(negative, neg);
  ONE(fix, trunc).flat();
  ONE(arcsin, asin).gives(floating);
  ONE(arccos, acos).gives(floating);
  ONE(arctan, atan).gives(floating);
  ONE(arcsinh, asinh).gives(floating);
  ONE(arccosh, acosh).gives(floating);
  ONE(arctanh, atanh).gives(floating);
#undef ONE
}

void add_names_of_two(Table& t) {
#define TWO(name, dtypes, low, high, of) \
  t.binary(#name, dtypes, low, high, CALL_IN_PLACE_OUT(name, x[0], x[1]), point_of(2, #of))
#define NUMBER(name, dtypes, of) \
  t.unary(#name ".number", dtypes, -2, 2, CALL_IN_PLACE_OUT(name, x[0], 3), point_with(3, #of))
  TWO(multiply, kAll, -2, 2, mul);
  NUMBER(multiply, kAll, mul).gives(integer_at_least);
  TWO(divide, kAll, 0.5, 3, div).gives(floating);
  NUMBER(divide, kAll, div).gives(floating);
  TWO(true_divide, kAll, 0.5, 3, div).gives(floating);
  NUMBER(true_divide, kAll, div).gives(floating);
  TWO(arctan2, kAll, -2, 2, atan2).gives(floating).within(2);
  TWO(subtract, kNumbers, -2, 2, sub);
  NUMBER(subtract, kNumbers, sub);
#define COMPARE(name, of)                                  \
  TWO(name, kAll, -2, 2, of).gives(boolean).no_gradient(); \
  NUMBER(name, kAll, of).gives(boolean).no_gradient()
  COMPARE(greater, gt);
  COMPARE(greater_equal, ge);
  COMPARE(less, lt);
  COMPARE(less_equal, le);
  COMPARE(not_equal, ne);
#undef COMPARE
#undef NUMBER
#undef TWO
  t.binary("divide.floor", kNumbers, 0.5, 9, CALL_IN_PLACE_OUT(divide, x[0], x[1], "floor"),
           point_of(2, "div_floor"))
      .flat();
  t.unary("divide.number_floor", kAll, -9, 9, CALL_IN_PLACE_OUT(divide, x[0], 2, "floor"),
          point_with(2, "div_floor"))
      .flat()
      .gives(integer_at_least);
  t.row("ger", kAll, {{real({3}), real({4})}, {real({0}), real({4})}}, EXPRESSION(x[0].ger(x[1])),
        [](P x) {
          return made({x[0].size(0), x[1].size(0)},
                      [&](const Index& i) { return x[0].at({i[0]}) * x[1].at({i[1]}); });
        })
      .big({real({97}), real({131})}, 1)
      .writes(OUT(ger, x[0], x[1]));
}

// In-place functions, and methods by another name.
TEST(AliasRows, InPlaceFunctions) {
  Tensor x = tensor({-1.5, 0.25});
  EXPECT_TRUE(negative_(x).is_same(x));
  expect_close(x, Plain{{2}, {1.5, -0.25}});
  expect_close(fix_(x), Plain{{2}, {1, 0}});
  Tensor y = tensor({0.5});
  EXPECT_TRUE(equal(arctanh_(y), atanh(tensor({0.5}))));
  const Tensor z = tensor({1., 2.});
  expect_close(z.subtract(tensor({1., 1.}), 2), Plain{{2}, {-1, 0}});
  expect_close(z.subtract_(1, 2), Plain{{2}, {-1, 0}});
}

RAMET_OP_TABLE(add_names_of_one, add_names_of_two);

}  // namespace
}  // namespace op_table
}  // namespace ramet
