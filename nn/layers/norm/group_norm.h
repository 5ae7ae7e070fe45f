// GroupNorm.
#pragma once
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels)
      : num_groups_(num_groups), num_channels_(num_channels) {}
  RAMET_ARG(int64_t, num_groups);
  RAMET_ARG(int64_t, num_channels);
  RAMET_ARG(double, eps) = 1e-5;
  RAMET_ARG(bool, affine) = true;
};

/// (x - mean) / sqrt(var + eps) * weight + bias of [n, num_channels, ...], moments over num_groups
/// groups of a sample's channels: Wu and He 2018. num_groups must divide num_channels.
class RAMET_API GroupNormImpl : public detail::ListedModule<GroupNormImpl, GroupNormOptions> {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels)
      : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  explicit GroupNormImpl(const GroupNormOptions& options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& input);

  Tensor weight, bias;
};
RAMET_LISTED_MODULE(GroupNorm, GroupNormOptions)

namespace functional {

struct RAMET_API GroupNormFuncOptions {
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}
  RAMET_ARG(int64_t, num_groups);
  RAMET_ARG(Tensor, weight);
  RAMET_ARG(Tensor, bias);
  RAMET_ARG(double, eps) = 1e-5;
};

namespace detail {
RAMET_API Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight,
                            const Tensor& bias, double eps);
}  // namespace detail
RAMET_API Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);

}  // namespace functional
}  // namespace ramet::nn
