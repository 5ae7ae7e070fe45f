// Sums that skip NaNs, quantiles, covariances, integrals by the trapezoidal rule: LibTorch's
// functions of the same names. Differentiable to any order unless stated otherwise.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/reduce/statistics.inc"

/// Writes into results that have self's dtype.
RAMET_API std::tuple<Tensor&, Tensor&> aminmax_out(Tensor& min, Tensor& max, const Tensor& self,
                                                   std::optional<int64_t> dim = std::nullopt,
                                                   bool keepdim = false);

/// The integral of y along `dim` by the trapezoidal rule. Samples are at x (a vector, or a tensor
/// that broadcasts to y), or have the distance dx. 0 for no samples.
RAMET_API Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
RAMET_API Tensor trapezoid(const Tensor& y, const Scalar& dx = 1, int64_t dim = -1);
/// trapezoid() under its older name.
RAMET_API Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim = -1);
RAMET_API Tensor trapz(const Tensor& y, double dx = 1, int64_t dim = -1);
/// The running values of trapezoid(): one fewer than samples.
RAMET_API Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
RAMET_API Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx = 1, int64_t dim = -1);

}  // namespace ramet
