// Joining tensors: LibTorch's functions of the same names. Their reverses (split, chunk, unbind)
// are views: autograd/ops/view_parts.h.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// The tensors one behind the other along an existing dimension; all other extents must agree (an
/// empty vector is skipped). The dtype is the promotion of all.
RAMET_API Tensor cat(TensorList tensors, int64_t dim = 0);
/// Into `out`, resized where its shape differs; no history.
RAMET_API Tensor& cat_out(Tensor& out, TensorList tensors, int64_t dim = 0);
RAMET_API Tensor concat(TensorList tensors, int64_t dim = 0);
RAMET_API Tensor& concat_out(Tensor& out, TensorList tensors, int64_t dim = 0);

#include "autograd/forms/functions.inc"
#include "autograd/ops/shape_joins.inc"

}  // namespace ramet
