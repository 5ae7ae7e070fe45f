// Group norm (Wu and He 2018): LibTorch's function of the same name.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/group_norm.inc"

}  // namespace ramet
