// A product of two vectors and an array: LibTorch's function of the same name.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/bilinear.inc"

}  // namespace ramet
