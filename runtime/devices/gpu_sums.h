// Sums by the vendor's collectives (NCCL), for whoever asked for any order. A header of its own:
// only parallel/ asks.
#pragma once
#include "runtime/base/dtype.h"
#include "runtime/devices/gpu.h"

namespace ramet {
namespace gpu {

/// out = the sum of in[0] ... in[count), n elements each, in[i] on cuda:`devices[i]`, out on
/// cuda:`devices[root]`; on the kCommunication streams of all of them, behind what their kCompute
/// streams were given. Weak, as linked() is: null without //runtime/cuda.
[[gnu::weak]] void sum_in_any_order(const char* op, const void* const* in, const int* devices,
                                    int count, void* out, int root, int64_t n, ScalarType dtype);
/// False where the library cannot: it is absent, two of the devices are one card, there is one
/// device alone, or it has no such type.
[[gnu::weak]] bool can_sum_in_any_order(const char* op, const int* devices, int count,
                                        ScalarType dtype);

}  // namespace gpu
}  // namespace ramet
