#include "nn/layers/norm/layer_norm.h"

#include "autograd/ops/make/factory.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

LayerNormImpl::LayerNormImpl(LayerNormOptions options_) : ListedModule(options_) {
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

Tensor LayerNormImpl::forward(const Tensor& input) {
  return functional::detail::layer_norm(input, options.normalized_shape(), weight, bias,
                                        options.eps());
}

RAMET_FIELDS(LayerNorm,
             {"normalized_shape", &o.normalized_shape(), kBare | kCount,
              "the last sizes of the input"},
             {"eps", &o.eps()}, {"elementwise_affine", &o.elementwise_affine()})

}  // namespace ramet::nn
