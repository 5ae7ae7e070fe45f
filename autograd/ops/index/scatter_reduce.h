// Writes at given positions that join, put or fill in values: LibTorch's functions of the same
// names. As in autograd/ops/index/gather_scatter.h, indices are checked before anything is written,
// and all writes happen in the order of the index. 16-bit sums and products are rounded once.
// Differentiable to any order in everything but indices.
#pragma once
#include <optional>
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/index/scatter_reduce.inc"

}  // namespace ramet
