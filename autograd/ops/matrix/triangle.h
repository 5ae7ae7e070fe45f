// Triangles of matrices: LibTorch's functions of the same names, differentiable to any order. The
// time is linear in the number of elements. They copy under a mask of one matrix, with one byte for
// each element; index arithmetic makes the mask, and a batch shares it.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/triangle.inc"

/// [2, n]: rows and columns of the elements that triu keeps of a row x col matrix, row by row.
/// int64, or int32 where `options` say so.
RAMET_API Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0,
                              const TensorOptions& options = kLong);
/// Positions [2, n] of the elements of a lower triangle, row by row: columns up to row + offset.
RAMET_API Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0,
                              const TensorOptions& options = kLong);
/// Writes into `out`, in its dtype.
RAMET_API Tensor& triu_indices_out(Tensor& out, int64_t row, int64_t col, int64_t offset = 0);
/// Writes into `out`, in its dtype.
RAMET_API Tensor& tril_indices_out(Tensor& out, int64_t row, int64_t col, int64_t offset = 0);

}  // namespace ramet
