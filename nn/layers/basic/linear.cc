#include "nn/layers/basic/linear.h"

#include <cmath>

#include "autograd/ops/make/factory.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

LinearImpl::LinearImpl(const LinearOptions& options_) : ListedModule(options_) {
  LinearImpl::reset();
}

void LinearImpl::reset() {
  weight = register_parameter("weight", empty({options.out_features(), options.in_features()}));
  bias = options.bias() ? register_parameter("bias", empty({options.out_features()}))
                        : register_parameter("bias", Tensor(), /*requires_grad=*/false);
  reset_parameters();
  if (lora_) register_lora();  // in clone()
}

void LinearImpl::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const auto fan_in = static_cast<double>(std::get<0>(init::_calculate_fan_in_and_fan_out(weight)));
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;  // as PyTorch's
  init::uniform_(bias, -bound, bound);
}

Tensor LinearImpl::forward(const Tensor& input) {
  if (RAMET_UNLIKELY(ramet::detail::tls.capturing != 0)) guard_lora();
  Tensor y = functional::linear(input, weight, bias);
  if (RAMET_LIKELY(!lora_)) return y;
  return with_lora(input, y);
}

RAMET_FIELDS(Linear, {"in_features", &o.in_features(), kCount},
             {"out_features", &o.out_features(), kCount}, {"bias", &o.bias()})
RAMET_NO_FIELDS(Identity)

}  // namespace ramet::nn
