// Rows of the operation table: functions of one tensor, element by element, and the derivatives of
// activations.
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_references.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

using references::reference, references::Reference;

void add_unary(Table& t) {
  const auto function = [&t](const char* name, Calls calls) -> Row& {
    const Reference& of = reference(name);
    const uint16_t dtypes = of.integers == references::kNone      ? kFloats
                            : of.integers == references::kNotBool ? kNumbers
                                                                  : kAll;
    Row& row = t.pointwise(name, dtypes, {real({3, 4}, of.low, of.high)}, std::move(calls),
                           point_of(1, name));
    row.constant_gradient = of.flat;
    return row.gives(of.integers == references::kFloats         ? floating
                     : of.integers == references::kAtLeastInt64 ? integer_at_least
                                                                : same);
  };
#define FUNCTION(name) function(#name, CALL_IN_PLACE_OUT(name, x[0]))
#define RAMET_X(name, Struct) FUNCTION(name);
  RAMET_UNARY_FUNCTIONS(RAMET_X)
  RAMET_UNARY_METHODS(RAMET_X)
  RAMET_UNARY_COMPOSED(RAMET_X)
#undef RAMET_X
  FUNCTION(logical_not).gives(boolean).no_gradient();
  FUNCTION(bitwise_not).no_gradient().only(kInts).dtypes = kBits;
#undef FUNCTION
  t.unary("bitwise_not.bool", kBits, 0, 1, CALL_OUT(bitwise_not, x[0]),
          [](double x) { return 1 - x; })
      .no_gradient()
      .only(kTruth)
      .big({real({300, 131}, 0, 1)}, 1);
  t.pointwise("polygamma", kAll, {real({3, 4}, 0.5, 4)}, CALL_OUT(polygamma, 2, x[0]),
              point_of(1, "polygamma", 2))
      .gives(floating)
      .changes(IN_PLACE(polygamma, x[0], 2));
#define TEST_ROW(name, calls) function(#name, calls(name, x[0])).gives(boolean).no_gradient()
  TEST_ROW(isnan, CALL_OUT);
  TEST_ROW(isinf, CALL_OUT);
  TEST_ROW(isfinite, CALL);
  TEST_ROW(isposinf, CALL_OUT);
  TEST_ROW(isneginf, CALL_OUT);
  TEST_ROW(signbit, CALL_OUT);
#undef TEST_ROW
}

void add_unary_with_numbers(Table& t) {
  t.unary("logit", kAll, 0.05, 0.95, CALL_IN_PLACE_OUT(logit, x[0]),
          point_of(1, "logit", -INFINITY, INFINITY))
      .gives(floating)
      .within(2);
  t.unary("logit.eps", kAll, -0.5, 1.5, CALL_IN_PLACE_OUT(logit, x[0], 0.125),
          point_of(1, "logit", 0.125, 0.875))
      .gives(floating)
      .within(2);
  t.unary("nan_to_num", kAll, -3, 3, CALL_IN_PLACE_OUT(nan_to_num, x[0], std::nullopt, 2.5, -7),
          point_of(1, "nan_to_num", 2.5, -7));
  t.unary("nan_to_num.nan", kAll, -3, 3, CALL_OUT(nan_to_num, x[0], INFINITY, 3, NAN),
          [](double x) {
            return std::isnan(x) ? INFINITY : x == INFINITY ? 3 : x < -4 ? NAN : x;
          });
  t.unary("mvlgamma", kAll, 1.2, 4, CALL_IN_PLACE_OUT(mvlgamma, x[0], 3),
          [](D x) {
            long double sum = 1.5L * std::log(3.14159265358979323846264338328L);
            for (int j = 0; j < 3; ++j) sum += references::lgamma_of(x[0] - 0.5L * j);
            return static_cast<double>(sum);
          })
      .gives(floating)
      .within(4);
  t.unary("positive", kNumbers, -3, 3, CALL(positive, x[0]), [](double x) {
     return x;
   }).moves_nothing();
  t.unary("round.decimals", kFloats, -3, 3, CALL_IN_PLACE_OUT(round, x[0], 1), [](double x) {
     return std::nearbyint(x * 10) / 10;
   }).flat();
  t.unary("frexp", kFloats, -9, 9, FIRST_OUT(kInt, frexp, x[0]), [](double x) {
    int e = 0;
    return std::isfinite(x) ? std::frexp(x, &e) : x;
  });
  t.unary("frexp.exponent", kFloats, -9, 9, SECOND_OUT(frexp, x[0]), point_of(1, "frexp_exponent"))
      .gives([](ScalarType) { return kInt; })
      .no_gradient();
}

void add_activations(Table& t) {
  const auto row = [&t](const char* name, Calls call, Point point) -> Row& {
    return t.pointwise(name, kFloats, {real({3, 4}, -3, 3)}, std::move(call), std::move(point));
  };
  row("gelu", CALL_FUNCTION_IN_PLACE_OUT(gelu, x[0]), point_of(1, "gelu"));
  row("gelu.tanh", CALL_FUNCTION_IN_PLACE_OUT(gelu, x[0], "tanh"), point_of(1, "gelu_tanh"));
  row("leaky_relu", CALL_FUNCTION_IN_PLACE_OUT(leaky_relu, x[0], 0.25),
      point_of(1, "leaky_relu", 0.25));
  row("softplus", CALL_OUT(softplus, x[0], 2, 5), point_of(1, "softplus", 2, 5));
  row("silu", CALL_FUNCTION_IN_PLACE_OUT(silu, x[0]), point_of(1, "silu"));
  row("relu.function", CALL_FUNCTION_IN_PLACE(relu, x[0]), point_of(1, "relu")).dtypes = kNumbers;
}

