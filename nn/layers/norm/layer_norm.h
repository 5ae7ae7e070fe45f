// LayerNorm.
#pragma once
#include <vector>

#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

struct RAMET_API LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  RAMET_ARG(std::vector<int64_t>, normalized_shape);
  RAMET_ARG(double, eps) = 1e-5;
  RAMET_ARG(bool, elementwise_affine) = true;
};

/// (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, which are
/// normalized_shape: Ba et al. 2016.
class RAMET_API LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  LayerNormImpl(std::vector<int64_t> normalized_shape)
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  explicit LayerNormImpl(LayerNormOptions options_);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  LayerNormOptions options;
  Tensor weight, bias;
};
extern template class Cloneable<LayerNormImpl>;
RAMET_MODULE(LayerNorm);

}  // namespace ramet::nn
