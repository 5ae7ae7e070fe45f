// Images as columns of blocks, and back: LibTorch's functions of the same names. Each list has two
// numbers. Floating point and bool; differentiable to any order, in one order of additions.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/layers/im2col.inc"

}  // namespace ramet
