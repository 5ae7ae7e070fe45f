// Losses: LibTorch's functions of the same names. `reduction` is Reduction::None (one loss for each
// element), Mean or Sum. Differentiable to any order in input, and in target where it is a
// floating-point tensor.
#pragma once
#include <optional>

#include "autograd/ops/loss/cross_entropy.h"
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/loss/loss.inc"

}  // namespace ramet
