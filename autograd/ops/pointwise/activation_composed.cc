#include "autograd/ops/pointwise/activation_composed.h"

#include <cmath>

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/mask.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/activation.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/random/mersenne_internal.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view_parts.h"

namespace ramet {

using namespace autograd;

namespace {

const Tensor& floating(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(x));
  return x;
}
const Tensor& numbers(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(x.scalar_type() != kBool, op, "not implemented for '", name_of(kBool), "': got ",
              describe(x));
  return x;
}
// A bound as a number of x's dtype, as in LibTorch.
Scalar own_number(const Tensor& x, const Scalar& s) {
  return is_floating(x.scalar_type()) ? s : Scalar(s.toLong());
}

// f(x). For 16-bit types it computes in float and rounds once, as LibTorch's kernels do.
template <class F> Tensor rounded_once(const Tensor& x, const F& f) {
  return is_narrow(x.scalar_type()) ? f(x.to(kFloat)).to(x.scalar_type()) : f(x);
}

// x where x <= 0, else 0. So a function of it has a finite derivative where x is large, which is
// then multiplied by a gradient of 0.
Tensor below_zero(const Tensor& x, const Tensor& above) { return x.masked_fill(above, 0); }

// expm1 with the derivative exp(x), computed from x. expm1 computes it from its result, which is
// wrong in every digit where the result is next to -1.
Tensor expm1_of(const Tensor& x) {
  Tensor y;
  {
    const NoGradGuard off;
    y = x.expm1();
  }
  if (!recording(x)) return y;
  return record(
      "EluBackward0", {x}, std::move(y),
      [sx = save(x)](const Node& self, const Tensor& g) { return g.mul(sx.get(self).exp()); });
}

Tensor exponential_unit(const char* op, const Tensor& given, double alpha, double scale,
                        double input_scale) {
  return rounded_once(floating(op, given), [=](const Tensor& x) {
    const Tensor above = x.gt(0), low = below_zero(x, above);
    const Tensor bent = expm1_of(input_scale == 1 ? low : low.mul(input_scale)).mul(alpha * scale);
    return where(above, scale == 1 ? x : x.mul(scale), bent);
  });
}

Tensor bounded(const char* op, const Tensor& x, const Scalar& least, const Scalar& most) {
  numbers(op, x);
  return x.clamp(own_number(x, least), own_number(x, most));
}

// The two halves of a tensor, without history.
struct Halves {
  Tensor a, b;
  Halves(const Tensor& whole, int64_t dim) {
    const NoGradGuard off;
    const int64_t half = whole.size(dim) / 2;
    a = whole.narrow(dim, 0, half), b = whole.narrow(dim, half, half);
  }
};
Tensor glu_gradient(const Tensor& g, const Tensor& x, int64_t dim) {
  const ScalarType type = compute_type(x.scalar_type());
  Tensor dx(TensorBase::empty(x.sizes(), x.scalar_type(), x.device()));
  {
    const Halves of(x, dim), to(dx, dim);
    pointwise_into(RAMET_POINTWISE(glu), to.a, type, g, of.b);
    pointwise_into(RAMET_POINTWISE(glu_backward), to.b, type, g, of.a, of.b);
  }
  if (!recording(g, x)) return dx;
  return record_composed(
      "GluBackwardBackward0", std::move(dx),
      [dim](const std::vector<Tensor>& in) {
        return rounded_once(in[1], [&](const Tensor& x) {
          const int64_t half = x.size(dim) / 2;
          const Tensor a = x.narrow(dim, 0, half), s = x.narrow(dim, half, half).sigmoid(),
                       &g = in[0];
          return cat({g.mul(s), g.mul(a).mul(s).mul(s.neg().add(1))}, dim);
        });
      },
      g, x);
}

}  // namespace

Tensor elu(const Tensor& x, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  return exponential_unit("elu", x, alpha.toDouble(), scale.toDouble(), input_scale.toDouble());
}
Tensor selu(const Tensor& x) {
  return exponential_unit("selu", x, 1.6732632423543772848170429916717,
                          1.0507009873554804934193349852946, 1);
}
Tensor celu(const Tensor& x, const Scalar& alpha) {
  const double a = alpha.toDouble();
  RAMET_CHECK(a != 0, "celu", "alpha cannot be 0 for CELU: got ", alpha);
  return exponential_unit("celu", x, a, 1, 1 / a);
}

