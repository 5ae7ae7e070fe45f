// Instance norm (Ulyanov et al. 2016) and RMS norm (Zhang and Sennrich 2019): LibTorch's functions
// of the same names.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

/// (x - mean) / sqrt(var + eps) * weight + bias for each channel of each sample: group_norm with
/// one channel in each group. input is [n, c, ...], floating point. running_mean and running_var
/// are both given, as [c], or neither. They move by `momentum` towards the average over the samples
/// of means and unbiased variances. Where use_input_stats is false, the function uses them instead.
/// weight, bias: [c] or undefined. cudnn_enabled has no meaning here. Differentiable to any order.
RAMET_API Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight,
                               const std::optional<Tensor>& bias,
                               const std::optional<Tensor>& running_mean,
                               const std::optional<Tensor>& running_var, bool use_input_stats,
                               double momentum, double eps, bool cudnn_enabled);

#include "autograd/ops/layers/instance_norm.inc"

}  // namespace ramet
