// LayerNorm.
#pragma once
#include <vector>

#include "nn/module/listed_module.h"

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
class RAMET_API LayerNormImpl : public detail::ListedModule<LayerNormImpl, LayerNormOptions> {
 public:
  LayerNormImpl(std::vector<int64_t> normalized_shape)
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  explicit LayerNormImpl(LayerNormOptions options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& input);

  Tensor weight, bias;
};
RAMET_LISTED_MODULE(LayerNorm, LayerNormOptions)

}  // namespace ramet::nn