Tensor hardtanh(const Tensor& x, const Scalar& min_val, const Scalar& max_val) {
  return bounded("hardtanh", x, min_val, max_val);
}
Tensor relu6(const Tensor& x) { return bounded("relu6", x, 0, 6); }
namespace {
Tensor sixths(const Tensor& x) { return x.add(3).clamp(0, 6).div(6); }
}  // namespace
Tensor hardsigmoid(const Tensor& x) { return rounded_once(floating("hardsigmoid", x), sixths); }
Tensor hardswish(const Tensor& given) {
  return rounded_once(floating("hardswish", given),
                      [](const Tensor& x) { return x.mul(sixths(x)); });
}

Tensor mish(const Tensor& given) {
  return rounded_once(floating("mish", given),
                      [](const Tensor& x) { return x.mul(softplus(x).tanh()); });
}
static Tensor log_sigmoid_body(const Tensor& x) {
  // Above the threshold of 40 the difference is 4e-18.
  return softplus(floating("log_sigmoid", x).neg(), 1, 40).neg();
}

Tensor hardshrink(const Tensor& x, const Scalar& lambd) {
  return floating("hardshrink", x).masked_fill(x.abs().le(lambd), 0);
}
Tensor softshrink(const Tensor& x, const Scalar& lambd) {
  const double lambda = lambd.toDouble();
  floating("softshrink", x);
  RAMET_CHECK(lambda >= 0, "softshrink", "lambda must be greater or equal to 0, but found to be ",
              lambda);
  return x.sub(x.sign().mul(lambda)).masked_fill(x.abs().le(lambda), 0);
}
Tensor threshold(const Tensor& x, const Scalar& threshold, const Scalar& value) {
  numbers("threshold", x);
  const Scalar least = own_number(x, threshold), low = own_number(x, value);
  return x.masked_fill(x.le(least), low);
}

Tensor glu(const Tensor& x, int64_t dim) {
  floating("glu", x);
  RAMET_CHECK(x.dim() != 0, "glu",
              "does not support scalars because halving size must be even: got ", describe(x));
  const int64_t size = x.size(dim);
  RAMET_CHECK(size % 2 == 0, "glu", "Halving dimension must be even, but dimension ", dim,
              " is size ", size);
  const Halves halves(x, dim);
  Tensor y = pointwise_result("glu", x.scalar_type(), halves.a, &halves.b);
  pointwise_into(RAMET_POINTWISE(glu), y, compute_type(x.scalar_type()), halves.a, halves.b);
  if (!recording(x)) return y;
  return record("GluBackward0", {x}, std::move(y),
                [dim, sx = save(x)](const Node& self, const Tensor& g) {
                  return glu_gradient(g, sx.get(self), dim);
                });
}

static Tensor prelu_body(const Tensor& x, const Tensor& weight) {
  floating("prelu", x);
  check_operands("prelu", x, weight);
  RAMET_CHECK(weight.scalar_type() == x.scalar_type(), "prelu",
              "Type promoting not supported. Got ", describe(x), " and ", describe(weight));
  RAMET_CHECK(weight.dim() <= 1, "prelu",
              "Expected `weight` to be a scalar or 1D tensor, but got: ", describe(weight));
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  if (weight.numel() != 1) {
    RAMET_CHECK(x.dim() > 0, "prelu", "Not allow zero-dim input tensor: got weight ",
                describe(weight));
    const int64_t channels = x.dim() > 1 ? x.size(1) : 1;
    RAMET_CHECK(channels == weight.numel(), "prelu",
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = ",
                weight.numel(), " and channel size = ", channels, ".");
    shape[1] = channels;
  }
  const Tensor above = x.gt(0);
  return where(above, x, below_zero(x, above).mul(weight.view(shape)));
}

Tensor rrelu(const Tensor& x, const Scalar& lower, const Scalar& upper, bool training,
             std::optional<Generator> generator) {
  const double low = lower.toDouble(), high = upper.toDouble();
  floating("rrelu", x);
  RAMET_CHECK(!std::isinf(low) && !std::isinf(high), "rrelu", "bounds must be finite: got ", low,
              " and ", high);
  RAMET_CHECK(low <= high, "rrelu", "Lower bound should be less than or equal to the upper ",
              "bound: got ", low, " and ", high);
  if (!training) return leaky_relu(x, (low + high) / 2);
  const Tensor above = x.gt(0);
  Tensor slopes = empty_like(x.detach());
  if (draws_from_mersenne(x.device(), generator.value_or(Generator()))) {
    // LibTorch draws where x is at most 0, in the order of rows.
    slopes = empty_like(x.detach(), {}, MemoryFormat::Contiguous);
    mersenne::slopes("rrelu", slopes, x, low, high, generator.value_or(Generator()));
  } else {
    slopes.uniform_(low, high, std::move(generator));
  }
  return where(above, x, below_zero(x, above).mul(slopes));
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/activation_composed.inc"

}  // namespace ramet
