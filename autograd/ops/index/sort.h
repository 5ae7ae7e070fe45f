// What orders elements: LibTorch's functions of the same names. A NaN is the largest, equal to
// other NaNs; 0 and -0 are equal; of equal elements the one that comes first in memory's order is
// the first, so results are the same on every device and for any number of threads. The gradient
// of a value goes to where it was; positions have none. Differentiable to any order.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/index/sort.inc"

}  // namespace ramet
