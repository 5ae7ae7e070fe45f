// Reads and writes at given positions: LibTorch's functions of the same names. Index tensors are
// int64 (or int32). An index outside its range is an IndexError that names position, value and
// size, before anything is written. All writes happen in the order of the index, so repeated
// positions give the same bits every time. 16-bit sums are computed in float and rounded once.
// Differentiable to any order in everything but indices.
#pragma once
#include "autograd/ops/index/mask.h"
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/index/gather_scatter.inc"

namespace autograd {
/// Adds src at `index` along `dim` to zeros of these sizes: the adjoint of gather. Recorded.
RAMET_API Tensor scatter_zeros(IntArrayRef sizes, int64_t dim, const Tensor& index,
                               const Tensor& src);
/// The same for an index that names no element twice.
RAMET_API Tensor move_to_zeros(IntArrayRef sizes, int64_t dim, const Tensor& index,
                               const Tensor& src);
/// The adjoint of index_select.
RAMET_API Tensor index_add_zeros(IntArrayRef sizes, int64_t dim, const Tensor& index,
                                 const Tensor& src);
}  // namespace autograd

}  // namespace ramet
