// Powers and remainders: LibTorch's functions of the same names, with broadcasting and promotion;
// and addcmul, addcdiv, lerp.
#pragma once
#include "autograd/ops/pointwise/ternary.h"

namespace ramet {

#include "autograd/ops/pointwise/power.inc"

}  // namespace ramet
