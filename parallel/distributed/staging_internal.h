// Memory that operations receive into.
#pragma once
#include <list>
#include <mutex>

#include "autograd/tensor.h"

namespace ramet::distributed::detail {

/// Blocks of a group's that no operation uses now. Fresh memory costs a page fault for every 4 KiB:
/// as much as the transfer itself. Thread safety: all of it.
class StagingPool {
 public:
  /// Uninitialised, perhaps more than asked for.
  Tensor take(size_t bytes);
  void give(Tensor memory);

 private:
  std::mutex mutex_;
  std::list<Tensor> free_;  // the last used first
  size_t bytes_ = 0;
};

/// A block of the pool's as long as it lives, or memory of its own.
class Staging {
 public:
  explicit Staging(size_t bytes);
  Staging(StagingPool& pool, size_t bytes);
  Staging(Staging&& o) noexcept : pool_(o.pool_), memory_(std::move(o.memory_)) {
    o.pool_ = nullptr;
  }
  ~Staging();
  char* data() const { return static_cast<char*>(memory_.ptr()); }

 private:
  StagingPool* pool_ = nullptr;
  Tensor memory_;
};

}  // namespace ramet::distributed::detail
