// Products of vectors and arrays besides autograd/ops/matrix/matmul.h: LibTorch's functions of the
// same names. Operands of one dtype (but for inner with a number, kron and addr, which promote),
// not of bool (but for addr and kron). Differentiable to any order.
#pragma once
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/matrix/products.inc"

/// Einstein's sums: in "ij,jk->ik" a letter names a dimension of an operand, a letter that the
/// result lacks is summed over; extents of one letter are equal or 1. A letter twice in an operand
/// is its diagonal. "..." stands for any dimensions, which broadcast; without it in the result they
/// are summed. Without "->" the result has them and the letters that occur once, in the order of
/// their codes. Operands are multiplied from left to right, or by `path`: pairs of positions in the
/// list, from which both are taken and at whose end their product is put.
RAMET_API Tensor einsum(std::string_view equation, TensorList tensors,
                        OptionalIntArrayRef path = std::nullopt);

}  // namespace ramet
