// Memory that operations receive into.
#pragma once
#include <functional>
#include <list>
#include <mutex>

#include "autograd/tensor.h"

namespace ramet::distributed::detail {

/// Memory blocks of a group that no operation uses at present. They save page faults: fresh memory
/// costs one for every 4 KiB, as much as the transfer itself. Thread-safe.
class StagingPool {
 public:
  /// A pool of host memory.
  StagingPool()
      : StagingPool(
            Device(kCPU, 0), [] {}, [] {}) {}
  /// A pool of a device's memory. `on_allocated` is called after the device's allocator has given
  /// memory; `before_freed` before memory is returned to it. These are needed because the allocator
  /// does not know the stream on which a GPU's memory is used.
  StagingPool(Device device, std::function<void()> on_allocated, std::function<void()> before_freed)
      : device_(device),
        on_allocated_(std::move(on_allocated)),
        before_freed_(std::move(before_freed)) {}
  /// Uninitialised, perhaps larger than asked for.
  Tensor take(size_t bytes);
  void give(Tensor memory);
  /// Does the pool keep memory of so many bytes?
  bool keeps(size_t bytes) const;

 private:
  Tensor fresh(size_t bytes) const;

  const Device device_;
  const std::function<void()> on_allocated_, before_freed_;
  std::mutex mutex_;
  std::list<Tensor> free_;  // the last used first
  size_t bytes_ = 0;        // of those
  size_t used_ = 0, most_used_ = 0;
};

/// A block of the pool while the object exists, or separately allocated memory.
class Staging {
 public:
  Staging(StagingPool& pool, size_t bytes);
  Staging(Staging&& o) noexcept : pool_(o.pool_), memory_(std::move(o.memory_)) {
    o.pool_ = nullptr;
  }
  ~Staging();
  char* data() const { return static_cast<char*>(memory_->data); }

 private:
  StagingPool* pool_;  // null: separate memory
  Tensor memory_;
};

}  // namespace ramet::distributed::detail
