// DLPack: tensors to and from other libraries of the same process, without a copy.
//
//   DLManagedTensor* out = to_dlpack(tensor);    // who takes it calls its deleter, from any thread
//   Tensor in = from_dlpack(capsule);            // shares the memory until the last tensor goes
//
// Both structs of the interface: the old one, and the one with a version (DLPack 1.0), which knows
// read-only memory. They are those of DLPack's own header, which programs that look inside include
// themselves.
//
// | element type | DLPack's |
// | bool, uint8 to uint32, int8 to int64 | kDLBool, kDLUInt, kDLInt |
// | half, float, double; bfloat16 | kDLFloat; kDLBfloat |
// | cpu:k (all are the host's memory) | kDLCPU, device 0 |
// | cuda:k | kDLCUDA, the number that CUDA gives its card |
//
// A tensor's memory is written by whoever has it: a write from outside counts no version, so
// autograd does not notice it.
#pragma once
#include "autograd/tensor.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace ramet {

/// `tensor`'s memory with its sizes and strides. It lives until the deleter is called. Waits for
/// what still writes it, a GPU's kernels too. An Error of a tensor that requires a gradient
/// (detach() it first), and of one on an emulated GPU, whose memory is no card's.
RAMET_API DLManagedTensor* to_dlpack(const Tensor& tensor);
/// The same, of version 1.0. `read_only` says so in its flags; of a tensor that itself may only be
/// read (from_dlpack) they always say so.
RAMET_API DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor,
                                                        bool read_only = false);

/// A tensor over the memory of `managed`, which it takes over: the deleter is called once, when the
/// last tensor over the memory goes. A null deleter is none. On an Error nothing was taken over.
/// What the giver had queued for a GPU's memory must be done: streams here do not wait for it.
/// Refused by name: complex, sub-byte and vector elements (lanes), negative strides, memory that is
/// not aligned to its elements, devices that this program does not have.
RAMET_API Tensor from_dlpack(DLManagedTensor* managed);
/// Of memory that may only be read the tensor may be read where it is; an in-place operation gives
/// it memory of its own first. Writes through data_ptr() are not noticed.
RAMET_API Tensor from_dlpack(DLManagedTensorVersioned* managed);

}  // namespace ramet
