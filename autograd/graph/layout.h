// Note [Internal layout]
// Convolution, pooling and batch normalisation are fastest when the channels of a pixel lie
// together (NHWC), yet LibTorch users rely on row-major NCHW results: `x.view({-1, 320})` after a
// pool must work. So these operations may return a tensor whose memory is channels-last while flag
// kInternalLayout is set. Such a tensor is dense, exclusively made by an operation, and shows its
// layout to nobody: every public look at strides, data pointers or views first *settles* it, that
// is, copies the values row-major into a storage of its own and re-points the implementation; all
// handles follow. Kernels that understand strides use the memory as it is (pointwise operations
// keep the layout), so a conv-norm-relu-pool stack never settles until its flatten. What a backward
// function saved keeps the old storage: the values are the same, and later in-place changes do not
// reach it.
//
// Settling writes to the implementation, though to look at a tensor is to read it, and other
// threads may read it at the same time. So an operation that uses the memory as it is takes a
// steady() look first and reads strides and data of that alone; one that does not settles. Neither
// may read the strides or data of its argument while flag kInternalLayout is set. The old memory
// stays until the tensor goes.
#pragma once
#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// True for a 4-D tensor whose memory is dense NHWC (extents of 1 ignored as in kContiguous).
RAMET_API bool is_channels_last(const TensorBase& t);
/// Uninitialised [n, c, h, w] in channels-last memory, flagged internal (plain contiguous where
/// both layouts coincide).
RAMET_API Tensor empty_channels_last(int64_t n, int64_t c, int64_t h, int64_t w, ScalarType dtype,
                                     Device device);
/// Uninitialised, same sizes, dtype, device, and the same physical layout where `like` is dense;
/// contiguous otherwise.
RAMET_API Tensor empty_like_layout(const Tensor& like, ScalarType dtype);
/// Makes the tensor row-major now. Part of every public view of memory. Any number of threads may
/// call it, and read the tensor.
RAMET_API void settle(const TensorBase& t);

}  // namespace autograd
}  // namespace ramet
