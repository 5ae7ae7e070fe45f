// mul, div: LibTorch's functions of the same names, with broadcasting and promotion.
#pragma once
#include <optional>
#include <string>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/pointwise/multiply.inc"

}  // namespace ramet
