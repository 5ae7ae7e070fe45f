// Observers of memory: who is told when a storage is made and when it goes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/base/device.h"

namespace ramet {

/// A storage with memory of its own: what memory_stats() counts. Small ones inside a TensorImpl,
/// aliases and foreign memory are none.
struct MemoryEvent {
  const void* data;  ///< its first byte: on a GPU an address there
  size_t bytes;
  Device device;
  bool made;  ///< false: it goes, on whatever thread had the last reference
};
using MemoryObserver = std::function<void(const MemoryEvent&)>;

/// From now on `observer` is told of the storages of all threads, on the thread where they are made
/// or go. It must not throw, and what it does with tensors itself is told to nobody. Returns a
/// number, never 0, that remove_memory_observer takes.
RAMET_API uint64_t add_memory_observer(MemoryObserver observer);
/// Calls under way on other threads may still reach it. An Error for an unknown number.
RAMET_API void remove_memory_observer(uint64_t number);

namespace detail {
RAMET_API extern std::atomic<uint32_t> memory_observers;  // how many
/// Nothing where there are none.
[[gnu::cold]] RAMET_API void tell_memory(const MemoryEvent& event) noexcept;
}  // namespace detail
inline bool memory_observed() {
  return RAMET_UNLIKELY(detail::memory_observers.load(std::memory_order_relaxed) != 0);
}

}  // namespace ramet
