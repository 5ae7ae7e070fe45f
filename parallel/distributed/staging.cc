#include "parallel/distributed/staging_internal.h"

namespace ramet::distributed::detail {
namespace {

// Below this the allocator's own lists are as good.
constexpr size_t kSmallest = 16 << 10;
// What a group keeps between its operations.
constexpr size_t kKept = size_t{64} << 20;

Tensor fresh(size_t bytes) {
  return Tensor(TensorBase::empty({static_cast<int64_t>(bytes)}, kByte, Device(kCPU, 0)));
}

}  // namespace

Tensor StagingPool::take(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    auto best = free_.end();
    for (auto i = free_.begin(); i != free_.end(); ++i)
      if (i->nbytes() >= bytes && i->nbytes() <= 2 * bytes &&
          (best == free_.end() || i->nbytes() < best->nbytes()))
        best = i;
    if (best != free_.end()) {
      Tensor found = std::move(*best);
      free_.erase(best);
      bytes_ -= found.nbytes();
      return found;
    }
  }
  return fresh(bytes);
}

void StagingPool::give(Tensor memory) {
  const std::lock_guard lock(mutex_);
  bytes_ += memory.nbytes();
  free_.push_front(std::move(memory));
  while (bytes_ > kKept) {
    bytes_ -= free_.back().nbytes();
    free_.pop_back();
  }
}

Staging::Staging(size_t bytes) : memory_(fresh(bytes)) {}

Staging::Staging(StagingPool& pool, size_t bytes)
    : pool_(bytes < kSmallest ? nullptr : &pool),
      memory_(pool_ ? pool.take(bytes) : fresh(bytes)) {}

Staging::~Staging() {
  if (pool_) pool_->give(std::move(memory_));
}

}  // namespace ramet::distributed::detail
