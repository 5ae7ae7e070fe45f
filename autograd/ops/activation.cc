#include "autograd/ops/activation.h"

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/comparison.h"
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/unary.h"
#include "autograd/ops/where.h"

namespace ramet {

using namespace autograd;

namespace {

using Pair = std::array<Tensor, 2>;

Tensor forward(const char* op, const PointwiseKernel& k, const Tensor& x, const Scalar& s = 0,
               const Scalar& t = 0) {
  check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(x));
  Tensor out = empty_like_layout(x, x.scalar_type());
  pointwise_into(k, out, compute_type(x.scalar_type()), x, {}, {}, s, t);
  return out;
}
bool by_tanh(const char* op, const std::string& approximate) {
  RAMET_CHECK(approximate == "none" || approximate == "tanh", op,
              "approximate argument must be either none or tanh: got '", approximate, "'");
  return approximate == "tanh";
}

// Second derivatives, as compositions of differentiable operations.
Tensor gelu_second(const Tensor& x, bool tanh_form) {
  if (!tanh_form) {  // phi(x) (2 - x^2)
    const Tensor squared = square(x);
    return mul(mul(exp(mul(squared, -0.5)), 0.3989422804014327), rsub(squared, 2));
  }
  const double k = 0.7978845608028654, c = 0.044715;
  const Tensor squared = square(x), th = tanh(mul(mul(x, add(mul(squared, c), 1)), k));
  // u', and x u'' / 2
  const Tensor slope = mul(add(mul(squared, 3 * c), 1), k), bend = mul(squared, 3 * c * k);
  return mul(rsub(square(th), 1), sub(add(slope, bend), mul(mul(x, th), square(slope))));
}

}  // namespace

Tensor gelu(const Tensor& x, const std::string& approximate) {
  const bool t = by_tanh("gelu", approximate);
  Tensor out = forward("gelu", t ? RAMET_POINTWISE(gelu_tanh) : RAMET_POINTWISE(gelu), x);
  if (!recording(x)) return out;
  return record("GeluBackward0", {x}, std::move(out),
                [sx = save(x), t](const Node& self, const Tensor& g) {
                  return gelu_backward(g, sx.get(self), t ? "tanh" : "none");
                });
}
Tensor gelu_backward(const Tensor& g, const Tensor& x, const std::string& approximate) {
  const bool t = by_tanh("gelu_backward", approximate);
  Tensor out = pointwise_gradient(
      t ? RAMET_POINTWISE(gelu_tanh_backward) : RAMET_POINTWISE(gelu_backward), g, x);
  if (!recording(g, x)) return out;
  return record("GeluBackwardBackward0", {g, x}, std::move(out),
                [sg = save(g), sx = save(x), t](const Node& self, const Tensor& v) {
                  const Tensor& x = sx.get(self);
                  return Pair{
                      self.needs(0) ? gelu_backward(v, x, t ? "tanh" : "none") : Tensor(),
                      self.needs(1) ? mul(mul(v, sg.get(self)), gelu_second(x, t)) : Tensor()};
                });
}

Tensor leaky_relu(const Tensor& x, const Scalar& slope) {
  Tensor out = forward("leaky_relu", RAMET_POINTWISE(leaky_relu), x, slope);
  if (!recording(x)) return out;
  return record("LeakyReluBackward0", {x}, std::move(out),
                [sx = save(x), slope](const Node& self, const Tensor& g) {
                  return leaky_relu_backward(g, sx.get(self), slope, false);
                });
}
Tensor& leaky_relu_(Tensor& x, const Scalar& slope) {
  check_defined("leaky_relu_", x);
  check_inplace("leaky_relu_", x);
  RAMET_CHECK(is_floating(x.scalar_type()), "leaky_relu_", "only for floating-point dtypes: got ",
              describe(x));
  const bool records = recording(x);
  // The result has the sign of the input, which is gone.
  RAMET_CHECK(!records || slope.toDouble() >= 0, "leaky_relu_",
              "in-place with a negative slope and a gradient is not possible: got slope ", slope);
  pointwise_into(RAMET_POINTWISE(leaky_relu), x, compute_type(x.scalar_type()), x, {}, {}, slope);
  wrote("leaky_relu_", x);
  if (records) {
    record_inplace("LeakyReluBackward1", {x}, x,
                   [sy = save_output(x), slope](const Node& self, const Tensor& g) {
                     return leaky_relu_backward(g, sy.get(self), slope, true);
                   });
  }
  return x;
}
Tensor leaky_relu_backward(const Tensor& g, const Tensor& x, const Scalar& slope, bool is_result) {
  RAMET_CHECK(!is_result || slope.toDouble() >= 0, "leaky_relu_backward",
              "the result of a negative slope does not tell the input's sign: got slope ", slope);
  Tensor out = pointwise_gradient(RAMET_POINTWISE(leaky_relu_backward), g, x, slope);
  if (!recording(g)) return out;
  return record("LeakyReluBackwardBackward0", {g}, std::move(out),
                [sx = save(x), slope, is_result](const Node& self, const Tensor& v) {
                  return leaky_relu_backward(v, sx.get(self), slope, is_result);
                });
}

