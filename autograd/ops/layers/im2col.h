// Images as columns of blocks, and the reverse: LibTorch's functions of the same names. Each list
// has two numbers. Floating point and bool. Differentiable to any order, with one order of
// additions.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/im2col.inc"

}  // namespace ramet
