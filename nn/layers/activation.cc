#include "nn/layers/activation.h"

#include <ostream>

#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/comparison.h"
#include "autograd/ops/extremum.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/index.h"
#include "autograd/ops/mask.h"
#include "autograd/ops/softmax.h"
#include "autograd/ops/unary.h"
#include "autograd/ops/view_parts.h"
#include "autograd/ops/where.h"
#include "nn/init.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

// ---- modules ------------------------------------------------------------------------------------

namespace {

// As LibTorch's they leave the stream at std::boolalpha, which what a program prints next shows.
struct InPlace {
  const char* before;
  bool inplace;
};
std::ostream& operator<<(std::ostream& stream, const InPlace& x) {
  if (x.inplace) stream << std::boolalpha << x.before << "inplace=" << x.inplace;
  return stream;
}
InPlace in_place(const char* before, bool inplace) { return {before, inplace}; }

const Tensor& planes(const Tensor& input) {
  RAMET_CHECK(input.dim() == 4 || input.dim() == 3, "Softmax2d",
              "Softmax2d requires a 3D or 4D tensor as input: got ", describe(input));
  return input;
}

}  // namespace

// Name, input, forward, and what stands in the parentheses.
#define RAMET_FORWARD(Name, Input, forward_, printed)             \
  Tensor Name##Impl::forward(Input input) { return forward_; }    \
  void Name##Impl::pretty_print(std::ostream& stream) const {     \
    stream << detail::qualified("nn::" #Name "(") printed << ")"; \
  }                                                               \
  template class Cloneable<Name##Impl>;
#define RAMET_STATELESS(Name, Input, forward_, printed) \
  void Name##Impl::reset() {}                           \
  RAMET_FORWARD(Name, Input, forward_, printed)
#define RAMET_CONSTRUCTOR(Name) \
  Name##Impl::Name##Impl(const Name##Options& options_) : options(options_) { Name##Impl::reset(); }
// Its function takes the options.
#define RAMET_BY_OPTIONS(Name, function, printed) \
  RAMET_CONSTRUCTOR(Name)                         \
  RAMET_STATELESS(Name, const Tensor&, functional::function(input, options), printed)
#define RAMET_INPLACE(Name, function, printed) \
  RAMET_CONSTRUCTOR(Name)                      \
  RAMET_STATELESS(Name, Tensor, functional::function(std::move(input), options), printed)
#define RAMET_ALONG(Name, function)                                                \
  Name##Impl::Name##Impl(int64_t dim) : Name##Impl(Name##Options(dim)) {}          \
  RAMET_CONSTRUCTOR(Name)                                                          \
  RAMET_STATELESS(Name, const Tensor&, functional::function(input, options.dim()), \
                  << "dim=" << options.dim())

RAMET_STATELESS(Tanh, const Tensor&, input.tanh(), )
RAMET_STATELESS(Sigmoid, const Tensor&, input.sigmoid(), )
RAMET_STATELESS(LogSigmoid, const Tensor&, functional::logsigmoid(input), )
RAMET_STATELESS(SiLU, const Tensor&, functional::silu(input), )
RAMET_STATELESS(Mish, const Tensor&, functional::mish(input), )
RAMET_STATELESS(Softsign, const Tensor&, functional::softsign(input), )
RAMET_STATELESS(Tanhshrink, const Tensor&, functional::tanhshrink(input), )
RAMET_INPLACE(ReLU, relu, << in_place("", options.inplace()))
RAMET_INPLACE(ReLU6, relu6, << in_place("", options.inplace()))
RAMET_INPLACE(SELU, selu, << in_place("", options.inplace()))
RAMET_INPLACE(LeakyReLU, leaky_relu, << std::boolalpha
                                     << "negative_slope=" << options.negative_slope()
                                     << in_place(", ", options.inplace()))
RAMET_INPLACE(ELU, elu, << "alpha=" << options.alpha() << in_place(", ", options.inplace()))
RAMET_INPLACE(CELU, celu, << "alpha=" << options.alpha() << in_place(", ", options.inplace()))
RAMET_INPLACE(Threshold, threshold, << "threshold=" << options.threshold() << ", value="
                                    << options.value() << in_place(", ", options.inplace()))
RAMET_BY_OPTIONS(GELU, gelu, )
RAMET_BY_OPTIONS(GLU, glu, << "dim=" << options.dim())
RAMET_ALONG(Softmax, softmax)
RAMET_ALONG(Softmin, softmin)
RAMET_ALONG(LogSoftmax, log_softmax)
RAMET_BY_OPTIONS(Hardshrink, hardshrink, << std::boolalpha << options.lambda())
RAMET_BY_OPTIONS(Softshrink, softshrink, << options.lambda())
RAMET_BY_OPTIONS(Softplus, softplus,
                 << "beta=" << options.beta() << ", threshold=" << options.threshold())
