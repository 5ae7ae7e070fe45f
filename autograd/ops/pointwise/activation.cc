#include "autograd/ops/pointwise/activation.h"

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "kernels/pointwise/rows/activation.h"

namespace ramet {

using namespace autograd;

namespace {

template <class Row> constexpr int kNames = 0;  // RowNames of each row
#define RAMET_X(name, Row) \
  template <> constexpr RowNames kNames<rows::Row> = RAMET_ROW_NAMES(name, Row);
RAMET_ACTIVATION_OPS(RAMET_X)
#undef RAMET_X

void check_floating(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(x));
}

// The function of a row with one tensor and its numbers.
template <class Row, class... Numbers> Tensor fresh(const Tensor& x, const Numbers&... numbers) {
  constexpr const RowNames& names = kNames<Row>;
  check_floating(names.name, x);
  Tensor out = empty_like_layout(x, x.scalar_type());
  pointwise_into(names.kernel, out, compute_type(x.scalar_type()), x, {}, {}, numbers...);
  if (!recording(x)) return out;
  return record(names.node, {x}, std::move(out),
                [sx = save(x), numbers...](const Node& self, const Tensor& g) {
                  return Row::gradient(g, sx.get(self), numbers...);
                },
                [&](Arguments& to) {
                  if (std::is_same<Row, rows::GeluTanh>::value) to("approximate", "tanh");
                  (to("number", numbers), ...);
                });
}
template <class Row, class... Numbers>
Tensor& into(const char* op, Tensor& out, const Tensor& x, const Numbers&... numbers) {
  check_floating(op, x);
  return pointwise_out(op, kNames<Row>.kernel, out, x.scalar_type(), compute_type(x.scalar_type()),
                       x, {}, {}, numbers...);
}

// A fused derivative is an operation of its own, so its first-order bits are the same with and
// without create_graph. It is linear in g; where the row has a gradient, it also depends on x.
template <class Row, class... Numbers>
Tensor backward(const Tensor& g, const Tensor& x, const Numbers&... numbers) {
  constexpr const RowNames& names = kNames<Row>;
  Tensor out = pointwise_gradient(names.kernel, g, x, numbers...);
  if constexpr (requires { Row::gradient(g, g, x, numbers...); }) {
    if (!recording(g, x)) return out;
    return record(names.node, {g, x}, std::move(out),
                  [sg = save(g), sx = save(x), numbers...](const Node& self, const Tensor& v) {
                    const Tensor& x = sx.get(self);
                    return std::array<Tensor, 2>{
                        self.needs(0) ? backward<Row>(v, x, numbers...) : Tensor(),
                        self.needs(1) ? Row::gradient(v, sg.get(self), x, numbers...) : Tensor()};
                  });
  } else {
    if (!recording(g)) return out;
    return record(names.node, {g}, std::move(out),
                  [sx = save(x), numbers...](const Node& self, const Tensor& v) {
                    return backward<Row>(v, sx.get(self), numbers...);
                  });
  }
}

bool by_tanh(const char* op, const std::string& approximate) {
  RAMET_CHECK(approximate == "none" || approximate == "tanh", op,
              "approximate argument must be either none or tanh: got '", approximate, "'");
  return approximate == "tanh";
}

}  // namespace

// ---- gelu: two rows -----------------------------------------------------------------------------

Tensor gelu(const Tensor& x, const std::string& approximate) {
  return by_tanh("gelu", approximate) ? fresh<rows::GeluTanh>(x) : fresh<rows::Gelu>(x);
}
Tensor& gelu_out(Tensor& out, const Tensor& x, const std::string& approximate) {
  return by_tanh("gelu_out", approximate) ? into<rows::GeluTanh>("gelu_out", out, x)
                                          : into<rows::Gelu>("gelu_out", out, x);
}
Tensor gelu_backward(const Tensor& g, const Tensor& x, const std::string& approximate) {
  return by_tanh("gelu_backward", approximate) ? backward<rows::GeluTanhBackward>(g, x)
                                               : backward<rows::GeluBackward>(g, x);
}

// ---- leaky_relu ---------------------------------------------------------------------------------

Tensor& leaky_relu_(Tensor& x, const Scalar& slope) {
  check_defined("leaky_relu_", x);
  check_inplace("leaky_relu_", x);
  check_floating("leaky_relu_", x);
  const bool records = recording(x);
  // The result has the sign of the input; the input itself is overwritten.
  RAMET_CHECK(!records || slope.toDouble() >= 0, "leaky_relu_",
              "in-place with a negative slope and a gradient is not possible: got slope ", slope);
  pointwise_into(RAMET_POINTWISE(leaky_relu), x, compute_type(x.scalar_type()), x, {}, {}, slope);
  wrote("leaky_relu_", x);
  if (records) {
    record_inplace("LeakyReluBackward1", {x}, x,
                   [sy = save_output(x), slope](const Node& self, const Tensor& g) {
                     return leaky_relu_backward(g, sy.get(self), slope, true);
                   },
                   [&](Arguments& to) { to("number", slope); });
  }
  return x;
}
Tensor leaky_relu_backward(const Tensor& g, const Tensor& x, const Scalar& slope, bool is_result) {
  RAMET_CHECK(!is_result || slope.toDouble() >= 0, "leaky_relu_backward",
              "the result of a negative slope does not tell the input's sign: got slope ", slope);
  return backward<rows::LeakyReluBackward>(g, x, slope);
}

// ---- the others ---------------------------------------------------------------------------------

Tensor threshold_backward(const Tensor& g, const Tensor& x, const Scalar& threshold) {
  check_defined("threshold_backward", g);
  check_defined("threshold_backward", x);
  if (is_integral(g.scalar_type(), false) && same_sizes(g.impl(), x.impl()))
    return where(gt(x, threshold), g, 0).to(g.scalar_type());
  return backward<rows::ThresholdBackward>(g, x, threshold);
}

#include "autograd/forms/definitions.inc"
#define RAMET_ACTIVATION(name, Row, params, args)                    \
  static Tensor name##_body params { return fresh<rows::Row> args; } \
  Tensor& name##_out(Tensor& out, RAMET_LIST params) {               \
    return into<rows::Row>(#name "_out", out, RAMET_LIST args);      \
  }                                                                  \
  RAMET_FUNCTION(name, params, args, RAMET_OWN_OUT,                  \
                 RAMET_AUTOCAST(kNone, policy_of(rows::Row::kAutocast)))
#define RAMET_DERIVATIVE(name, Row, params, args) \
  Tensor name params { return backward<rows::Row> args; }
#include "autograd/ops/pointwise/activation.inc"

}  // namespace ramet
