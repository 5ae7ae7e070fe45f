// addcmul, addcdiv, lerp: LibTorch's functions of the same names, with broadcasting and promotion.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/pointwise/ternary.inc"

}  // namespace ramet