// Those that are made of others.
void add_composed(Table& t) {
  const auto row = [&t](const char* name, Calls call, double (*point)(double)) -> Row& {
    return t.unary(name, kFloats, -4, 4, std::move(call), point);
  };
  row("elu", CALL_FUNCTION_IN_PLACE_OUT(elu, x[0], 2, 1.5, 0.75),
      [](double x) { return x > 0 ? 1.5 * x : 3 * std::expm1(0.75 * x); });
  row("selu", CALL_FUNCTION_IN_PLACE(selu, x[0]), [](double x) {
    return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
  });
  row("celu", CALL_FUNCTION_IN_PLACE(celu, x[0], 1.6),
      [](double x) { return x > 0 ? x : 1.6 * std::expm1(x / 1.6); });
  row("hardtanh", CALL_FUNCTION_IN_PLACE_OUT(hardtanh, x[0], -1, 3), [](double x) {
    return x < -1 ? -1 : x > 3 ? 3 : x;
  }).dtypes = kNumbers;
  row("relu6", CALL_FUNCTION_IN_PLACE(relu6, x[0]), [](double x) {
    return x < 0 ? 0 : x > 6 ? 6 : x;
  }).dtypes = kNumbers;
  row("hardsigmoid", CALL_FUNCTION_IN_PLACE_OUT(hardsigmoid, x[0]), [](double x) {
    return x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6;
  });
  row("hardswish", CALL_FUNCTION_IN_PLACE_OUT(hardswish, x[0]), [](double x) {
    return x * (x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6);
  });
  row("mish", CALL_FUNCTION_IN_PLACE_OUT(mish, x[0]),
      [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
  row("log_sigmoid", CALL_OUT(log_sigmoid, x[0]),
      [](double x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); });
  row("hardshrink", CALL_OUT(hardshrink, x[0], 0.75),
      [](double x) { return std::fabs(x) <= 0.75 ? 0 : x; });
  row("softshrink", CALL_OUT(softshrink, x[0], 0.75), [](double x) {
    return std::fabs(x) <= 0.75 ? 0 : x > 0 ? x - 0.75 : x + 0.75;
  });
  row("threshold", CALL_FUNCTION_IN_PLACE_OUT(threshold, x[0], 1, 5), [](double x) {
    return x <= 1 ? 5 : x;
  }).dtypes = kNumbers;
  row("rrelu", CALL_FUNCTION_IN_PLACE(rrelu, x[0], 0.125, 0.375),
      [](double x) { return x > 0 ? x : x / 4; });
  row("rrelu.training", CALL_FUNCTION_IN_PLACE(rrelu, x[0], 0.25, 0.25, true),
      [](double x) { return x > 0 ? x : x / 4; });
  t.row("glu", kFloats, shapes({{4, 6}, {2, 4, 3}, {0, 2}, {3, 0}}, -4, 4), CALL_OUT(glu, x[0], 1),
        [](P x) {
          Index sizes = x[0].sizes;
          sizes[1] /= 2;
          return made(sizes, [&](Index i) {
            const double a = x[0].at(i);
            i[1] += sizes[1];
            return a / (1 + std::exp(-x[0].at(i)));
          });
        })
      .big({real({140, 130}, -4, 4)}, 1);
  t.row("prelu", kFloats,
        {{real({3, 4}), real({4})},
         {real({2, 4, 3}), real({4})},
         {real({}), real({})},
         {real({5}), real({1})},
         {real({0, 3}), real({3})}},
        CALL(prelu, x[0], x[1]),
        [](P x) {
          return made(x[0].sizes, [&](const Index& i) {
            const double a = x[0].at(i);
            return a > 0 ? a : a * x[1].v[x[1].v.size() > 1 ? size_t(i[1]) : 0];
          });
        })
      .big({real({140, 131}), real({131})}, 1);
}

void add_backwards(Table& t) {
  const auto row = [&t](const char* name, Calls call, Point point) -> Row& {
    return t
        .pointwise(name, kFloats, {real({2, 3}, -3, 3), real({3}, -3, 3)}, std::move(call),
                   std::move(point))
        .alike();
  };
  row("gelu_backward", CALL(gelu_backward, x[0], x[1]), point_of(2, "gelu_backward"));
  row("gelu_backward.tanh", CALL(gelu_backward, x[0], x[1], "tanh"),
      point_of(2, "gelu_tanh_backward"));
  row("leaky_relu_backward", CALL(leaky_relu_backward, x[0], x[1], 0.25, false),
      point_of(2, "leaky_relu_backward", 0.25));
  row("softplus_backward", CALL(softplus_backward, x[0], x[1], 2, 5),
      point_of(2, "softplus_backward", 2, 5));
  row("silu_backward", CALL(silu_backward, x[0], x[1]), point_of(2, "silu_backward"));
  row("tanh_backward", CALL(tanh_backward, x[0], x[1]), point_of(2, "tanh_backward"));
  row("sigmoid_backward", CALL(sigmoid_backward, x[0], x[1]), point_of(2, "sigmoid_backward"));
  row("threshold_backward", CALL(threshold_backward, x[0], x[1], 0.5),
      point_of(2, "threshold_backward", 0.5))
      .dtypes = kNumbers;
}

RAMET_OP_TABLE(add_unary, add_unary_with_numbers, add_activations, add_composed, add_backwards);

}  // namespace
}  // namespace op_table
}  // namespace ramet
