// Positions among sorted numbers, and counts of elements: LibTorch's functions of the same names.
// Results are counts, without history.
#pragma once
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/index/search.inc"

}  // namespace ramet
