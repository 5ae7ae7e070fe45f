// Joining tensors: LibTorch's functions of the same names. Their reverses (split, chunk, unbind)
// are views: autograd/ops/view.h.
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
/// Tensors of one shape along a new dimension.
RAMET_API Tensor stack(TensorList tensors, int64_t dim = 0);
RAMET_API Tensor& stack_out(Tensor& out, TensorList tensors, int64_t dim = 0);
/// cat along dimension 1 (0 for vectors); along dimension 0 of tensors made at least 2-D.
RAMET_API Tensor hstack(TensorList tensors);
RAMET_API Tensor vstack(TensorList tensors);
RAMET_API Tensor& hstack_out(Tensor& out, TensorList tensors);
RAMET_API Tensor& vstack_out(Tensor& out, TensorList tensors);

}  // namespace ramet
