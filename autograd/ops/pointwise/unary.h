// Functions of one tensor, element by element: LibTorch's functions of the same names.
// kernels/pointwise/lists.h lists most of them; their contracts are in
// kernels/pointwise/rows/unary.h. Integers give the default floating-point type, unless a contract
// says otherwise. Each has a method and an in-place method of its name, an out form, and (except
// for sign) an in-place function. The out form resizes `out` where its shape differs, and needs a
// dtype that the result can be cast to. It makes no history (an Error where one would be needed).
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/pointwise/unary.inc"

}  // namespace ramet
