// More products of vectors and arrays, next to autograd/ops/matrix/matmul.h: LibTorch's functions
// of the same names. Operands have one dtype, not bool. The exceptions are inner with a number,
// kron and addr, which promote, and addr and kron, which take bool. Differentiable to any order.
#pragma once
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/products.inc"

/// Einstein's sums: in "ij,jk->ik" a letter names a dimension of an operand. A letter that the
/// result lacks is summed over. Extents of one letter are equal or 1. A letter that occurs twice in
/// an operand stands for its diagonal. "..." stands for any dimensions, which broadcast; if the
/// result lacks it, they are summed. Without "->" the result has these dimensions, then the letters
/// that occur once, in the order of their codes.
///
/// Operands are multiplied from left to right, or by `path`. That is a list of pairs of positions
/// in the operand list. Both operands of a pair are removed from the list, and their product is
/// appended.
RAMET_API Tensor einsum(std::string_view equation, TensorList tensors,
                        OptionalIntArrayRef path = std::nullopt);

}  // namespace ramet
