// Activations that are composed of other functions: LibTorch's functions of the same names. For
// floating-point dtypes, unless stated otherwise. Differentiable to any order.
#pragma once
#include <optional>

#include "autograd/tensor.h"
#include "runtime/devices/generator.h"

namespace ramet {

#include "autograd/ops/pointwise/activation_composed.inc"

}  // namespace ramet
