// Two linear layers with GELU between them, as one operation.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/linear_gelu.inc"

}  // namespace ramet
