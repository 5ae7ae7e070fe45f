// Matrices from diagonals and back, copies: LibTorch's functions of the same names. The view of a
// diagonal is in autograd/ops/shape/view_parts.h. Differentiable to any order.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/diagonals.inc"

}  // namespace ramet