RAMET_STATELESS(Softmax2d, const Tensor&, functional::softmax(planes(input), -3), )

ThresholdImpl::ThresholdImpl(double threshold, double value)
    : ThresholdImpl(ThresholdOptions(threshold, value)) {}

RAMET_CONSTRUCTOR(RReLU)
RAMET_STATELESS(RReLU, Tensor,
                functional::detail::rrelu(std::move(input), options.lower(), options.upper(),
                                          is_training(), options.inplace()),
                << "lower=" << options.lower() << ", upper=" << options.upper()
                << in_place(", ", options.inplace()))

RAMET_CONSTRUCTOR(Hardtanh)
void HardtanhImpl::reset() {
  RAMET_CHECK(options.min_val() < options.max_val(), "Hardtanh",
              "max_val must be greater than min_val: got min_val ", options.min_val(),
              " and max_val ", options.max_val());
}
RAMET_FORWARD(Hardtanh, Tensor, functional::hardtanh(std::move(input), options),
              << std::boolalpha << "min_val=" << options.min_val()
              << ", max_val=" << options.max_val() << in_place(", ", options.inplace()))

RAMET_CONSTRUCTOR(PReLU)
void PReLUImpl::reset() {
  weight =
      register_parameter("weight", ramet::full({options.num_parameters()}, Scalar(options.init())));
}
RAMET_FORWARD(PReLU, const Tensor&, functional::prelu(input, weight),
              << "num_parameters=" << options.num_parameters())

// ---- functions ----------------------------------------------------------------------------------

namespace functional {

namespace {

const Tensor& floating(const char* op, const Tensor& x) {
  autograd::check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(x));
  return x;
}
const Tensor& numbers(const char* op, const Tensor& x) {
  autograd::check_defined(op, x);
  RAMET_CHECK(x.scalar_type() != kBool, op, "not implemented for '", name_of(kBool), "': got ",
              describe(x));
  return x;
}

// f(x), or x overwritten by it.
template <class F> Tensor maybe_inplace(const char* op, bool inplace, const Tensor& x, const F& f) {
  return inplace ? autograd::computed_in_place(op, x, f) : f(x);
}

// x where x > 0, else 0. What is computed of it has a finite derivative where x is large, which
// meets a gradient of 0 there.
Tensor below_zero(const Tensor& x, const Tensor& above) { return x.masked_fill(above, 0); }

// scale x where x > 0, else scale alpha (exp(x / width) - 1)
Tensor exponential_unit(const char* op, Tensor input, double alpha, double scale, double width,
                        bool inplace) {
  floating(op, input);
  return maybe_inplace(op, inplace, input, [=](const Tensor& x) {
    const Tensor above = x.gt(0), low = below_zero(x, above);
    const Tensor bent = (width == 1 ? low : low.div(width)).expm1().mul(alpha * scale);
    return where(above, scale == 1 ? x : x.mul(scale), bent);
  });
}

Tensor bounded(const char* op, Tensor input, double low, double high, bool inplace) {
  numbers(op, input);
  return maybe_inplace(op, inplace, input, [=](const Tensor& x) {
    // Of integers the bounds are numbers of their dtype, as LibTorch's.
    if (!is_floating(x.scalar_type()))
      return x.clamp(Scalar(static_cast<int64_t>(low)), Scalar(static_cast<int64_t>(high)));
    return x.clamp(Scalar(low), Scalar(high));
  });
}

}  // namespace

namespace detail {

Tensor relu(Tensor input, bool inplace) { return inplace ? input.relu_() : input.relu(); }
Tensor leaky_relu(Tensor input, double negative_slope, bool inplace) {
  return inplace ? ramet::leaky_relu_(input, negative_slope)
                 : ramet::leaky_relu(input, negative_slope);
}
Tensor rrelu(Tensor input, double lower, double upper, bool training, bool inplace) {
  floating("rrelu", input);
  RAMET_CHECK(lower <= upper, "rrelu", "Lower bound should be less than or equal to the upper ",
              "bound: got ", lower, " and ", upper);
  return maybe_inplace("rrelu_", inplace, input, [=](const Tensor& x) {
    if (!training) return ramet::leaky_relu(x, (lower + upper) / 2);
    const Tensor above = x.gt(0), slopes = ramet::empty_like(x.detach()).uniform_(lower, upper);
    return where(above, x, below_zero(x, above).mul(slopes));
  });
}

}  // namespace detail

