#include "nn/layers/basic/bilinear.h"

#include <cmath>

#include "autograd/ops/layers/bilinear.h"
#include "autograd/ops/make/factory.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

BilinearImpl::BilinearImpl(const BilinearOptions& options_) : ListedModule(options_) {
  BilinearImpl::reset();
}

void BilinearImpl::reset() {
  const int64_t in1 = options.in1_features(), in2 = options.in2_features(),
                out = options.out_features();
  RAMET_CHECK(in1 > 0 && in2 >= 0 && out >= 0, "Bilinear", "in1_features, in2_features and ",
              "out_features: got ", in1, ", ", in2, " and ", out,
              ", expected more than 0, and 0 or more");
  weight = register_parameter("weight", empty({out, in1, in2}));
  if (options.bias()) bias = register_parameter("bias", empty(out));
  else bias = register_parameter("bias", Tensor(), /*requires_grad=*/false);
  reset_parameters();
}

void BilinearImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(options.in1_features()));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  return functional::bilinear(input1, input2, weight, bias);
}

RAMET_FIELDS(Bilinear, {"in1_features", &o.in1_features(), kCount},
             {"in2_features", &o.in2_features(), kCount},
             {"out_features", &o.out_features(), kCount}, {"bias", &o.bias()})

namespace functional {

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  return ramet::bilinear(input1, input2, weight,
                         bias.defined() ? std::optional<Tensor>(bias) : std::nullopt);
}

}  // namespace functional
}  // namespace ramet::nn
