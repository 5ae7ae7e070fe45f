// Reductions: LibTorch's functions of the same names. `dim` lists the dimensions to reduce
// (negative ones count from the end; no list or an empty one: all). `keepdim` leaves them with
// extent 1. Note [How a reduction is cut] in kernels/reduce/reduce.h says how sums are split and
// rounded. Differentiable to any order unless stated otherwise. This holds for all reductions. This
// file has sums, products and truth values.
#pragma once
#include "autograd/ops/reduce/extremum.h"
#include "autograd/ops/reduce/moments.h"
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/reduce/reduce.inc"

}  // namespace ramet
