// InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, and instance_norm.
#pragma once
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}
  RAMET_ARG(int64_t, num_features);
  RAMET_ARG(double, eps) = 1e-5;
  /// Weight of a new batch in the running statistics.
  RAMET_ARG(double, momentum) = 0.1;
  RAMET_ARG(bool, affine) = false;
  RAMET_ARG(bool, track_running_stats) = false;
};
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;

/// (x - mean) / sqrt(var + eps) * weight + bias per channel of each sample: Ulyanov et al. 2016.
/// With running statistics, which are averages over samples, evaluation uses those. The running
/// statistics after replicas are the average of theirs (BufferPolicy::mean): those of the whole
/// batch where all have as many samples. num_batches_tracked is never counted up, as LibTorch's.
template <int D, class Derived>
class RAMET_API InstanceNormImpl : public detail::ListedModule<Derived, InstanceNormOptions> {
 public:
  using detail::ListedModule<Derived, InstanceNormOptions>::options;
  InstanceNormImpl(int64_t num_features) : InstanceNormImpl(InstanceNormOptions(num_features)) {}
  explicit InstanceNormImpl(const InstanceNormOptions& options_);
  void reset() override;
  void reset_running_stats();
  void reset_parameters();
  Tensor forward(const Tensor& input);

  Tensor weight, bias, running_mean, running_var, num_batches_tracked;  // (num_features) each
};

// Inputs (N, C, ...) or (C, ...).
RAMET_LAYER_FROM(InstanceNorm1d, InstanceNormOptions, InstanceNormImpl, 1)
RAMET_LAYER_FROM(InstanceNorm2d, InstanceNormOptions, InstanceNormImpl, 2)
RAMET_LAYER_FROM(InstanceNorm3d, InstanceNormOptions, InstanceNormImpl, 3)

namespace functional {

struct RAMET_API InstanceNormFuncOptions {
  RAMET_ARG(Tensor, running_mean);
  RAMET_ARG(Tensor, running_var);
  RAMET_ARG(Tensor, weight);
  RAMET_ARG(Tensor, bias);
  RAMET_ARG(bool, use_input_stats) = true;
  RAMET_ARG(double, momentum) = 0.1;
  RAMET_ARG(double, eps) = 1e-5;
};

namespace detail {
RAMET_API Tensor instance_norm(const Tensor& input, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                               bool use_input_stats, double momentum, double eps);
}  // namespace detail
RAMET_API Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options = {});

}  // namespace functional
}  // namespace ramet::nn
