// Reading and writing at named positions: LibTorch's functions of the same names. Index tensors are
// int64 (or int32); an index outside its range is an IndexError that names position, value and
// size, before anything is written. All writes happen in the order of the index, so repeated
// positions give the same bits every time; sixteen-bit sums are made in float and rounded once.
// Differentiable to any order in everything but indices.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// out[i][j][k] = self[index[i][j][k]][j][k] for dim 0, and so on; index.size(d) <= self.size(d)
/// for d != dim.
RAMET_API Tensor gather(const Tensor& self, int64_t dim, const Tensor& index,
                        bool sparse_grad = false);
/// The reverse: self with out[index[i][j][k]][j][k] = src[i][j][k]. Of several values for one
/// element the last one stays.
RAMET_API Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
RAMET_API Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
/// With += instead of =.
RAMET_API Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index,
                             const Tensor& src);
/// The slices of `dim` that a vector of indices names.
RAMET_API Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index);
/// self with slice index[k] of `dim` += alpha * slice k of source.
RAMET_API Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index,
                           const Tensor& source, const Scalar& alpha = 1);
/// Elements of the flattened tensor.
RAMET_API Tensor take(const Tensor& self, const Tensor& index);

/// self with `value` (a number or a 0-dim tensor) where the bool mask holds; mask and self
/// broadcast.
RAMET_API Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);
RAMET_API Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);
/// The elements where the bool mask holds, as a vector; mask and self broadcast.
RAMET_API Tensor masked_select(const Tensor& self, const Tensor& mask);
/// self with the elements under the mask replaced by source's first ones, in order.
RAMET_API Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);
/// Coordinates of the elements != 0: int64 [count, dim].
RAMET_API Tensor nonzero(const Tensor& self);
/// One vector of coordinates for each dimension; that of a 0-dim tensor counts as one dimension.
RAMET_API std::vector<Tensor> nonzero_numpy(const Tensor& self);

/// Copies laid side by side: dimension d repeats repeats[d] times; new dimensions come first.
RAMET_API Tensor repeat(const Tensor& self, IntArrayRef repeats);
/// A copy with these dimensions reversed.
RAMET_API Tensor flip(const Tensor& self, IntArrayRef dims);

// Out forms: `out` has self's dtype (nonzero: int64) and is resized where its shape differs; no
// history (an Error where one would be needed).
RAMET_API Tensor& gather_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                             bool sparse_grad = false);
RAMET_API Tensor& scatter_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                              const Tensor& src);
RAMET_API Tensor& scatter_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                              const Scalar& value);
RAMET_API Tensor& scatter_add_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                                  const Tensor& src);
RAMET_API Tensor& index_select_out(Tensor& out, const Tensor& self, int64_t dim,
                                   const Tensor& index);
RAMET_API Tensor& index_add_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                                const Tensor& source, const Scalar& alpha = 1);
RAMET_API Tensor& take_out(Tensor& out, const Tensor& self, const Tensor& index);
RAMET_API Tensor& masked_fill_out(Tensor& out, const Tensor& self, const Tensor& mask,
                                  const Scalar& value);
RAMET_API Tensor& masked_fill_out(Tensor& out, const Tensor& self, const Tensor& mask,
                                  const Tensor& value);
RAMET_API Tensor& masked_select_out(Tensor& out, const Tensor& self, const Tensor& mask);
RAMET_API Tensor& nonzero_out(Tensor& out, const Tensor& self);

namespace autograd {
/// Zeros of these sizes with src added at `index` along `dim`: the adjoint of gather. Recorded.
RAMET_API Tensor scatter_zeros(IntArrayRef sizes, int64_t dim, const Tensor& index,
                               const Tensor& src);
/// The same for index_select.
RAMET_API Tensor index_add_zeros(IntArrayRef sizes, int64_t dim, const Tensor& index,
                                 const Tensor& src);
}  // namespace autograd

}  // namespace ramet
