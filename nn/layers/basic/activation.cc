#include "nn/layers/basic/activation.h"

#include <ostream>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/activation.h"
#include "autograd/ops/pointwise/activation_composed.h"
#include "nn/init.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

// ---- modules ------------------------------------------------------------------------------------

namespace {

// As in LibTorch, printing leaves the stream at std::boolalpha, which affects the program's later
// output.
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

namespace detail {

Tensor relu(Tensor input, bool inplace) { return inplace ? input.relu_() : input.relu(); }
Tensor leaky_relu(Tensor input, double negative_slope, bool inplace) {
  return inplace ? ramet::leaky_relu_(input, negative_slope)
                 : ramet::leaky_relu(input, negative_slope);
}
Tensor rrelu(Tensor input, double lower, double upper, bool training, bool inplace) {
  return inplace ? ramet::rrelu_(input, lower, upper, training)
                 : ramet::rrelu(input, lower, upper, training);
}

}  // namespace detail

Tensor relu(Tensor input, const ReLUFuncOptions& options) {
  return detail::relu(std::move(input), options.inplace());
}
Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options) {
  return detail::leaky_relu(std::move(input), options.negative_slope(), options.inplace());
}
Tensor rrelu(Tensor input, const RReLUFuncOptions& o) {
  return detail::rrelu(std::move(input), o.lower(), o.upper(), o.training(), o.inplace());
}
// The tensor function of this name, or its in-place form; and one that has none.
#define RAMET_FORM(name, Options, args)                          \
  Tensor name(Tensor input, const Options& o) {                  \
    return o.inplace() ? ramet::name##_ args : ramet::name args; \
  }
#define RAMET_SAME(name, Options, args) \
  Tensor name(const Tensor& input, const Options& o) { return ramet::name args; }
RAMET_FORM(relu6, ReLU6FuncOptions, (input))
RAMET_FORM(hardtanh, HardtanhFuncOptions, (input, o.min_val(), o.max_val()))
RAMET_FORM(elu, ELUFuncOptions, (input, o.alpha()))
RAMET_FORM(selu, SELUFuncOptions, (input))
RAMET_FORM(celu, CELUFuncOptions, (input, o.alpha()))
RAMET_FORM(threshold, ThresholdFuncOptions, (input, o.threshold(), o.value()))
RAMET_SAME(gelu, GELUFuncOptions, (input, o.approximate()))
RAMET_SAME(glu, GLUFuncOptions, (input, o.dim()))
RAMET_SAME(softplus, SoftplusFuncOptions, (input, o.beta(), o.threshold()))
RAMET_SAME(hardshrink, HardshrinkFuncOptions, (input, o.lambda()))
RAMET_SAME(softshrink, SoftshrinkFuncOptions, (input, o.lambda()))
#undef RAMET_FORM
#undef RAMET_SAME
Tensor silu(const Tensor& input) { return ramet::silu(input); }
Tensor mish(const Tensor& input) { return ramet::mish(input); }
Tensor prelu(const Tensor& input, const Tensor& weight) { return ramet::prelu(input, weight); }
Tensor logsigmoid(const Tensor& input) { return ramet::log_sigmoid(input); }
Tensor softsign(const Tensor& input) { return input.div(input.abs().add(1)); }
Tensor tanhshrink(const Tensor& input) { return input.sub(input.tanh()); }
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
  autograd::check_defined("gumbel_softmax", logits);
  RAMET_CHECK(is_floating(logits.scalar_type()), "gumbel_softmax",
              "only for floating-point dtypes: got ", describe(logits));
  const Tensor noise = ramet::empty_like(logits.detach()).exponential_().log().neg();
  const Tensor soft = logits.add(noise).div(o.tau()).softmax(o.dim());
  if (!o.hard()) return soft;
  const Tensor hard = ramet::zeros_like(soft.detach())
                          .scatter_(o.dim(), soft.argmax(o.dim(), /*keepdim=*/true), 1.0);
  return hard.sub(soft.detach()).add(soft);  // straight through
}

}  // namespace functional
}  // namespace ramet::nn
