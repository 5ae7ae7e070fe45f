// Elements named by a bool mask, and where a tensor is not 0: LibTorch's functions of the same
// names. Differentiable to any order in everything but masks.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/index/mask.inc"

/// One vector of coordinates for each dimension; that of a 0-dim tensor counts as one dimension.
RAMET_API std::vector<Tensor> nonzero_numpy(const Tensor& self);

}  // namespace ramet
