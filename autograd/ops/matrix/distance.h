// Norms under their names in LibTorch's linear algebra, and distances: LibTorch's functions of the
// same names, for floating-point dtypes. Where a norm or a distance is 0, its derivative is 0.
#pragma once
#include <optional>
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/distance.inc"

/// The distances of the rows of x1 [..., P, M] and of x2 [..., R, M] by the p-norm: [..., P, R];
/// leading dimensions broadcast. Where p is 2, one matrix product may compute them, which is quick
/// and loses digits where rows are close. With compute_mode 1 it always does, with 2 never, and by
/// default (0) where one side has more than 25 rows.
RAMET_API Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2,
                       std::optional<int64_t> compute_mode = std::nullopt);
/// The distances of all pairs of rows i < j of a matrix, as a vector.
RAMET_API Tensor pdist(const Tensor& self, double p = 2);
/// norm(x1 - x2 + eps, p) over the last dimension.
RAMET_API Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2,
                                   double eps = 1e-06, bool keepdim = false);
/// The cosine of the angle between vectors along `dim`. A norm counts as at least eps. Operands
/// broadcast and promote.
RAMET_API Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1,
                                   double eps = 1e-08);

}  // namespace ramet
