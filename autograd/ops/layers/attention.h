// Scaled dot-product attention (Vaswani et al. 2017): LibTorch's function of the same name.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/attention.inc"

}  // namespace ramet
