// Note [Internal layout]
// Convolution, pooling and batch normalisation are fastest when the channels of a pixel lie
// together (NHWC). Yet LibTorch users rely on row-major NCHW results: `x.view({-1, 320})` after a
// pool must work. So these operations may return a tensor with channels-last memory, and with flag
// kInternalLayout set.
//
// Such a tensor is dense, an operation made it exclusively, and no public function shows its
// layout. Every public function that reads strides or data pointers, or makes a view, first
// *settles* the tensor. That is, it copies the values row-major into a new storage and points the
// implementation there; all handles follow. Kernels that understand strides use the memory as it is
// (pointwise operations keep the layout). So a conv-norm-relu-pool stack never settles until its
// flatten. What a backward function saved keeps the old storage: the values are the same, and later
// in-place changes do not reach it.
//
// Settling writes to the implementation, although the caller only reads the tensor, and other
// threads may read it at the same time. So an operation that uses the memory as it is first takes
// steady(), and reads strides and data of that result alone. Any other operation settles. Neither
// may read the strides or data of its argument while flag kInternalLayout is set. The old memory
// stays as long as the tensor.
#pragma once
#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// Is it a 4-D tensor with dense NHWC memory? Extents of 1 are ignored as in kContiguous.
RAMET_API bool is_channels_last(const TensorBase& t);
/// An uninitialised [n, c, h, w] tensor in channels-last memory, with the internal flag. It is
/// plain contiguous where both layouts coincide.
RAMET_API Tensor empty_channels_last(int64_t n, int64_t c, int64_t h, int64_t w, ScalarType dtype,
                                     Device device);
/// An uninitialised tensor with the sizes, dtype and device of `like`. Its physical layout is that
/// of `like` where that is dense, otherwise contiguous.
RAMET_API Tensor empty_like_layout(const Tensor& like, ScalarType dtype);
/// Makes the tensor row-major now. Every public view of memory calls it. Any number of threads may
/// call it, and read the tensor.
RAMET_API void settle(const TensorBase& t);

}  // namespace autograd
}  // namespace ramet
