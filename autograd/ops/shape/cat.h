// Joining tensors: LibTorch's functions of the same names. Their reverses (split, chunk, unbind)
// are views: autograd/ops/shape/view_parts.h.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// The tensors one behind the other along an existing dimension; all other extents must agree (an
/// empty vector is skipped). The dtype is the promotion of all.
RAMET_API Tensor cat(TensorList tensors, int64_t dim = 0);
/// Into `out`, resized where its shape differs; no history.
RAMET_API Tensor& cat_out(Tensor& out, TensorList tensors, int64_t dim = 0);

/// With dimensions of extent 1 as far as they are missing, views: [n] as [1, n] and [1, n, 1],
/// [n, m] as [n, m, 1]. A tensor that has as many is returned as it is.
RAMET_API Tensor atleast_1d(const Tensor& self);
/// With leading dimensions of extent 1, so that there are two at least.
RAMET_API Tensor atleast_2d(const Tensor& self);
/// With three at least: a number is [1, 1, 1], a vector [1, n, 1], a matrix [m, n, 1].
RAMET_API Tensor atleast_3d(const Tensor& self);
RAMET_API std::vector<Tensor> atleast_1d(TensorList tensors);
RAMET_API std::vector<Tensor> atleast_2d(TensorList tensors);
RAMET_API std::vector<Tensor> atleast_3d(TensorList tensors);

#include "autograd/forms/functions.inc"
#include "autograd/ops/shape/cat.inc"

}  // namespace ramet
