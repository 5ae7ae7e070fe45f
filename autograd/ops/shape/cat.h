// Joining tensors: LibTorch's functions of the same names. Their reverses (split, chunk, unbind)
// are views: autograd/ops/shape/view_parts.h.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// Writes into `out`, which is resized where its shape differs; no history.
RAMET_API Tensor& cat_out(Tensor& out, TensorList tensors, int64_t dim = 0);

/// A view with one dimension where the tensor has none. A tensor with dimensions is returned as it
/// is.
RAMET_API Tensor atleast_1d(const Tensor& self);
/// A view with leading dimensions of extent 1, so that there are at least two: [n] as [1, n].
RAMET_API Tensor atleast_2d(const Tensor& self);
/// A view with at least three: a number is [1, 1, 1], a vector [1, n, 1], a matrix [m, n, 1].
RAMET_API Tensor atleast_3d(const Tensor& self);
RAMET_API std::vector<Tensor> atleast_1d(TensorList tensors);
RAMET_API std::vector<Tensor> atleast_2d(TensorList tensors);
RAMET_API std::vector<Tensor> atleast_3d(TensorList tensors);

#include "autograd/ops/shape/cat.inc"

}  // namespace ramet
