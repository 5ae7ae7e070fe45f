// Functions of two tensors, element by element: LibTorch's functions of the same names, with
// broadcasting and promotion.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/pointwise/pair.inc"

}  // namespace ramet
