// add, sub: LibTorch's functions of the same names, with broadcasting and promotion; and mul, div.
#pragma once
#include "autograd/ops/pointwise/multiply.h"

namespace ramet {

#include "autograd/ops/pointwise/arithmetic.inc"

/// other - alpha * self.
RAMET_API Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
RAMET_API Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);

}  // namespace ramet
