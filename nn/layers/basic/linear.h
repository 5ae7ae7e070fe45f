// Linear, Identity.
#pragma once
#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

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
class RAMET_API LinearImpl : public Cloneable<LinearImpl> {
 public:
  LinearImpl(int64_t in_features, int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options_);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  LinearOptions options;
  Tensor weight, bias;
};
extern template class Cloneable<LinearImpl>;
RAMET_MODULE(Linear);

/// Returns its input.
class RAMET_API IdentityImpl : public Cloneable<IdentityImpl> {
 public:
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return input; }
};
extern template class Cloneable<IdentityImpl>;
RAMET_MODULE(Identity);

}  // namespace ramet::nn
