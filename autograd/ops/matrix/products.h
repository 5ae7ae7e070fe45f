// More products of vectors and arrays, next to autograd/ops/matrix/matmul.h: LibTorch's functions
// of the same names. Operands have one dtype, not bool. The exceptions are inner with a number,
// kron and addr, which promote, and addr and kron, which take bool. Differentiable to any order.
#pragma once
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/products.inc"

}  // namespace ramet
