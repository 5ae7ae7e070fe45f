// Batch normalisation: LibTorch's functions of the same names.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

/// (x - mean) / sqrt(var + eps) * weight + bias for each channel (dimension 1) of input [n, c,
/// ...], floating point. In training, mean and biased variance are those of the batch. Then
/// running_mean and running_var (if defined) move by `momentum` towards the batch's mean and
/// unbiased variance. Otherwise the function uses running_mean and running_var. They have no
/// derivative: an Error where one requires it. weight, bias: [c] or undefined. Statistics are
/// computed in float (double for float64), whatever the input's type. cudnn_enabled has no meaning
/// here.
///
/// Source: Ioffe and Szegedy 2015. On a CPU the result keeps the memory layout of a channels-last
/// input.
RAMET_API Tensor batch_norm(const Tensor& input, const std::optional<Tensor>& weight,
                            const std::optional<Tensor>& bias,
                            const std::optional<Tensor>& running_mean,
                            const std::optional<Tensor>& running_var, bool training,
                            double momentum, double eps, bool cudnn_enabled);

/// max_pool2d(relu(batch_norm(...)), 2) in one pass over the input in each direction, which stores
/// no intermediate results. A convolution stage needs this, and it takes a fraction of the memory
/// traffic. The values are those of the three operations. Channels-last float images (a
/// convolution's result) take the fused path; all others take the three operations. Not in
/// LibTorch.
RAMET_API Tensor batch_norm_relu_max_pool2d(const Tensor& input,
                                            const std::optional<Tensor>& weight,
                                            const std::optional<Tensor>& bias,
                                            const std::optional<Tensor>& running_mean,
                                            const std::optional<Tensor>& running_var, bool training,
                                            double momentum, double eps);

}  // namespace ramet
