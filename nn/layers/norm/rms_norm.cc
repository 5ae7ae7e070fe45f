#include "nn/layers/norm/rms_norm.h"

#include "autograd/ops/layers/instance_norm.h"
#include "autograd/ops/make/factory.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

RMSNormImpl::RMSNormImpl(RMSNormOptions options_) : ListedModule(options_) { RMSNormImpl::reset(); }

void RMSNormImpl::reset() {
  const bool affine = options.elementwise_affine();
  weight = register_parameter("weight",
                              affine ? ramet::empty(options.normalized_shape()) : Tensor(), affine);
  reset_parameters();
}

void RMSNormImpl::reset_parameters() {
  if (options.elementwise_affine()) init::ones_(weight);
}

Tensor RMSNormImpl::forward(const Tensor& input) {
  return ramet::rms_norm(input, options.normalized_shape(), weight, options.eps());
}

RAMET_FIELDS(RMSNorm,
             {"normalized_shape", &o.normalized_shape(), kBare | kCount,
              "the last sizes of the input"},
             {"eps", &o.eps()}, {"elementwise_affine", &o.elementwise_affine()})

Tensor functional::rms_norm(const Tensor& input, const RMSNormFuncOptions& options) {
  return ramet::rms_norm(input, options.normalized_shape(), options.weight(), options.eps());
}

}  // namespace ramet::nn
