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
  const auto function = [&t](const char* name, Call call, Call in_place, OutCall out) -> Row& {
    const Reference& of = reference(name);
    const uint16_t dtypes = of.integers == references::kNone      ? kFloats
                            : of.integers == references::kNotBool ? kNumbers
                                                                  : kAll;
    Row& row = t.pointwise(name, dtypes, {real({3, 4}, of.low, of.high)}, std::move(call),
                           point_of(1, name));
    row.constant_gradient = of.flat;
    row.in_place = std::move(in_place);
    row.out = std::move(out);
    return row.gives(of.integers == references::kFloats         ? floating
                     : of.integers == references::kAtLeastInt64 ? integer_at_least
                                                                : same);
  };
#define FUNCTION(name)                                                           \
  function(                                                                      \
      #name, [](V x) { return name(x[0]); }, [](V x) { return x[0].name##_(); }, \
      [](Tensor& o, V x) { return name##_out(o, x[0]); })
#define RAMET_X(name, Struct) FUNCTION(name);
  RAMET_UNARY_FUNCTIONS(RAMET_X)
  RAMET_UNARY_METHODS(RAMET_X)
  RAMET_UNARY_COMPOSED(RAMET_X)
#undef RAMET_X
  FUNCTION(logical_not).gives(boolean).no_gradient();
  FUNCTION(bitwise_not).no_gradient().only(kInts).dtypes = kBits;
#undef FUNCTION
  t.unary(
       "bitwise_not.bool", kBits, 0, 1, [](V x) { return bitwise_not(x[0]); },
       [](double x) { return 1 - x; })
      .no_gradient()
      .only(kTruth)
      .big({real({300, 131}, 0, 1)}, 1)
      .writes([](Tensor& o, V x) { return bitwise_not_out(o, x[0]); });
  t.pointwise(
       "polygamma", kAll, {real({3, 4}, 0.5, 4)}, [](V x) { return polygamma(2, x[0]); },
       point_of(1, "polygamma", 2))
      .gives(floating)
      .changes([](V x) { return x[0].polygamma_(2); })
      .writes([](Tensor& o, V x) { return polygamma_out(o, 2, x[0]); });
  const auto test = [&function](const char* name, Call call, OutCall out) {
    function(name, std::move(call), nullptr, std::move(out)).gives(boolean).no_gradient();
  };
  test(
      "isnan", [](V x) { return isnan(x[0]); }, [](Tensor& o, V x) { return isnan_out(o, x[0]); });
  test(
      "isinf", [](V x) { return isinf(x[0]); }, [](Tensor& o, V x) { return isinf_out(o, x[0]); });
  test(
      "isfinite", [](V x) { return isfinite(x[0]); }, nullptr);
#define TEST_ROW(name) \
  test(                \
      #name, [](V x) { return name(x[0]); }, [](Tensor& o, V x) { return name##_out(o, x[0]); })
  TEST_ROW(isposinf);
  TEST_ROW(isneginf);
  TEST_ROW(signbit);
#undef TEST_ROW
}

void add_unary_with_numbers(Table& t) {
  t.unary(
       "logit", kAll, 0.05, 0.95, [](V x) { return logit(x[0]); },
       point_of(1, "logit", -INFINITY, INFINITY))
      .gives(floating)
      .within(2)
      .changes([](V x) { return x[0].logit_(); })
      .writes([](Tensor& o, V x) { return logit_out(o, x[0]); });
  t.unary(
       "logit.eps", kAll, -0.5, 1.5, [](V x) { return logit(x[0], 0.125); },
       point_of(1, "logit", 0.125, 0.875))
      .gives(floating)
      .within(2)
      .changes([](V x) { return x[0].logit_(0.125); })
      .writes([](Tensor& o, V x) { return logit_out(o, x[0], 0.125); });
  t.unary(
       "nan_to_num", kAll, -3, 3, [](V x) { return nan_to_num(x[0], std::nullopt, 2.5, -7); },
       point_of(1, "nan_to_num", 2.5, -7))
      .changes([](V x) { return x[0].nan_to_num_(std::nullopt, 2.5, -7); })
      .writes([](Tensor& o, V x) { return nan_to_num_out(o, x[0], std::nullopt, 2.5, -7); });
  t.unary(
       "nan_to_num.nan", kAll, -3, 3, [](V x) { return nan_to_num(x[0], INFINITY, 3, NAN); },
       [](double x) {
         return std::isnan(x) ? INFINITY : x == INFINITY ? 3 : x < -4 ? NAN : x;
       })
      .writes([](Tensor& o, V x) { return nan_to_num_out(o, x[0], INFINITY, 3, NAN); });
  t.unary(
       "mvlgamma", kAll, 1.2, 4, [](V x) { return mvlgamma(x[0], 3); },
       [](D x) {
         long double sum = 1.5L * std::log(3.14159265358979323846264338328L);
         for (int j = 0; j < 3; ++j) sum += references::lgamma_of(x[0] - 0.5L * j);
         return static_cast<double>(sum);
       })
      .gives(floating)
      .within(4)
      .changes([](V x) { return x[0].mvlgamma_(3); })
      .writes([](Tensor& o, V x) { return mvlgamma_out(o, x[0], 3); });
  t.unary(
       "positive", kNumbers, -3, 3, [](V x) { return positive(x[0]); }, [](double x) { return x; })
      .moves_nothing();
  t.unary(
       "round.decimals", kFloats, -3, 3, [](V x) { return round(x[0], 1); },
       [](double x) { return std::nearbyint(x * 10) / 10; })
      .flat()
      .changes([](V x) { return x[0].round_(1); })
      .writes([](Tensor& o, V x) { return round_out(o, x[0], 1); });
  t.unary(
       "frexp", kFloats, -9, 9, [](V x) { return std::get<0>(frexp(x[0])); },
       [](double x) {
         int e = 0;
         return std::isfinite(x) ? std::frexp(x, &e) : x;
       })
      .writes([](Tensor& o, V x) {
        Tensor e = empty({0}, x[0].options().dtype(kInt));
        return std::get<0>(frexp_out(o, e, x[0]));
      });
  t.unary(
       "frexp.exponent", kFloats, -9, 9, [](V x) { return std::get<1>(frexp(x[0])); },
       point_of(1, "frexp_exponent"))
      .gives([](ScalarType) { return kInt; })
      .no_gradient()
      .writes([](Tensor& o, V x) {
        Tensor m = empty({0}, x[0].options());
        return std::get<1>(frexp_out(m, o, x[0]));
      });
}

void add_activations(Table& t) {
  const auto row = [&t](const char* name, Call call, Point point) -> Row& {
    return t.pointwise(name, kFloats, {real({3, 4}, -3, 3)}, std::move(call), std::move(point));
  };
  row(
      "gelu", [](V x) { return gelu(x[0]); }, point_of(1, "gelu"))
      .changes([](V x) {
        Tensor y = x[0];
        return gelu_(y);
      })
      .writes([](Tensor& o, V x) { return gelu_out(o, x[0]); });
  row(
      "gelu.tanh", [](V x) { return gelu(x[0], "tanh"); }, point_of(1, "gelu_tanh"))
      .changes([](V x) {
        Tensor y = x[0];
        return gelu_(y, "tanh");
      })
      .writes([](Tensor& o, V x) { return gelu_out(o, x[0], "tanh"); });
  row(
      "leaky_relu", [](V x) { return leaky_relu(x[0], 0.25); }, point_of(1, "leaky_relu", 0.25))
      .changes([](V x) {
        Tensor y = x[0];
        return leaky_relu_(y, 0.25);
      })
      .writes([](Tensor& o, V x) { return leaky_relu_out(o, x[0], 0.25); });
  row(
      "softplus", [](V x) { return softplus(x[0], 2, 5); }, point_of(1, "softplus", 2, 5))
      .writes([](Tensor& o, V x) { return softplus_out(o, x[0], 2, 5); });
  row(
      "silu", [](V x) { return silu(x[0]); }, point_of(1, "silu"))
      .changes([](V x) {
        Tensor y = x[0];
        return silu_(y);
      })
      .writes([](Tensor& o, V x) { return silu_out(o, x[0]); });
  row(
      "relu.function", [](V x) { return relu(x[0]); }, point_of(1, "relu"))
      .changes([](V x) {
        Tensor y = x[0];
        return relu_(y);
      })
      .dtypes = kNumbers;
}

// Those that are made of others. FORM: an in-place function as a call.
#define FORM(call)   \
  [](V x) {          \
    Tensor y = x[0]; \
    return call;     \
  }
void add_composed(Table& t) {
  const auto row = [&t](const char* name, Call call, double (*point)(double)) -> Row& {
    return t.unary(name, kFloats, -4, 4, std::move(call), point);
  };
  row(
      "elu", [](V x) { return elu(x[0], 2, 1.5, 0.75); },
      [](double x) { return x > 0 ? 1.5 * x : 3 * std::expm1(0.75 * x); })
      .changes(FORM(elu_(y, 2, 1.5, 0.75)))
      .writes([](Tensor& o, V x) { return elu_out(o, x[0], 2, 1.5, 0.75); });
  row(
      "selu", [](V x) { return selu(x[0]); },
      [](double x) {
        return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
      })
      .changes(FORM(selu_(y)));
  row(
      "celu", [](V x) { return celu(x[0], 1.6); },
      [](double x) { return x > 0 ? x : 1.6 * std::expm1(x / 1.6); })
      .changes(FORM(celu_(y, 1.6)));
  row(
      "hardtanh", [](V x) { return hardtanh(x[0], -1, 3); },
      [](double x) { return x < -1  ? -1
                            : x > 3 ? 3
                                    : x; })
      .changes(FORM(hardtanh_(y, -1, 3)))
      .writes([](Tensor& o, V x) { return hardtanh_out(o, x[0], -1, 3); })
      .dtypes = kNumbers;
  row(
      "relu6", [](V x) { return relu6(x[0]); }, [](double x) { return x < 0   ? 0
                                                                      : x > 6 ? 6
                                                                              : x; })
      .changes(FORM(relu6_(y)))
      .dtypes = kNumbers;
  row(
      "hardsigmoid", [](V x) { return hardsigmoid(x[0]); },
      [](double x) { return x < -3  ? 0
                            : x > 3 ? 1
                                    : (x + 3) / 6; })
      .changes(FORM(hardsigmoid_(y)))
      .writes([](Tensor& o, V x) { return hardsigmoid_out(o, x[0]); });
  row(
      "hardswish", [](V x) { return hardswish(x[0]); },
      [](double x) {
        return x * (x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6);
      })
      .changes(FORM(hardswish_(y)))
      .writes([](Tensor& o, V x) { return hardswish_out(o, x[0]); });
  row(
      "mish", [](V x) { return mish(x[0]); },
      [](double x) { return x * std::tanh(std::log1p(std::exp(x))); })
      .changes(FORM(mish_(y)))
      .writes([](Tensor& o, V x) { return mish_out(o, x[0]); });
  row(
      "log_sigmoid", [](V x) { return log_sigmoid(x[0]); },
      [](double x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); })
      .writes([](Tensor& o, V x) { return log_sigmoid_out(o, x[0]); });
  row(
      "hardshrink", [](V x) { return hardshrink(x[0], 0.75); },
      [](double x) { return std::fabs(x) <= 0.75 ? 0 : x; })
      .writes([](Tensor& o, V x) { return hardshrink_out(o, x[0], 0.75); });
  row(
      "softshrink", [](V x) { return softshrink(x[0], 0.75); },
      [](double x) { return std::fabs(x) <= 0.75 ? 0
                            : x > 0              ? x - 0.75
                                                 : x + 0.75; })
      .writes([](Tensor& o, V x) { return softshrink_out(o, x[0], 0.75); });
  row(
      "threshold", [](V x) { return threshold(x[0], 1, 5); },
      [](double x) { return x <= 1 ? 5 : x; })
      .changes(FORM(threshold_(y, 1, 5)))
      .writes([](Tensor& o, V x) { return threshold_out(o, x[0], 1, 5); })
      .dtypes = kNumbers;
  row(
      "rrelu", [](V x) { return rrelu(x[0], 0.125, 0.375); },
      [](double x) { return x > 0 ? x : x / 4; })
      .changes(FORM(rrelu_(y, 0.125, 0.375)));
  row(
      "rrelu.training", [](V x) { return rrelu(x[0], 0.25, 0.25, true); },
      [](double x) { return x > 0 ? x : x / 4; })
      .changes(FORM(rrelu_(y, 0.25, 0.25, true)));
  t.row(
       "glu", kFloats, shapes({{4, 6}, {2, 4, 3}, {0, 2}, {3, 0}}, -4, 4),
       [](V x) { return glu(x[0], 1); },
       [](P x) {
         Index sizes = x[0].sizes;
         sizes[1] /= 2;
         return made(sizes, [&](Index i) {
           const double a = x[0].at(i);
           i[1] += sizes[1];
           return a / (1 + std::exp(-x[0].at(i)));
         });
       })
      .big({real({140, 130}, -4, 4)}, 1)
      .writes([](Tensor& o, V x) { return glu_out(o, x[0], 1); });
  t.row(
       "prelu", kFloats,
       {{real({3, 4}), real({4})},
        {real({2, 4, 3}), real({4})},
        {real({}), real({})},
        {real({5}), real({1})},
        {real({0, 3}), real({3})}},
       [](V x) { return prelu(x[0], x[1]); },
       [](P x) {
         return made(x[0].sizes, [&](const Index& i) {
           const double a = x[0].at(i);
           return a > 0 ? a : a * x[1].v[x[1].v.size() > 1 ? size_t(i[1]) : 0];
         });
       })
      .big({real({140, 131}), real({131})}, 1);
}
#undef FORM

void add_backwards(Table& t) {
  const auto row = [&t](const char* name, Call call, Point point) -> Row& {
    return t
        .pointwise(name, kFloats, {real({2, 3}, -3, 3), real({3}, -3, 3)}, std::move(call),
                   std::move(point))
        .alike();
  };
  row(
      "gelu_backward", [](V x) { return gelu_backward(x[0], x[1]); }, point_of(2, "gelu_backward"));
  row(
      "gelu_backward.tanh", [](V x) { return gelu_backward(x[0], x[1], "tanh"); },
      point_of(2, "gelu_tanh_backward"));
  row(
      "leaky_relu_backward", [](V x) { return leaky_relu_backward(x[0], x[1], 0.25, false); },
      point_of(2, "leaky_relu_backward", 0.25));
  row(
      "softplus_backward", [](V x) { return softplus_backward(x[0], x[1], 2, 5); },
      point_of(2, "softplus_backward", 2, 5));
  row(
      "silu_backward", [](V x) { return silu_backward(x[0], x[1]); }, point_of(2, "silu_backward"));
  row(
      "tanh_backward", [](V x) { return tanh_backward(x[0], x[1]); }, point_of(2, "tanh_backward"));
  row(
      "sigmoid_backward", [](V x) { return sigmoid_backward(x[0], x[1]); },
      point_of(2, "sigmoid_backward"));
  row(
      "threshold_backward", [](V x) { return threshold_backward(x[0], x[1], 0.5); },
      point_of(2, "threshold_backward", 0.5))
      .dtypes = kNumbers;
}

std::vector<Row> rows() {
  Table t;
  add_unary(t);
  add_unary_with_numbers(t);
  add_activations(t);
  add_composed(t);
  add_backwards(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
