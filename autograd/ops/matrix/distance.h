// Norms under their names in LibTorch's linear algebra, and distances: LibTorch's functions of the
// same names, for floating-point dtypes. Where a norm or a distance is 0, its derivative is 0.
#pragma once
#include <optional>
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/distance.inc"

/// norm(x1 - x2 + eps, p) over the last dimension.
RAMET_API Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2,
                                   double eps = 1e-06, bool keepdim = false);

}  // namespace ramet
