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
// Settling writes to the implementation, so the first look counts as a write where several threads
// share a tensor: look at it (`y.contiguous()`) before another thread gets it. The old memory stays
// until the tensor goes, so that a reader on another thread never finds it freed.
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
/// Makes the tensor row-major now. Part of every public view of memory.
RAMET_API void settle(const TensorBase& t);

}  // namespace autograd
}  // namespace ramet
