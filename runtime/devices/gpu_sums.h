// Sums by the vendor's collectives (NCCL), for callers that accept any order. A separate header,
// because only parallel/ includes it.
#pragma once
#include "runtime/base/dtype.h"
#include "runtime/devices/gpu.h"

namespace ramet {
namespace gpu {

/// out = the sum of in[0] ... in[count), n elements each, in[i] on cuda:`devices[i]`, out on
/// cuda:`devices[root]`. Runs on the kCommunication streams of all of them, after the current work
/// of their kCompute streams. Weak, as linked() is: null without //runtime/cuda.
[[gnu::weak]] void sum_in_any_order(const char* op, const void* const* in, const int* devices,
                                    int count, void* out, int root, int64_t n, ScalarType dtype);
/// False where the library cannot. It may be absent, or not support the type. Two of the devices
/// may be one GPU, or there is only one device.
[[gnu::weak]] bool can_sum_in_any_order(const char* op, const int* devices, int count,
                                        ScalarType dtype);

}  // namespace gpu
}  // namespace ramet
