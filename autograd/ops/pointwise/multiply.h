// mul, div: LibTorch's functions of the same names, with broadcasting and promotion.
#pragma once
#include <optional>
#include <string>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/pointwise/multiply.inc"

// Out forms with a kernel that writes them.
RAMET_API Tensor& mul_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& div_out(Tensor& out, const Tensor& self, const Tensor& other);

}  // namespace ramet
