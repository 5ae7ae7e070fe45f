// DLPack: tensors to and from other libraries of the same process, without a copy.
//
//   DLManagedTensor* out = to_dlpack(tensor);    // the receiver calls its deleter, from any thread
//   Tensor in = from_dlpack(capsule);            // shares the memory until the last tensor goes
//
// There are two structs: the old one, and the one with a version (DLPack 1.0), which can mark
// memory as read-only. They are those of DLPack's own header. A program that reads their fields
// includes that header itself.
//
// | element type | DLPack's |
// | bool, uint8 to uint32, int8 to int64 | kDLBool, kDLUInt, kDLInt |
// | half, float, double; bfloat16 | kDLFloat; kDLBfloat |
// | cpu:k (all are the host's memory) | kDLCPU, device 0 |
// | cuda:k | kDLCUDA, the number that CUDA gives its GPU |
//
// Both libraries may write a tensor's memory. Autograd does not notice a write by the other
// library, because such a write does not change the version counter.
#pragma once
#include "autograd/tensor.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace ramet {

/// Exports `tensor`'s memory with its sizes and strides. The memory lives until the deleter is
/// called. Waits until all writes to it are done, a GPU's kernels too. An Error where the tensor
/// requires a gradient (detach() it first). Also an Error on an emulated GPU: its memory belongs to
/// no CUDA device.
RAMET_API DLManagedTensor* to_dlpack(const Tensor& tensor);
/// The same, of version 1.0. `read_only` sets the flag of read-only memory. The flag is always set
/// for a tensor that came from read-only memory (from_dlpack).
RAMET_API DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor,
                                                        bool read_only = false);

/// Makes a tensor over the memory of `managed` and takes ownership: the deleter is called once,
/// when the last tensor over the memory goes. The deleter may be null. On an Error the caller keeps
/// ownership. The producer's queued work on a GPU's memory must be done: streams here do not wait
/// for it. Refused by name: complex, sub-byte and vector elements (lanes), negative strides, and
/// misaligned memory. Also refused: devices that this program does not have.
RAMET_API Tensor from_dlpack(DLManagedTensor* managed);
/// The same, of version 1.0. A tensor over read-only memory is read in place; an in-place operation
/// first copies it to memory of its own. Writes through data_ptr() are not noticed.
RAMET_API Tensor from_dlpack(DLManagedTensorVersioned* managed);

}  // namespace ramet
