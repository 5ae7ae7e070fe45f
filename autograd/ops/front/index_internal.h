// How fronts run index kernels: checks of indices, and the loop that all of them share. Private to
// autograd/ops.
#pragma once
#include "autograd/ops/front/common_internal.h"
#include "kernels/copy/coalesce.h"
#include "kernels/index/index.h"

namespace ramet {
namespace autograd {

/// Is it a mask, that is a tensor that chooses elements by truth values, in place of an index?
inline bool is_mask(const Tensor& t) {
  return t.scalar_type() == kBool || t.scalar_type() == kByte;
}
/// `index` as int64 (int32 is cast), an Error for another dtype.
RAMET_API Tensor index_as_long(const char* op, const Tensor& index);
/// `index`, or a copy where it shares the memory that an in-place operation on `self` writes. So
/// all positions are chosen before anything is written.
RAMET_API Tensor index_apart(const Tensor& index, const Tensor& self, bool in_place);
/// An IndexError that names position, value and size unless every index lies in [low, size). A
/// value equal to `ignored`, if there is one, always passes.
RAMET_API void check_indices(const char* op, const Tensor& index, int64_t low, int64_t size,
                             const char* what, std::optional<int64_t> ignored = std::nullopt);
/// An Error with the text `what` where a bool tensor has a true element. For a tensor on a GPU the
/// Error comes later: Note [Errors in data]. While a capture is made, replays report it.
RAMET_API void report_where(const char* op, const Tensor& bad, const char* what);
/// The same unless the bool tensor `fine` is true everywhere; so a NaN, for which every comparison
/// is false, is reported. The Error has the position of the first fault. On a host it also has the
/// element of `values` (of the sizes of `fine`).
RAMET_API void report_unless(const char* op, const Tensor& fine, const Tensor& values,
                             const char* what);

/// An Error unless b is defined and on a's device.
RAMET_API void same_place(const char* op, const Tensor& a, const Tensor& b);
/// Checks for gather and the scatters; returns the wrapped dim.
RAMET_API int64_t check_gather(const char* op, const Tensor& self, int64_t dim,
                               const Tensor& index);
/// The index as int64. An index without elements may be of any dtype, as in LibTorch.
RAMET_API Tensor gather_index(const char* op, const Tensor& index);
/// A 0-dim tensor becomes a vector of one element, so that ranks agree.
RAMET_API Tensor at_least_1d(const Tensor& t);
/// The part of src that a scatter reads: src may be larger than the index.
RAMET_API Tensor corner(const char* op, const Tensor& src, const Tensor& index);
/// Checks of index_select and writes of slices; returns the wrapped dim.
RAMET_API int64_t check_select(const char* op, const Tensor& self, int64_t dim,
                               const Tensor& index);

/// The loop of kernels/index/index.h, dimension by dimension, with as many dimensions as a tensor
/// can have. `run` merges neighbours.
struct RAMET_API IndexLoop {
  /// The operands: x, y, and from kIndices on the index tensors.
  static constexpr int kX = 0, kY = 1, kIndices = 2,
                       kOperands = kIndices + kernels::kMaxIndexTensors;
  int rank = 0, indices = 0;
  int64_t sizes[kMaxRank], strides[kOperands][kMaxRank];
  const int64_t* index[kernels::kMaxIndexTensors];
  int64_t index_size[kernels::kMaxIndexTensors], index_step[kernels::kMaxIndexTensors];

  /// Adds a dimension in which no index moves.
  void push(int64_t size, int64_t x_stride, int64_t y_stride) {
    sizes[rank] = size, strides[kX][rank] = x_stride, strides[kY][rank] = y_stride;
    for (int o = kIndices; o < kOperands; ++o) strides[o][rank] = 0;
    ++rank;
  }
  /// Adds an index tensor in place of a dimension of x with this extent and stride. The strides of
  /// the k-th one go into strides[kIndices + k].
  void add_index(const Tensor& t, int64_t size, int64_t step) {
    index[indices] = static_cast<const int64_t*>(t.ptr());
    index_size[indices] = size, index_step[indices++] = step;
  }
  /// Runs the kernel. Where `skipped` is given, it skips tuples with that number in the first index
  /// tensor.
  void run(kernels::IndexMode mode, const TensorBase& x, const TensorBase& y,
           std::optional<int64_t> skipped = std::nullopt);

 private:
  bool widens(kernels::IndexMode mode, const TensorBase& x) const;
  void run_wide(const TensorBase& x, const TensorBase& y, std::optional<int64_t> skipped);
};

/// The loop of gather and scatter along `dim` over an index tensor: x and y have the index's rank.
RAMET_API void gather_loop(kernels::IndexMode mode, const Tensor& x, int64_t dim,
                           const Tensor& index, const Tensor& y);
/// The loop of index_select and index_add along `dim`: a 1-D index; y has x's sizes except in
/// `dim`.
RAMET_API void select_loop(kernels::IndexMode mode, const Tensor& x, int64_t dim,
                           const Tensor& index, const Tensor& y,
                           std::optional<int64_t> skipped = std::nullopt);

using IndexTensors = std::vector<std::optional<Tensor>>;
/// The origin of a view made for x.index({...}), for the texts of errors. It has the sizes of x,
/// and x's dimension for each dimension of the view. Without it, the tensor is the user's own.
struct IndexOrigin {
  IntArrayRef sizes;
  std::vector<int64_t> dims;
  int64_t dim(int64_t d) const { return dims.empty() ? d : dims[static_cast<size_t>(d)]; }
};
/// index and index_put (in place: index_put_) on such a view.
RAMET_API Tensor index_at(const Tensor& self, const IndexTensors& indices,
                          const IndexOrigin& origin);
RAMET_API Tensor index_put_at(const char* op, const Tensor& self, const IndexTensors& indices,
                              const Tensor& values, bool accumulate, bool in_place,
                              const IndexOrigin& origin);
/// `values` without leading extents of 1, where the destination has a smaller rank.
RAMET_API Tensor without_leading_ones(const Tensor& values, int64_t rank);

}  // namespace autograd
}  // namespace ramet
