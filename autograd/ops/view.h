// Views: other looks at the same memory, as LibTorch's functions of the same names. All are
// differentiable to any order; an in-place operation on a view keeps the histories of base and
// views right (Note [In-place operations on views]).
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// Same elements, other sizes; one size may be -1. An Error where the memory does not allow it (see
/// reshape).
RAMET_API Tensor view(const Tensor& self, IntArrayRef size);
/// A view where possible, otherwise a copy.
RAMET_API Tensor reshape(const Tensor& self, IntArrayRef shape);
RAMET_API Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1);
/// Transpose of a matrix; a vector or scalar is returned as it is.
RAMET_API Tensor t(const Tensor& self);
RAMET_API Tensor permute(const Tensor& self, IntArrayRef dims);
/// Dimension source[i] becomes dimension destination[i]; the others keep their order.
RAMET_API Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination);
RAMET_API Tensor movedim(const Tensor& self, int64_t source, int64_t destination);
/// Dimensions start_dim to end_dim (inclusive) become one. A 0-dim tensor gives one of 1 element.
RAMET_API Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1);
/// Dimension `dim` becomes `sizes`; one may be -1.
RAMET_API Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes);
/// Without dimensions of extent 1 (all, or those named; a named one of another extent stays).
RAMET_API Tensor squeeze(const Tensor& self);
RAMET_API Tensor squeeze(const Tensor& self, int64_t dim);
RAMET_API Tensor squeeze(const Tensor& self, IntArrayRef dims);
RAMET_API Tensor unsqueeze(const Tensor& self, int64_t dim);
/// Dimensions of extent 1 repeated without copying; -1 keeps an extent; new dimensions come first.
RAMET_API Tensor expand(const Tensor& self, IntArrayRef size);
/// `length` elements of dimension `dim` from `start` (may be negative).
RAMET_API Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length);
/// `start` is a 0-dim integer tensor, which is read.
RAMET_API Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length);
/// Element `index` (may be negative) of dimension `dim`, which disappears. IndexError outside the
/// range.
RAMET_API Tensor select(const Tensor& self, int64_t dim, int64_t index);
/// start:end:step of dimension `dim`, clamped as in Python; step is positive.
RAMET_API Tensor slice(const Tensor& self, int64_t dim = 0,
                       std::optional<int64_t> start = std::nullopt,
                       std::optional<int64_t> end = std::nullopt, int64_t step = 1);
RAMET_API Tensor diagonal(const Tensor& self, int64_t offset = 0, int64_t dim1 = 0,
                          int64_t dim2 = 1);
/// All slices along `dim`, without that dimension.
RAMET_API std::vector<Tensor> unbind(const Tensor& self, int64_t dim = 0);
/// Pieces of `split_size` (the last may be smaller), or of the given sizes.
RAMET_API std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim = 0);
RAMET_API std::vector<Tensor> split(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0);
RAMET_API std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef split_sizes,
                                               int64_t dim = 0);
/// At most `chunks` pieces of ceil(size / chunks).
RAMET_API std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim = 0);
/// All tensors expanded to their common shape.
RAMET_API std::vector<Tensor> broadcast_tensors(TensorList tensors);

/// The common shape of two shapes under broadcasting; an Error naming `op` and both where there is
/// none.
RAMET_API std::vector<int64_t> broadcast_sizes(const char* op, IntArrayRef a, IntArrayRef b);

}  // namespace ramet
