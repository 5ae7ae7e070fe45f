// Data memory of a device: statistics, limits, and large blocks.
//
// Blocks up to 4 MB come from the calling thread's size classes (runtime/memory/pool.h). Larger
// ones come from the device's arena, which has huge pages and keeps some of what is freed. Note
// [Kept memory] in runtime/memory/arena_internal.h has the rules. Data of at most 768 bytes lives
// inside the block of its TensorImpl and is not counted here (runtime/tensor/tensor_base.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/device.h"

namespace ramet {

/// Bytes of tensor data on one device, without blocks inside a TensorImpl (at most 768 bytes of
/// data).
struct MemoryStats {
  int64_t current = 0;      ///< held by live storages
  int64_t peak = 0;         ///< largest `current` since the start or the last reset
  int64_t cached = 0;       ///< free memory that is kept for large blocks
  int64_t allocations = 0;  ///< storages made so far
};

/// The statistics of the device's tensors now.
RAMET_API MemoryStats memory_stats(Device device);
/// `peak` starts again from `current`.
RAMET_API void reset_peak_memory_stats(Device device);
/// From now on a request that would raise `current` above `bytes` throws OutOfMemoryError. 0: no
/// limit. Cached memory does not count, but it is freed if the limit has no space for it.
RAMET_API void set_memory_limit(Device device, int64_t bytes);
/// Gives the cached memory of all devices back to the system, or to the driver.
RAMET_API void empty_cache();

namespace detail {
/// Memory for a storage with `bytes` of data that needs `block` bytes in all, 64-byte aligned.
/// Counts `bytes`.
RAMET_API void* allocate_block(size_t block, size_t bytes, int device_ordinal);
RAMET_API void free_block(void* p, size_t block, size_t bytes, int device_ordinal);
/// Starts or stops reports to memory observers about blocks that are made and freed.
void observe_blocks(bool on);
}  // namespace detail
}  // namespace ramet
