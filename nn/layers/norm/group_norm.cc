#include "nn/layers/norm/group_norm.h"

#include "autograd/ops/layers/group_norm.h"
#include "autograd/ops/make/factory.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

GroupNormImpl::GroupNormImpl(const GroupNormOptions& options_) : ListedModule(options_) {
  GroupNormImpl::reset();
}

void GroupNormImpl::reset() {
  RAMET_CHECK(options.num_groups() > 0 && options.num_channels() % options.num_groups() == 0,
              "GroupNorm", "num_channels must be divisible by num_groups: got num_channels ",
              options.num_channels(), " and num_groups ", options.num_groups());
  if (options.affine()) {
    weight = register_parameter("weight", ramet::empty({options.num_channels()}));
    bias = register_parameter("bias", ramet::empty({options.num_channels()}));
  } else {
    weight = register_parameter("weight", Tensor(), /*requires_grad=*/false);
    bias = register_parameter("bias", Tensor(), /*requires_grad=*/false);
  }
  reset_parameters();
}

void GroupNormImpl::reset_parameters() {
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

Tensor GroupNormImpl::forward(const Tensor& input) {
  return functional::detail::group_norm(input, options.num_groups(), weight, bias, options.eps());
}

RAMET_FIELDS(GroupNorm, {"num_groups", &o.num_groups(), kBare | kCount},
             {"num_channels", &o.num_channels(), kBare | kCount}, {"eps", &o.eps()},
             {"affine", &o.affine()})

namespace functional {

Tensor detail::group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight,
                          const Tensor& bias, double eps) {
  return ramet::group_norm(input, num_groups, weight, bias, eps);
}
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options) {
  return detail::group_norm(input, options.num_groups(), options.weight(), options.bias(),
                            options.eps());
}

}  // namespace functional
}  // namespace ramet::nn
