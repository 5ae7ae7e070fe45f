// RMSNorm and rms_norm, which LibTorch has in Python alone.
#pragma once
#include <optional>
#include <vector>

#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API RMSNormOptions {
  RMSNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  RAMET_ARG(std::vector<int64_t>, normalized_shape);
  /// nullopt: as rms_norm chooses it (autograd/ops/layers/instance_norm.h).
  RAMET_ARG(std::optional<double>, eps) = std::nullopt;
  RAMET_ARG(bool, elementwise_affine) = true;
};

/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions, which are normalized_shape: Zhang
/// and Sennrich 2019.
class RAMET_API RMSNormImpl : public detail::ListedModule<RMSNormImpl, RMSNormOptions> {
 public:
  RMSNormImpl(std::vector<int64_t> normalized_shape)
      : RMSNormImpl(RMSNormOptions(std::move(normalized_shape))) {}
  explicit RMSNormImpl(RMSNormOptions options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& input);

  Tensor weight;
};
RAMET_LISTED_MODULE(RMSNorm, RMSNormOptions)

namespace functional {

struct RAMET_API RMSNormFuncOptions {
  RMSNormFuncOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  RAMET_ARG(std::vector<int64_t>, normalized_shape);
  RAMET_ARG(Tensor, weight);
  RAMET_ARG(std::optional<double>, eps) = std::nullopt;
};

RAMET_API Tensor rms_norm(const Tensor& input, const RMSNormFuncOptions& options);

}  // namespace functional
}  // namespace ramet::nn
