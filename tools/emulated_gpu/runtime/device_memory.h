// The memory of one emulated device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>

#include "tools/emulated_gpu/runtime/control.h"

namespace ramet::emulated {

/// Alignment of cudaMalloc, and the unit to which sizes are rounded up for the capacity.
constexpr size_t kMemoryUnit = 512;

/// Takes addresses from one reserved range, twice as large as the capacity. So fragments and the
/// red zones between allocations never cause an out-of-memory error. Under ASan every allocation
/// comes from the heap instead, with its exact size: an overrun then hits ASan's red zone at once.
class DeviceMemory {
 public:
  DeviceMemory(int device, size_t capacity);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;

  /// Null when the capacity does not allow it. Filled with 0xff: NaN in every floating-point type.
  /// `in_order`: for cudaMallocAsync().
  void* allocate(size_t bytes, bool in_order = false);
  /// False unless `memory` is what allocate() returned.
  bool release(void* memory);
  void release_all();

  /// The allocation that holds `address`; false where there is none.
  bool find(const void* address, Allocation* allocation) const;

  /// Whether the host can read and write it (Settings::guard_host); without effect under ASan.
  void expose(bool to_host);

  size_t capacity() const { return capacity_; }
  size_t used() const { return used_; }

 private:
  void* take_range(size_t bytes);
  void give_range(void* memory, size_t bytes);

  int device_;
  size_t capacity_, used_ = 0;
  bool exposed_ = true;
  char* arena_ = nullptr;
  size_t arena_bytes_ = 0, cursor_ = 0;
  struct Given {
    size_t bytes;  // asked for
    bool in_order;
  };
  std::map<size_t, size_t> free_;           // offset: bytes
  std::map<uintptr_t, Given> allocations_;  // by address
};

}  // namespace ramet::emulated