Tensor softplus(const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  Tensor out = forward("softplus", RAMET_POINTWISE(softplus), x, beta, threshold);
  if (!recording(x)) return out;
  return record("SoftplusBackward0", {x}, std::move(out),
                [sx = save(x), beta, threshold](const Node& self, const Tensor& g) {
                  return softplus_backward(g, sx.get(self), beta, threshold);
                });
}
Tensor softplus_backward(const Tensor& g, const Tensor& x, const Scalar& beta,
                         const Scalar& threshold) {
  Tensor out = pointwise_gradient(RAMET_POINTWISE(softplus_backward), g, x, beta, threshold);
  if (!recording(g, x)) return out;
  return record("SoftplusBackwardBackward0", {g, x}, std::move(out),
                [sg = save(g), sx = save(x), beta, threshold](const Node& self, const Tensor& v) {
                  const Tensor& x = sx.get(self);
                  Pair r;
                  if (self.needs(0)) r[0] = softplus_backward(v, x, beta, threshold);
                  if (self.needs(1)) {  // beta sigmoid (1 - sigmoid), 0 above the threshold
                    const Tensor scaled = mul(x, beta), y = sigmoid(scaled);
                    r[1] = where(gt(scaled, threshold), 0,
                                 mul(mul(mul(v, sg.get(self)), mul(y, rsub(y, 1))), beta));
                  }
                  return r;
                });
}

Tensor silu(const Tensor& x) {
  Tensor out = forward("silu", RAMET_POINTWISE(silu), x);
  if (!recording(x)) return out;
  return record(
      "SiluBackward0", {x}, std::move(out),
      [sx = save(x)](const Node& self, const Tensor& g) { return silu_backward(g, sx.get(self)); });
}
Tensor silu_backward(const Tensor& g, const Tensor& x) {
  Tensor out = pointwise_gradient(RAMET_POINTWISE(silu_backward), g, x);
  if (!recording(g, x)) return out;
  return record("SiluBackwardBackward0", {g, x}, std::move(out),
                [sg = save(g), sx = save(x)](const Node& self, const Tensor& v) {
                  const Tensor& x = sx.get(self);
                  Pair r;
                  if (self.needs(0)) r[0] = silu_backward(v, x);
                  if (self.needs(1)) {  // s (1 - s) (2 + x (1 - 2 s))
                    const Tensor s = sigmoid(x);
                    r[1] = mul(mul(v, sg.get(self)),
                               mul(mul(s, rsub(s, 1)), add(mul(x, rsub(mul(s, 2), 1)), 2)));
                  }
                  return r;
                });
}

// ---- in-place and out forms ---------------------------------------------------------------------

namespace {
Tensor& forward_out(const char* op, const PointwiseKernel& k, Tensor& out, const Tensor& x,
                    const Scalar& s = 0, const Scalar& t = 0) {
  check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(x));
  return pointwise_out(op, k, out, x.scalar_type(), compute_type(x.scalar_type()), x, {}, {}, s, t);
}
}  // namespace

Tensor& gelu_(Tensor& x, const std::string& approximate) {
  return computed_in_place("gelu_", x, [&](const Tensor& old) { return gelu(old, approximate); });
}
Tensor& silu_(Tensor& x) {
  return computed_in_place("silu_", x, [](const Tensor& old) { return silu(old); });
}
Tensor& gelu_out(Tensor& out, const Tensor& x, const std::string& approximate) {
  return forward_out(
      "gelu_out",
      by_tanh("gelu_out", approximate) ? RAMET_POINTWISE(gelu_tanh) : RAMET_POINTWISE(gelu), out,
      x);
}
Tensor& leaky_relu_out(Tensor& out, const Tensor& x, const Scalar& slope) {
  return forward_out("leaky_relu_out", RAMET_POINTWISE(leaky_relu), out, x, slope);
}
Tensor& softplus_out(Tensor& out, const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  return forward_out("softplus_out", RAMET_POINTWISE(softplus), out, x, beta, threshold);
}
Tensor& silu_out(Tensor& out, const Tensor& x) {
  return forward_out("silu_out", RAMET_POINTWISE(silu), out, x);
}

}  // namespace ramet
