// Layer norm (Ba, Kiros, Hinton 2016): LibTorch's function of the same name.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/layer_norm.inc"

/// layer_norm(input + residual) and input + residual, in one pass over memory in each direction. A
/// pre-norm transformer block needs both between two of its parts. input and residual have one
/// shape, dtype and device. The sum is rounded to that dtype before it is normalised, so the
/// results are those of the two operations. Differentiable to any order. Not in LibTorch.
RAMET_API std::tuple<Tensor, Tensor> residual_layer_norm(const Tensor& input,
                                                         const Tensor& residual,
                                                         IntArrayRef normalized_shape,
                                                         const std::optional<Tensor>& weight = {},
                                                         const std::optional<Tensor>& bias = {},
                                                         double eps = 1e-05);

}  // namespace ramet
