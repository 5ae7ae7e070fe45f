// addcmul, addcdiv, lerp: LibTorch's functions of the same names, with broadcasting and promotion.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/pointwise/ternary.inc"

// Out forms with a kernel that writes them.
RAMET_API Tensor& addcmul_out(Tensor& out, const Tensor& self, const Tensor& tensor1,
                              const Tensor& tensor2, const Scalar& value = 1);
RAMET_API Tensor& addcdiv_out(Tensor& out, const Tensor& self, const Tensor& tensor1,
                              const Tensor& tensor2, const Scalar& value = 1);

}  // namespace ramet
