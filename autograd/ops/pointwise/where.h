// Choosing between values: LibTorch's functions of the same names, with broadcasting and promotion.
// The gradient goes where the value came from.
#pragma once
#include <optional>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

/// self where condition is true, else other. `condition` is bool (or uint8).
RAMET_API Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);
RAMET_API Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);
RAMET_API Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);
RAMET_API Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);
/// The positions of the elements != 0, as from nonzero_numpy.
RAMET_API std::vector<Tensor> where(const Tensor& condition);
RAMET_API Tensor& where_out(Tensor& out, const Tensor& condition, const Tensor& self,
                            const Tensor& other);

#include "autograd/ops/pointwise/where.inc"

}  // namespace ramet
