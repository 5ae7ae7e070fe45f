// Memory checks that cost too much for normal use.
//
// RAMET_DEBUG_MEMORY=1 turns them on for a process, and =0 turns them off. Without it they are on
// in builds with assertions (no NDEBUG; the sanitizer configurations). The first allocation reads
// it.
//
// - Freed blocks are filled with 0xff bytes, NaN as any floating-point type. Code that still reads
//   them computes NaN. They go through one heap with a lock. Under ASan and TSan, which report such
//   a read themselves, free() gets them instead (runtime/memory/pool.h).
// - A data pointer of another device's memory (data_ptr(), accessor()) is an Error in a replica and
//   on a device's worker: Note [Raw reads].
//
// Note [Raw reads]
// Logical CPU devices share the host's memory, so a pointer to another device's memory works here
// by accident and nowhere else. Operations on tensors of another device are no raw reads, because
// they run for that device. (See Note [What an operation on a logical device means] in
// runtime/devices/devices.h.) And to(), copy_() and the movements transfer values. Outside of
// replicas and workers a thread belongs to the host, which may read all CPU memory.
#pragma once
#include <atomic>
#include <cstddef>

#include "runtime/base/context.h"
#include "runtime/base/device.h"

namespace ramet {

class TensorBase;

/// Are the checks on in this process? An Error for a RAMET_DEBUG_MEMORY other than 0 and 1.
RAMET_API bool debug_memory();

namespace detail {
// 0: off; otherwise on, or not read yet
RAMET_API extern std::atomic<int> debug_memory_state;
/// Fills a block that is being freed.
RAMET_API void poison_freed(void* p, size_t bytes);
RAMET_API void check_raw_access_slowly(const TensorBase& t);
/// Before a data pointer is handed out.
inline void check_raw_access(const TensorBase& t) {
  if (RAMET_UNLIKELY(debug_memory_state.load(std::memory_order_relaxed) != 0 ||
                     ramet::detail::tls.capturing))
    check_raw_access_slowly(t);
}
}  // namespace detail
}  // namespace ramet
