// Sums over several GPUs by NCCL, for callers that accept any order.
#pragma once
#include <cstdint>

#include "runtime/base/device.h"
#include "runtime/base/dtype.h"

namespace ramet {
namespace cuda {

/// out = the sum of in[0], in[1] ... in[count), n elements each, in[i] on cuda:`devices[i]`, out on
/// cuda:`devices[root]`. Queued on the communication stream of each device, after the current work
/// of its compute stream. REQUIRES: nccl_can_sum(). After an error the next sum makes new
/// communicators.
RAMET_API void nccl_sum(const char* op, const void* const* in, const int* devices, int count,
                        void* out, int root, int64_t n, ScalarType dtype);
/// False where NCCL cannot. It may be absent, or two of the devices may be one GPU (the log says so
/// once). There may be only one device, or NCCL does not support the type.
RAMET_API bool nccl_can_sum(const char* op, const int* devices, int count, ScalarType dtype);

/// Sums so far, for tests.
RAMET_API uint64_t nccl_sums();

/// Gives all communicators back. No sum may be running.
RAMET_API void destroy_communicators();

}  // namespace cuda
}  // namespace ramet
