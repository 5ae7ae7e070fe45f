#include "nn/layers/norm/group_norm.h"

#include <ostream>

#include "autograd/ops/layers/group_norm.h"
#include "autograd/ops/make/factory.h"
#include "nn/init.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

GroupNormImpl::GroupNormImpl(const GroupNormOptions& options_) : options(options_) {
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

void GroupNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << detail::qualified("nn::GroupNorm(") << options.num_groups() << ", "
         << options.num_channels() << ", eps=" << options.eps() << ", affine=" << options.affine()
         << ")";
}

Tensor GroupNormImpl::forward(const Tensor& input) {
  return functional::detail::group_norm(input, options.num_groups(), weight, bias, options.eps());
}

template class Cloneable<GroupNormImpl>;

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
