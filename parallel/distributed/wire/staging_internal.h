// Memory that operations receive into.
#pragma once
#include <functional>
#include <list>
#include <mutex>

#include "autograd/tensor.h"

namespace ramet::distributed::detail {

/// Blocks of a group's that no operation uses now. Fresh memory costs a page fault for every 4 KiB:
/// as much as the transfer itself. Thread safety: all of it.
class StagingPool {
 public:
  /// Of the host's memory.
  StagingPool()
      : StagingPool(
            Device(kCPU, 0), [] {}, [] {}) {}
  /// `on_allocated`: called when the device's allocator has given memory; `before_freed`: before it
  /// gets some back.
  /// A card's memory is used on a stream that the allocator knows nothing of.
  StagingPool(Device device, std::function<void()> on_allocated, std::function<void()> before_freed)
      : device_(device),
        on_allocated_(std::move(on_allocated)),
        before_freed_(std::move(before_freed)) {}
  /// Uninitialised, perhaps more than asked for.
  Tensor take(size_t bytes);
  void give(Tensor memory);
  /// Is memory of so many bytes kept here?
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

/// A block of the pool's as long as it lives, or memory of its own.
class Staging {
 public:
  Staging(StagingPool& pool, size_t bytes);
  Staging(Staging&& o) noexcept : pool_(o.pool_), memory_(std::move(o.memory_)) {
    o.pool_ = nullptr;
  }
  ~Staging();
  char* data() const { return static_cast<char*>(memory_->data); }

 private:
  StagingPool* pool_;  // null: its own
  Tensor memory_;
};

}  // namespace ramet::distributed::detail
