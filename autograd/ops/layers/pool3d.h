// Pooling of volumes [n, c, d, h, w] or [c, d, h, w]: LibTorch's functions of the same names.
// Numbers and errors are those of pool.h. A list of one number stands for all three dimensions.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/pool3d.inc"

/// Maxima over windows floor(i in / out) .. ceil((i + 1) in / out) of the last dimension, and their
/// positions as those of max_pool1d. adaptive_max_pool2d and 3d do the same for the last two and
/// three dimensions. Floating point.
RAMET_API std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self,
                                                         IntArrayRef output_size);

}  // namespace ramet
