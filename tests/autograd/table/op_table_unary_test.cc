// Rows of the operation table: functions of one tensor, element by element, and the derivatives of
// activations.
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
  add_activations(t);
  add_backwards(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
