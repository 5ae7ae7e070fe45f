#include "parallel/distributed/wire/staging_internal.h"

#include <algorithm>
#include <vector>

namespace ramet::distributed::detail {
namespace {

// Below this size the allocator's own lists are as good.
constexpr size_t kSmallest = 16 << 10;
// How much host memory and how much GPU memory a group keeps between its operations. Of a GPU's
// memory it keeps at most what one operation needed at once, since other code cannot use it.
constexpr size_t kKept = size_t{64} << 20, kKeptOnCard = size_t{256} << 20;

}  // namespace

bool StagingPool::keeps(size_t bytes) const { return device_.is_cuda() || bytes >= kSmallest; }

Tensor StagingPool::fresh(size_t bytes) const {
  Tensor memory(TensorBase::empty({static_cast<int64_t>(bytes)}, kByte, device_));
  on_allocated_();
  return memory;
}

Tensor StagingPool::take(size_t bytes) {
  if (!keeps(bytes)) return fresh(bytes);
  Tensor memory;
  {
    const std::lock_guard lock(mutex_);
    // Without spare memory, a block that is much too large is better than freeing another block.
    const bool room = !device_.is_cuda() || used_ + bytes_ + bytes <= most_used_;
    auto best = free_.end();
    for (auto i = free_.begin(); i != free_.end(); ++i)
      if (i->nbytes() >= bytes && (!room || i->nbytes() <= 2 * bytes) &&
          (best == free_.end() || i->nbytes() < best->nbytes()))
        best = i;
    if (best != free_.end()) {
      memory = std::move(*best);
      free_.erase(best);
      bytes_ -= memory.nbytes();
    }
  }
  if (!memory.defined()) memory = fresh(bytes);
  const std::lock_guard lock(mutex_);
  used_ += memory.nbytes();
  most_used_ = std::max(most_used_, used_);
  return memory;
}

void StagingPool::give(Tensor memory) {
  std::vector<Tensor> going;  // destroyed after the lock is released: freeing may wait for a GPU
  const std::lock_guard lock(mutex_);
  used_ -= memory.nbytes();
  bytes_ += memory.nbytes();
  free_.push_front(std::move(memory));
  const size_t most = device_.is_cuda() ? std::min(kKeptOnCard, most_used_) : kKept;
  if (bytes_ > most) before_freed_();
  while (bytes_ > most) {
    bytes_ -= free_.back().nbytes();
    going.push_back(std::move(free_.back()));
    free_.pop_back();
  }
}

Staging::Staging(StagingPool& pool, size_t bytes)
    : pool_(pool.keeps(bytes) ? &pool : nullptr), memory_(pool.take(bytes)) {}

Staging::~Staging() {
  if (pool_) pool_->give(std::move(memory_));
}

}  // namespace ramet::distributed::detail
