// Observers of memory: functions that are called when a storage is made and when it is destroyed.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/base/device.h"

namespace ramet {

/// A storage with its own memory, as memory_stats() counts them. Small ones inside a TensorImpl,
/// aliases and foreign memory do not count.
struct MemoryEvent {
  const void* data;  ///< its first byte: on a GPU an address there
  size_t bytes;
  Device device;
  bool made;  ///< false: destroyed, on the thread that had the last reference
};
using MemoryObserver = std::function<void(const MemoryEvent&)>;

/// From now on `observer` gets an event for each storage of any thread, on the thread where it is
/// made or destroyed. It must not throw. Its own tensor operations are not reported. Returns a
/// number, never 0, for remove_memory_observer.
RAMET_API uint64_t add_memory_observer(MemoryObserver observer);
/// Calls that already run on other threads may still reach it. An Error for an unknown number.
RAMET_API void remove_memory_observer(uint64_t number);

namespace detail {
RAMET_API extern std::atomic<uint32_t> memory_observers;  // their number
/// Does nothing where there are none.
[[gnu::cold]] RAMET_API void tell_memory(const MemoryEvent& event) noexcept;
}  // namespace detail
inline bool memory_observed() {
  return RAMET_UNLIKELY(detail::memory_observers.load(std::memory_order_relaxed) != 0);
}

}  // namespace ramet
