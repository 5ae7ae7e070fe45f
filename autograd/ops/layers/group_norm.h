// Group norm (Wu and He 2018): LibTorch's function of the same name.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

/// (x - mean) / sqrt(var + eps) * weight + bias for input [n, c, ...], floating point. mean and var
/// (without correction) are over each of the num_groups groups of c / num_groups neighbouring
/// channels of a sample. weight and bias, where given, are [c] of any floating type, one number for
/// each channel. Statistics are computed in float (double for float64), whatever the input's type;
/// the result has that type. A group without values, which LibTorch refuses, adds nothing to the
/// gradients. cudnn_enabled has no meaning here. Differentiable to any order. On a CPU the result
/// keeps the memory layout of a channels-last input.
RAMET_API Tensor group_norm(const Tensor& input, int64_t num_groups,
                            const std::optional<Tensor>& weight = {},
                            const std::optional<Tensor>& bias = {}, double eps = 1e-05,
                            bool cudnn_enabled = true);

}  // namespace ramet
