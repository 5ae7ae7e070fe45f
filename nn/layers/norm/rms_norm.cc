#include "nn/layers/norm/rms_norm.h"

#include <ostream>

#include "autograd/ops/layers/instance_norm.h"
#include "autograd/ops/make/factory.h"
#include "nn/init.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

RMSNormImpl::RMSNormImpl(RMSNormOptions options_) : options(std::move(options_)) {
  RMSNormImpl::reset();
}

void RMSNormImpl::reset() {
  const bool affine = options.elementwise_affine();
  weight = register_parameter("weight",
                              affine ? ramet::empty(options.normalized_shape()) : Tensor(), affine);
  reset_parameters();
}

void RMSNormImpl::reset_parameters() {
  if (options.elementwise_affine()) init::ones_(weight);
}

void RMSNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << detail::qualified("nn::RMSNorm(")
         << IntArrayRef(options.normalized_shape()) << ", eps=";
  if (options.eps()) stream << *options.eps();
  else stream << "None";
  stream << ", elementwise_affine=" << options.elementwise_affine() << ")";
}

Tensor RMSNormImpl::forward(const Tensor& input) {
  return ramet::rms_norm(input, options.normalized_shape(), weight, options.eps());
}

template class Cloneable<RMSNormImpl>;

Tensor functional::rms_norm(const Tensor& input, const RMSNormFuncOptions& options) {
  return ramet::rms_norm(input, options.normalized_shape(), options.weight(), options.eps());
}

}  // namespace ramet::nn
