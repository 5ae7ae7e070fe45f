// A product of two vectors and an array: LibTorch's function of the same name.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

/// y[..., k] = sum over i and j of input1[..., i] weight[k, i, j] input2[..., j], plus bias[k]. All
/// share one dtype; inputs have the same leading sizes. Differentiable to any order.
RAMET_API Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                          const std::optional<Tensor>& bias = {});

}  // namespace ramet
