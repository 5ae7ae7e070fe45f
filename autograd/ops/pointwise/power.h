// Powers and remainders: LibTorch's functions of the same names, with broadcasting and promotion;
// and addcmul, addcdiv, lerp.
#pragma once
#include "autograd/ops/pointwise/ternary.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/pointwise/power.inc"

// An out form with a kernel that writes into `out`.
RAMET_API Tensor& pow_out(Tensor& out, const Tensor& self, const Tensor& exponent);

}  // namespace ramet
