// Elements chosen by a bool mask, and the positions of elements that are not 0: LibTorch's
// functions of the same names. Differentiable to any order in everything but masks.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/index/mask.inc"

}  // namespace ramet
