// Elements chosen by a bool mask, and the positions of elements that are not 0: LibTorch's
// functions of the same names. Differentiable to any order in everything but masks.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/index/mask.inc"

/// nonzero() as one vector of coordinates for each dimension; a 0-dim tensor counts as one
/// dimension.
RAMET_API std::vector<Tensor> nonzero_numpy(const Tensor& self);

}  // namespace ramet
