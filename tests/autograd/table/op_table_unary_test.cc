// Rows of the operation table: functions of one tensor, element by element, and the derivatives of
// activations.
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// A function with an in-place method and an out form of its name.
#define UNARY(name, dtypes, lo, hi, point)                                                    \
  t.unary(                                                                                    \
       #name, dtypes, lo, hi, [](V x) { return name(x[0]); }, [](double x) { return point; }) \
      .changes([](V x) { return x[0].name##_(); })                                            \
      .writes([](Tensor& o, V x) { return name##_out(o, x[0]); })

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

void add_unary(Table& t) {
  UNARY(neg, kNumbers, -2, 2, -x);
  UNARY(abs, kNumbers, -2, 2, std::fabs(x));
  UNARY(sign, kAll, -2, 2, std::isnan(x) ? 0.0 : double((x > 0) - (x < 0))).flat();
  UNARY(square, kAll, -2, 2, x * x).gives(integer_at_least);
  UNARY(exp, kAll, -2, 2, std::exp(x)).gives(floating);
  UNARY(expm1, kAll, -2, 2, std::expm1(x)).gives(floating);
  UNARY(log, kAll, 0.3, 4, std::log(x)).gives(floating);
  UNARY(log1p, kAll, -0.7, 4, std::log1p(x)).gives(floating);
  UNARY(log2, kAll, 0.3, 4, std::log2(x)).gives(floating);
  UNARY(log10, kAll, 0.3, 4, std::log10(x)).gives(floating);
  UNARY(sqrt, kAll, 0.3, 4, std::sqrt(x)).gives(floating);
  UNARY(rsqrt, kAll, 0.3, 4, 1 / std::sqrt(x)).gives(floating);
  UNARY(reciprocal, kAll, 0.3, 4, 1 / x).gives(floating);
  UNARY(sin, kAll, -4, 4, std::sin(x)).gives(floating);
  UNARY(cos, kAll, -4, 4, std::cos(x)).gives(floating);
  UNARY(tan, kAll, -1.2, 1.2, std::tan(x)).gives(floating);
  UNARY(tanh, kAll, -3, 3, std::tanh(x)).gives(floating);
  UNARY(sigmoid, kAll, -4, 4, sigmoid_of(x)).gives(floating);
  UNARY(erf, kAll, -2, 2, std::erf(x)).gives(floating);
  UNARY(relu, kNumbers, -2, 2, std::isnan(x) || x > 0 ? x : 0);
  UNARY(floor, kNumbers, -3.4, 3.4, std::floor(x)).flat();
  UNARY(ceil, kNumbers, -3.4, 3.4, std::ceil(x)).flat();
  UNARY(round, kNumbers, -3.4, 3.4, std::nearbyint(x)).flat();
  UNARY(trunc, kNumbers, -3.4, 3.4, std::trunc(x)).flat();
  UNARY(logical_not, kAll, -2, 2, double(x == 0)).gives(boolean).no_gradient();
  UNARY(bitwise_not, kBits, -5, 5, -x - 1).no_gradient().only(kInts);
  t.unary(
       "bitwise_not.bool", kBits, 0, 1, [](V x) { return bitwise_not(x[0]); },
       [](double x) { return 1 - x; })
      .no_gradient()
      .only(kTruth)
      .big({real({300, 131}, 0, 1)}, 1)
      .writes([](Tensor& o, V x) { return bitwise_not_out(o, x[0]); });
  const auto test = [&t](const char* name, Call call, double (*point)(double)) -> Row& {
    return t.unary(name, kAll, -2, 2, std::move(call), point).gives(boolean).no_gradient();
  };
  test(
      "isnan", [](V x) { return isnan(x[0]); }, [](double x) { return double(std::isnan(x)); })
      .writes([](Tensor& o, V x) { return isnan_out(o, x[0]); });
  test(
      "isinf", [](V x) { return isinf(x[0]); }, [](double x) { return double(std::isinf(x)); })
      .writes([](Tensor& o, V x) { return isinf_out(o, x[0]); });
  test(
      "isfinite", [](V x) { return isfinite(x[0]); },
      [](double x) { return double(std::isfinite(x)); });
}

// Value and derivative of activations, in float64.
double gelu_of(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }
double gelu_slope(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}
double gelu_inner(double x) { return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }
double gelu_tanh_of(double x) { return x / 2 * (1 + std::tanh(gelu_inner(x))); }
double gelu_tanh_slope(double x) {
  const double y = std::tanh(gelu_inner(x));
  return (1 + y) / 2 + x / 2 * (1 - y * y) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
double silu_slope(double x) { return sigmoid_of(x) * (1 + x * (1 - sigmoid_of(x))); }
double softplus_of(double x) { return 2 * x > 5 ? x : std::log1p(std::exp(2 * x)) / 2; }
double relu_of(double x) { return std::isnan(x) || x > 0 ? x : 0; }

void add_activations(Table& t) {
  t.unary(
       "gelu", kFloats, -3, 3, [](V x) { return gelu(x[0]); }, gelu_of)
      .changes([](V x) {
        Tensor y = x[0];
        return gelu_(y);
      })
      .writes([](Tensor& o, V x) { return gelu_out(o, x[0]); });
  t.unary(
       "gelu.tanh", kFloats, -3, 3, [](V x) { return gelu(x[0], "tanh"); }, gelu_tanh_of)
      .changes([](V x) {
        Tensor y = x[0];
        return gelu_(y, "tanh");
      })
      .writes([](Tensor& o, V x) { return gelu_out(o, x[0], "tanh"); });
  t.unary(
       "leaky_relu", kFloats, -3, 3, [](V x) { return leaky_relu(x[0], 0.25); },
       [](double x) { return x > 0 ? x : x * 0.25; })
      .changes([](V x) {
        Tensor y = x[0];
        return leaky_relu_(y, 0.25);
      })
      .writes([](Tensor& o, V x) { return leaky_relu_out(o, x[0], 0.25); });
  t.unary(
       "softplus", kFloats, -3, 3, [](V x) { return softplus(x[0], 2, 5); }, softplus_of)
      .writes([](Tensor& o, V x) { return softplus_out(o, x[0], 2, 5); });
  t.unary(
       "silu", kFloats, -3, 3, [](V x) { return silu(x[0]); },
       [](double x) { return x * sigmoid_of(x); })
      .changes([](V x) {
        Tensor y = x[0];
        return silu_(y);
      })
      .writes([](Tensor& o, V x) { return silu_out(o, x[0]); });
  t.unary(
       "relu.function", kNumbers, -3, 3, [](V x) { return relu(x[0]); }, relu_of)
      .changes([](V x) {
        Tensor y = x[0];
        return relu_(y);
      });
}

void add_backwards(Table& t) {
  const auto row = [&t](const char* name, Call call, double (*point)(double, double)) -> Row& {
    return t.binary(name, kFloats, -3, 3, std::move(call), point).alike();
  };
  row(
      "gelu_backward", [](V x) { return gelu_backward(x[0], x[1]); },
      [](double g, double x) { return g * gelu_slope(x); });
  row(
      "gelu_backward.tanh", [](V x) { return gelu_backward(x[0], x[1], "tanh"); },
      [](double g, double x) { return g * gelu_tanh_slope(x); });
  row(
      "leaky_relu_backward", [](V x) { return leaky_relu_backward(x[0], x[1], 0.25, false); },
      [](double g, double x) { return x > 0 ? g : g * 0.25; });
  row(
      "softplus_backward", [](V x) { return softplus_backward(x[0], x[1], 2, 5); },
      [](double g, double x) { return 2 * x > 5 ? g : g * sigmoid_of(2 * x); });
  row(
      "silu_backward", [](V x) { return silu_backward(x[0], x[1]); },
      [](double g, double x) { return g * silu_slope(x); });
  row(
      "tanh_backward", [](V x) { return tanh_backward(x[0], x[1]); },
      [](double g, double y) { return g * (1 - y * y); });
  row(
      "sigmoid_backward", [](V x) { return sigmoid_backward(x[0], x[1]); },
      [](double g, double y) { return g * y * (1 - y); });
  row(
      "threshold_backward", [](V x) { return threshold_backward(x[0], x[1], 0.5); },
      [](double g, double x) { return x <= 0.5 ? 0.0 : g; })
      .dtypes = kNumbers;
}

std::vector<Row> rows() {
  Table t;
  add_unary(t);
  add_activations(t);
  add_backwards(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
