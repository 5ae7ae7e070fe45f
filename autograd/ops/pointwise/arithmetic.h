// add, sub: LibTorch's functions of the same names, with broadcasting and promotion; and mul, div.
#pragma once
#include "autograd/ops/pointwise/multiply.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/pointwise/arithmetic.inc"

/// other - alpha * self.
RAMET_API Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
RAMET_API Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);

// Out forms with a kernel that writes into `out`, which is resized where its shape differs. No
// history: an Error where one would be needed.
RAMET_API Tensor& add_out(Tensor& out, const Tensor& self, const Tensor& other,
                          const Scalar& alpha = 1);
RAMET_API Tensor& sub_out(Tensor& out, const Tensor& self, const Tensor& other,
                          const Scalar& alpha = 1);

}  // namespace ramet
