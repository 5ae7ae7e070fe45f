#include "nn/layers/norm/layer_norm.h"

#include <ostream>

#include "autograd/ops/make/factory.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

LayerNormImpl::LayerNormImpl(LayerNormOptions options_) : options(std::move(options_)) {
  LayerNormImpl::reset();
}

void LayerNormImpl::reset() {
  if (options.elementwise_affine()) {
    weight = register_parameter("weight", ramet::empty(options.normalized_shape()));
    bias = register_parameter("bias", ramet::empty(options.normalized_shape()));
  } else {
    weight = register_parameter("weight", Tensor(), /*requires_grad=*/false);
    bias = register_parameter("bias", Tensor(), /*requires_grad=*/false);
  }
  reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  if (!options.elementwise_affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

void LayerNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << detail::qualified("nn::LayerNorm(")
         << IntArrayRef(options.normalized_shape()) << ", eps=" << options.eps()
         << ", elementwise_affine=" << options.elementwise_affine() << ")";
}

Tensor LayerNormImpl::forward(const Tensor& input) {
  return functional::detail::layer_norm(input, options.normalized_shape(), weight, bias,
                                        options.eps());
}

template class Cloneable<LayerNormImpl>;

}  // namespace ramet::nn
