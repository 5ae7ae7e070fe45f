// Numerical derivatives of samples: LibTorch's function gradient, differentiable to any order.
#pragma once
#include <optional>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

/// The derivatives of the sampled function self along `dim` (all dimensions by default), one tensor
/// for each. Inside, they come from the two neighbours of a sample; at the borders from
/// `edge_order` (1 or 2) of them. The formulas are exact for parabolas (with edge_order 1, at the
/// borders for lines). The distance of samples is `spacing` (1 by default): one number for all
/// dimensions, one for each, or a vector of coordinates for each. Integers give the default dtype.
/// Not for uint8; for bool only where no two of them are subtracted. An extent along `dim` is at
/// least edge_order + 1.
RAMET_API std::vector<Tensor> gradient(const Tensor& self,
                                       const std::optional<Scalar>& spacing = std::nullopt,
                                       std::optional<int64_t> dim = std::nullopt,
                                       int64_t edge_order = 1);
RAMET_API std::vector<Tensor> gradient(const Tensor& self, const Scalar& spacing, IntArrayRef dim,
                                       int64_t edge_order = 1);
RAMET_API std::vector<Tensor> gradient(const Tensor& self, IntArrayRef dim, int64_t edge_order = 1);
RAMET_API std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing,
                                       std::optional<int64_t> dim = std::nullopt,
                                       int64_t edge_order = 1);
RAMET_API std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing,
                                       IntArrayRef dim, int64_t edge_order = 1);
RAMET_API std::vector<Tensor> gradient(const Tensor& self, TensorList spacing,
                                       std::optional<int64_t> dim = std::nullopt,
                                       int64_t edge_order = 1);
RAMET_API std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, IntArrayRef dim,
                                       int64_t edge_order = 1);

}  // namespace ramet
