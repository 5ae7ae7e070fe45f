// Norms by their names in LibTorch's linear algebra, and distances: LibTorch's functions of the
// same names, for floating-point dtypes. Derivatives where a norm or a distance is 0 are 0.
#pragma once
#include <optional>
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/matrix/distance.inc"

/// Distances of the rows of x1 [..., P, M] and of x2 [..., R, M] by the p-norm: [..., P, R];
/// leading dimensions broadcast. With p 2 by one matrix product, which is quick and loses digits
/// where rows are close, by compute_mode 1, never by 2, by default (0) from more than 25 rows on.
RAMET_API Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2,
                       std::optional<int64_t> compute_mode = std::nullopt);
/// The distances of all pairs of rows i < j of a matrix, as a vector.
RAMET_API Tensor pdist(const Tensor& self, double p = 2);
/// norm(x1 - x2 + eps, p) over the last dimension.
RAMET_API Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2,
                                   double eps = 1e-06, bool keepdim = false);
/// The cosine of the angle between vectors along `dim`, whose norms count as eps at least. Operands
/// broadcast and promote.
RAMET_API Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1,
                                   double eps = 1e-08);

}  // namespace ramet
