#include "nn/layers/basic/dropout.h"

#include "nn/functional/functional.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

#define RAMET_DROPOUT(Name) RAMET_FIELDS(Name, {"p", &o.p()}, {"inplace", &o.inplace()})
RAMET_DROPOUT(Dropout)
RAMET_DROPOUT(Dropout2d)
RAMET_DROPOUT(Dropout3d)
RAMET_DROPOUT(AlphaDropout)
RAMET_DROPOUT(FeatureAlphaDropout)
#undef RAMET_DROPOUT

Tensor DropoutImpl::forward(Tensor input) {
  return functional::detail::dropout(std::move(input), options.p(), is_training(),
                                     options.inplace());
}
Tensor Dropout2dImpl::forward(Tensor input) {
  return functional::detail::dropout2d(std::move(input), options.p(), is_training(),
                                       options.inplace());
}
Tensor Dropout3dImpl::forward(Tensor input) {
  return functional::detail::dropout3d(std::move(input), options.p(), is_training(),
                                       options.inplace());
}
Tensor AlphaDropoutImpl::forward(const Tensor& input) {
  return functional::detail::alpha_dropout(input, options.p(), is_training(), /*inplace=*/false);
}
Tensor FeatureAlphaDropoutImpl::forward(const Tensor& input) {
  return functional::detail::feature_alpha_dropout(input, options.p(), is_training(),
                                                   /*inplace=*/false);
}

}  // namespace ramet::nn
