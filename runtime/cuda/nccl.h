// Sums over several cards by NCCL, for whoever asked for any order.
#pragma once
#include <cstdint>

#include "runtime/base/device.h"
#include "runtime/base/dtype.h"

namespace ramet {
namespace cuda {

/// out = the sum of in[0], in[1] ... in[count), n elements each, in[i] on cuda:`devices[i]`, out on
/// cuda:`devices[root]`, on the communication stream of each: queued behind what its compute stream
/// was given. Where nccl_can_sum(). After an error the next sum makes new communicators.
RAMET_API void nccl_sum(const char* op, const void* const* in, const int* devices, int count,
                        void* out, int root, int64_t n, ScalarType dtype);
/// False where NCCL cannot: it is not there or two of the devices are one card (the log says so
/// once), there is one device alone, or it has no such type.
RAMET_API bool nccl_can_sum(const char* op, const int* devices, int count, ScalarType dtype);

/// Sums so far: what tests count.
RAMET_API uint64_t nccl_sums();

/// Gives all communicators back. No sum may be running.
RAMET_API void destroy_communicators();

}  // namespace cuda
}  // namespace ramet
