// Linear, Identity.
#pragma once
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  RAMET_ARG(int64_t, in_features);
  RAMET_ARG(int64_t, out_features);
  RAMET_ARG(bool, bias) = true;
};

/// y = x weight^T + bias: (*, in_features) to (*, out_features). `weight` is (out_features,
/// in_features); `bias` is undefined without one. Both start uniform in +-1/sqrt(in_features).
class RAMET_API LinearImpl : public detail::ListedModule<LinearImpl, LinearOptions> {
 public:
  LinearImpl(int64_t in_features, int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& input);

  Tensor weight, bias;
};
RAMET_LISTED_MODULE(Linear, LinearOptions)

/// Returns its input.
RAMET_LAYER(
    Identity, void, Tensor forward(const Tensor& input) { return input; })

}  // namespace ramet::nn
