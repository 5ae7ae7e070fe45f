#include "runtime/cuda/scratch.h"

#include <utility>

#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {
namespace {
__thread ScratchStore* t_store = nullptr;
}  // namespace

ScratchStore::~ScratchStore() {
  if (!existing_state(device_)) return;  // shut down, with all memory
  for (const Block& b : blocks_) caching_allocator(device_).free(b.memory);
}

ScratchStore::Use::Use(ScratchStore& store) : before_(std::exchange(t_store, &store)) {}
ScratchStore::Use::~Use() { t_store = before_; }

void* ScratchStore::take(size_t bytes) {
  Block* best = nullptr;
  for (Block& b : blocks_)
    if (!b.taken && b.bytes >= bytes && (!best || b.bytes < best->bytes)) best = &b;
  if (!best) {
    blocks_.reserve(blocks_.size() + 1);
    blocks_.push_back({caching_allocator(device_).allocate(bytes), bytes, false});
    best = &blocks_.back();
  }
  best->taken = true;
  return best->memory;
}

void ScratchStore::give_back(void* memory) {
  for (Block& b : blocks_)
    if (b.memory == memory) b.taken = false;
}

Scratch::Scratch(int device, size_t bytes)
    : device_(device),
      store_(t_store && t_store->device_ == device ? t_store : nullptr),
      memory_(!bytes   ? nullptr
              : store_ ? store_->take(bytes)
                       : caching_allocator(device).allocate(bytes)) {}

Scratch::~Scratch() {
  if (!memory_) return;
  if (store_) store_->give_back(memory_);
  else caching_allocator(device_).free(memory_);
}

}  // namespace cuda
}  // namespace ramet
