// Layer norm (Ba, Kiros, Hinton 2016): LibTorch's function of the same name.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

/// (x - mean) / sqrt(var + eps) * weight + bias, moments over the last normalized_shape.size()
/// dimensions (var without correction). weight and bias, where given, have sizes normalized_shape
/// and input's dtype. Differentiable to any order.
RAMET_API Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape,
                            const std::optional<Tensor>& weight = {},
                            const std::optional<Tensor>& bias = {}, double eps = 1e-05,
                            bool cudnn_enable = true);

}  // namespace ramet
