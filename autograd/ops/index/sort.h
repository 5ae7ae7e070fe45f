// Operations that order elements: LibTorch's functions of the same names. A NaN is the largest
// number, and equal to other NaNs; 0 and -0 are equal. Of equal elements, the first in memory comes
// first. So results are the same on every device and for any number of threads. The gradient of a
// value goes to its position; positions have no gradient. Differentiable to any order.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/index/sort.inc"

}  // namespace ramet
