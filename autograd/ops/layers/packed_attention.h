// Attention of a projection's query, key and value in one tensor. Not in LibTorch.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/packed_attention.inc"

}  // namespace ramet
