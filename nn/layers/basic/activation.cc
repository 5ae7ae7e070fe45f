#include "nn/layers/basic/activation.h"

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/activation.h"
#include "autograd/ops/pointwise/activation_composed.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

// ---- modules ------------------------------------------------------------------------------------

namespace {

const Tensor& planes(const Tensor& input) {
  RAMET_CHECK(input.dim() == 4 || input.dim() == 3, "Softmax2d",
              "Softmax2d requires a 3D or 4D tensor as input: got ", describe(input));
  return input;
}

}  // namespace

Tensor TanhImpl::forward(const Tensor& input) { return input.tanh(); }
Tensor SigmoidImpl::forward(const Tensor& input) { return input.sigmoid(); }
Tensor LogSigmoidImpl::forward(const Tensor& input) { return functional::logsigmoid(input); }
Tensor SiLUImpl::forward(const Tensor& input) { return functional::silu(input); }
Tensor MishImpl::forward(const Tensor& input) { return functional::mish(input); }
Tensor SoftsignImpl::forward(const Tensor& input) { return functional::softsign(input); }
Tensor TanhshrinkImpl::forward(const Tensor& input) { return functional::tanhshrink(input); }
Tensor Softmax2dImpl::forward(const Tensor& input) {
  return functional::softmax(planes(input), -3);
}
Tensor ReLUImpl::forward(Tensor input) { return functional::relu(std::move(input), options); }
Tensor ReLU6Impl::forward(Tensor input) { return functional::relu6(std::move(input), options); }
Tensor SELUImpl::forward(Tensor input) { return functional::selu(std::move(input), options); }
Tensor LeakyReLUImpl::forward(Tensor input) {
  return functional::leaky_relu(std::move(input), options);
}
Tensor ELUImpl::forward(Tensor input) { return functional::elu(std::move(input), options); }
Tensor CELUImpl::forward(Tensor input) { return functional::celu(std::move(input), options); }
Tensor ThresholdImpl::forward(Tensor input) {
  return functional::threshold(std::move(input), options);
}
Tensor HardtanhImpl::forward(Tensor input) {
  return functional::hardtanh(std::move(input), options);
}
Tensor GELUImpl::forward(const Tensor& input) { return functional::gelu(input, options); }
Tensor GLUImpl::forward(const Tensor& input) { return functional::glu(input, options); }
Tensor HardshrinkImpl::forward(const Tensor& input) {
  return functional::hardshrink(input, options);
}
Tensor SoftshrinkImpl::forward(const Tensor& input) {
  return functional::softshrink(input, options);
}
Tensor SoftplusImpl::forward(const Tensor& input) { return functional::softplus(input, options); }
Tensor SoftmaxImpl::forward(const Tensor& input) {
  return functional::softmax(input, options.dim());
}
Tensor SoftminImpl::forward(const Tensor& input) {
  return functional::softmin(input, options.dim());
}
Tensor LogSoftmaxImpl::forward(const Tensor& input) {
  return functional::log_softmax(input, options.dim());
}
Tensor PReLUImpl::forward(const Tensor& input) { return functional::prelu(input, weight); }
Tensor RReLUImpl::forward(Tensor input) {
  return functional::detail::rrelu(std::move(input), options.lower(), options.upper(),
                                   is_training(), options.inplace());
}

ThresholdImpl::ThresholdImpl(double threshold, double value)
    : ListedModule(ThresholdOptions(threshold, value)) {}
HardtanhImpl::HardtanhImpl(const HardtanhOptions& options_) : ListedModule(options_) {
  HardtanhImpl::reset();
}
void HardtanhImpl::reset() {
  RAMET_CHECK(options.min_val() < options.max_val(), "Hardtanh",
              "max_val must be greater than min_val: got min_val ", options.min_val(),
              " and max_val ", options.max_val());
}
PReLUImpl::PReLUImpl(const PReLUOptions& options_) : ListedModule(options_) { PReLUImpl::reset(); }
void PReLUImpl::reset() {
  weight =
      register_parameter("weight", ramet::full({options.num_parameters()}, Scalar(options.init())));
}

RAMET_NO_FIELDS(Tanh)
RAMET_NO_FIELDS(Sigmoid)
RAMET_NO_FIELDS(LogSigmoid)
RAMET_NO_FIELDS(SiLU)
RAMET_NO_FIELDS(Mish)
RAMET_NO_FIELDS(Softsign)
RAMET_NO_FIELDS(Tanhshrink)
RAMET_NO_FIELDS(Softmax2d)
RAMET_FIELDS(ReLU, {"inplace", &o.inplace(), kIfChanged})
RAMET_FIELDS(ReLU6, {"inplace", &o.inplace(), kIfChanged})
RAMET_FIELDS(SELU, {"inplace", &o.inplace(), kIfChanged})
RAMET_FIELDS(LeakyReLU, {"negative_slope", &o.negative_slope(), kBoolalpha},
             {"inplace", &o.inplace(), kIfChanged})
RAMET_FIELDS(ELU, {"alpha", &o.alpha()}, {"inplace", &o.inplace(), kIfChanged})
RAMET_FIELDS(CELU, {"alpha", &o.alpha()}, {"inplace", &o.inplace(), kIfChanged})
RAMET_FIELDS(Threshold, {"threshold", &o.threshold(), kNeeded}, {"value", &o.value(), kNeeded},
             {"inplace", &o.inplace(), kIfChanged})
RAMET_FIELDS(Hardtanh, {"min_val", &o.min_val(), kBoolalpha}, {"max_val", &o.max_val()},
             {"inplace", &o.inplace(), kIfChanged})
RAMET_FIELDS(RReLU, {"lower", &o.lower()}, {"upper", &o.upper()},
             {"inplace", &o.inplace(), kIfChanged})
RAMET_FIELDS(GELU, {"approximate", &o.approximate(), kNotPrinted})
RAMET_FIELDS(GLU, {"dim", &o.dim()})
RAMET_FIELDS(Softmax, {"dim", &o.dim(), kNeeded})
RAMET_FIELDS(Softmin, {"dim", &o.dim(), kNeeded})
RAMET_FIELDS(LogSoftmax, {"dim", &o.dim(), kNeeded})
RAMET_FIELDS(Hardshrink, {"lambda", &o.lambda(), kBare | kBoolalpha})
RAMET_FIELDS(Softshrink, {"lambda", &o.lambda(), kBare})
RAMET_FIELDS(Softplus, {"beta", &o.beta()}, {"threshold", &o.threshold()})
RAMET_FIELDS(PReLU, {"num_parameters", &o.num_parameters(), kPositive},
             {"init", &o.init(), kNotPrinted})

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