Tensor relu(Tensor input, const ReLUFuncOptions& options) {
  return detail::relu(std::move(input), options.inplace());
}
Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options) {
  return detail::leaky_relu(std::move(input), options.negative_slope(), options.inplace());
}
Tensor relu6(Tensor input, const ReLU6FuncOptions& options) {
  return bounded("relu6", std::move(input), 0, 6, options.inplace());
}
Tensor hardtanh(Tensor input, const HardtanhFuncOptions& o) {
  return bounded("hardtanh", std::move(input), o.min_val(), o.max_val(), o.inplace());
}
Tensor elu(Tensor input, const ELUFuncOptions& options) {
  return exponential_unit("elu", std::move(input), options.alpha(), 1, 1, options.inplace());
}
Tensor selu(Tensor input, const SELUFuncOptions& options) {
  return exponential_unit("selu", std::move(input), 1.6732632423543772848170429916717,
                          1.0507009873554804934193349852946, 1, options.inplace());
}
Tensor celu(Tensor input, const CELUFuncOptions& options) {
  const double alpha = options.alpha();
  RAMET_CHECK(alpha != 0, "celu", "alpha cannot be 0 for CELU: got ", alpha);
  return exponential_unit("celu", std::move(input), alpha, 1, alpha, options.inplace());
}
Tensor gelu(const Tensor& input, const GELUFuncOptions& options) {
  return ramet::gelu(input, options.approximate());
}
Tensor glu(const Tensor& input, const GLUFuncOptions& options) {
  floating("glu", input);
  RAMET_CHECK(input.dim() != 0, "glu",
              "does not support scalars because halving size must be even: got ", describe(input));
  const int64_t size = input.size(options.dim());
  RAMET_CHECK(size % 2 == 0, "glu", "Halving dimension must be even, but dimension ", options.dim(),
              " is size ", size);
  const Tensor a = input.narrow(options.dim(), 0, size / 2);
  return a.mul(input.narrow(options.dim(), size / 2, size / 2).sigmoid());
}
Tensor silu(const Tensor& input) { return ramet::silu(input); }
Tensor mish(const Tensor& input) {
  return floating("mish", input).mul(ramet::softplus(input).tanh());
}
Tensor softplus(const Tensor& input, const SoftplusFuncOptions& o) {
  return ramet::softplus(input, o.beta(), o.threshold());
}
Tensor logsigmoid(const Tensor& input) {
  // Beyond the threshold of 40 the difference is 4e-18.
  return ramet::softplus(floating("log_sigmoid", input).neg(), 1, 40).neg();
}
Tensor softsign(const Tensor& input) { return input.div(input.abs().add(1)); }
Tensor tanhshrink(const Tensor& input) { return input.sub(input.tanh()); }
Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options) {
  const Tensor& x = floating("hardshrink", input);
  return x.masked_fill(x.abs().le(options.lambda()), 0);
}
Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options) {
  const double lambda = options.lambda();
  const Tensor& x = floating("softshrink", input);
  RAMET_CHECK(lambda >= 0, "softshrink", "lambda must be greater or equal to 0, but found to be ",
              lambda);
  return x.sub(x.sign().mul(lambda)).masked_fill(x.abs().le(lambda), 0);
}
Tensor threshold(Tensor input, const ThresholdFuncOptions& o) {
  numbers("threshold", input);
  return maybe_inplace("threshold_", o.inplace(), input, [&](const Tensor& x) {
    if (!is_floating(x.scalar_type()))
      return x.masked_fill(x.le(static_cast<int64_t>(o.threshold())),
                           static_cast<int64_t>(o.value()));
    return x.masked_fill(x.le(o.threshold()), o.value());
  });
}
Tensor prelu(const Tensor& input, const Tensor& weight) {
  const Tensor& x = floating("prelu", input);
  autograd::check_defined("prelu", weight);
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
Tensor rrelu(Tensor input, const RReLUFuncOptions& o) {
  return detail::rrelu(std::move(input), o.lower(), o.upper(), o.training(), o.inplace());
}
Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options) {
  return input.softmax(options.dim(), options.dtype());
}
Tensor softmin(const Tensor& input, const SoftminFuncOptions& options) {
  return input.neg().softmax(options.dim(), options.dtype());
}
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options) {
  return input.log_softmax(options.dim(), options.dtype());
}
Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& o) {
  floating("gumbel_softmax", logits);
  const Tensor noise = ramet::empty_like(logits.detach()).exponential_().log().neg();
  const Tensor soft = logits.add(noise).div(o.tau()).softmax(o.dim());
  if (!o.hard()) return soft;
  const Tensor hard = ramet::zeros_like(soft.detach())
                          .scatter_(o.dim(), soft.argmax(o.dim(), /*keepdim=*/true), 1.0);
  return hard.sub(soft.detach()).add(soft);  // straight through
}

}  // namespace functional
}  // namespace ramet::nn
