// Largest and smallest elements and their positions. As all reductions (autograd/ops/reduce.h).
#pragma once
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/extremum.inc"

/// Values and their positions (int64): the first of equals. The gradient goes to that position.
RAMET_API std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false);
RAMET_API std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim = false);
/// `values` has self's dtype, `positions` is int64.
RAMET_API std::tuple<Tensor&, Tensor&> max_out(Tensor& values, Tensor& positions,
                                               const Tensor& self, int64_t dim,
                                               bool keepdim = false);
RAMET_API std::tuple<Tensor&, Tensor&> min_out(Tensor& values, Tensor& positions,
                                               const Tensor& self, int64_t dim,
                                               bool keepdim = false);

}  // namespace ramet
