#include "runtime/cuda/caching_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/per_device.h"

namespace ramet {
namespace cuda {
namespace {

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

constinit PerDevice<CachingAllocator> allocators;

bool caching_wanted() {
  const char* text = std::getenv("RAMET_CUDA_CACHING");
  const std::string value = text && *text ? text : "1";
  RAMET_CHECK(value == "0" || value == "1", "RAMET_CUDA_CACHING", "got \"", value,
              "\", expected 0 or 1");
  return value == "1";
}

}  // namespace

CachingAllocator::~CachingAllocator() { empty_cache(); }

// REQUIRES: the lock.
void* CachingAllocator::take(size_t size) {
  auto& list = small(size) ? free_[0] : free_[1];
  const auto found = list.lower_bound({size, nullptr});
  if (found == list.end()) return nullptr;
  char* at = found->at;
  list.erase(found);
  Block& block = blocks_.at(at);
  block.free = false;
  // What is left over is worth a block where a request of this kind could use it, or where the
  // limit has no room for it.
  const size_t rest = block.size - size;
  const bool too_much = rest && limit_ && current_ + block.size > limit_;
  if (too_much || rest >= (small(size) ? kAlign : (size_t{1} << 20))) {
    block.size = size;
    blocks_[at + size] = {rest, true, block.segment, block.freed};
    list.insert({rest, at + size});
  }
  return at;
}

// REQUIRES: the lock. Null where the card has no more.
void* CachingAllocator::new_segment(size_t size, size_t bytes) {
  const size_t wanted = !caches_             ? std::max<size_t>(bytes, 1)
                        : small(size)        ? kSmallSegment
                        : size < kOwnSegment ? kSegment
                                             : rounded(size, kSmallSegment);
  const CardGuard guard("allocate", device_);
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, wanted);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  RAMET_CUDA("allocate", device_, code);
  char* at = static_cast<char*>(memory);
  if (!caches_) {
    reserved_ += size;  // the driver rounds, too
    blocks_[at] = {size, false, at};
    return at;
  }
  segments_[at] = wanted;
  reserved_ += wanted;
  blocks_[at] = {wanted, true, at};
  free_list(wanted).insert({wanted, at});
  return take(size);
}

void* CachingAllocator::allocate(size_t bytes) {
  const size_t size = rounded(std::max<size_t>(bytes, 1), kAlign);
  for (bool again = false;; again = true) {
    {
      std::lock_guard lock(mutex_);
      if (limit_ && current_ + size > limit_) out_of_memory(bytes, "set_memory_limit");
      void* p = take(size);
      if (!p) p = new_segment(size, bytes);
      if (p) {
        current_ += blocks_.at(static_cast<char*>(p)).size;
        peak_ = std::max(peak_, current_);
        ++allocations_;
        return p;
      }
      if (again) out_of_memory(bytes, "the card has no more");
    }
    empty_all_caches();  // other logical devices may hold memory of the same card
  }
}

// Without a wait, in which this thread might hold up the one that queues what it waits for; beside
// the graph that it may be making.
void CachingAllocator::to_driver(void* memory) noexcept {
  try {
    DeviceState& state = device_state(device_, "free");
    const CardGuard guard("free", state);
    const ComputeStreamGuard beside(-1, nullptr);
    const cudaStream_t stream = state.stream(Queue::kCompute, "free");
    ignore(cudaFreeAsync(memory, stream));
    freed_ = stream;
  } catch (const Error&) {}  // of a lost device, which the next call tells again
}

void CachingAllocator::free(void* memory) noexcept {
  std::unique_lock lock(mutex_);
  auto it = blocks_.find(static_cast<char*>(memory));
  current_ -= it->second.size;
  if (!caches_) {
    reserved_ -= it->second.size;
    blocks_.erase(it);
    lock.unlock();
    return to_driver(memory);
  }
  it->second.free = true;
  it->second.freed = turn_;
  auto& list =
      free_list(segments_.at(it->second.segment) == kSmallSegment ? kSmallSegment : kSegment);
  const auto join = [&](std::map<char*, Block>::iterator left,
                        std::map<char*, Block>::iterator right) {
    left->second.size += right->second.size;
    left->second.freed = std::max(left->second.freed, right->second.freed);
    blocks_.erase(right);
  };
  const auto next = std::next(it);
  if (next != blocks_.end() && next->second.free && next->second.segment == it->second.segment) {
    list.erase({next->second.size, next->first});
    join(it, next);
  }
  if (it != blocks_.begin()) {
    const auto before = std::prev(it);
    if (before->second.free && before->second.segment == it->second.segment) {
      list.erase({before->second.size, before->first});
      join(before, it);
      it = before;
    }
  }
  list.insert({it->second.size, it->first});
}

void CachingAllocator::empty_cache() {
  const DeviceState* state = existing_state(device_);
  if (!state || state->keeps_cached_memory()) return;
  if (const cudaStream_t stream = freed_.exchange(nullptr)) {
    const CardGuard guard("empty_cache", *state);
    ignore(cudaStreamSynchronize(stream));
  }
  std::lock_guard lock(mutex_);
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto block = blocks_.find(it->first);
    if (!block->second.free || block->second.size != it->second) {
      ++it;
      continue;
    }
    free_list(it->second).erase({it->second, it->first});
    blocks_.erase(block);
    reserved_ -= it->second;
    const CardGuard guard("empty_cache", device_);
    ignore(cudaFree(it->first));  // waits for the device
    it = segments_.erase(it);
  }
}

MemoryStats CachingAllocator::stats() {
  std::lock_guard lock(mutex_);
  MemoryStats s;
  s.current = static_cast<int64_t>(current_);
  s.peak = static_cast<int64_t>(peak_);
  s.cached = static_cast<int64_t>(reserved_ - current_);
  s.allocations = allocations_;
  return s;
}
void CachingAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  peak_ = current_;
}
void CachingAllocator::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
}
size_t CachingAllocator::reserved() {
  std::lock_guard lock(mutex_);
  return reserved_;
}

uint64_t CachingAllocator::next_turn() {
  std::lock_guard lock(mutex_);
  return ++turn_;
}
uint64_t CachingAllocator::last_freed(void* memory) {
  std::lock_guard lock(mutex_);
  return blocks_.at(static_cast<char*>(memory)).freed;
}

// REQUIRES: the lock.
void CachingAllocator::out_of_memory(size_t bytes, const char* why) {
  size_t room = 0, total = 0, largest = 0;
  const CardGuard guard("allocate", device_);
  if (cudaMemGetInfo(&room, &total) != cudaSuccess) {
    (void)cudaGetLastError();
    room = total = 0;
  }
  for (const auto& list : free_)
    if (!list.empty()) largest = std::max(largest, list.rbegin()->size);
  const auto text = [](size_t n) { return std::to_string(n); };
  throw OutOfMemoryError(
      "[allocate] out of memory on cuda:" + std::to_string(device_) + ": got a request of " +
      text(bytes) + " bytes, " + text(current_) + " bytes are in use, " +
      text(reserved_ - current_) + " are cached (largest piece " + text(largest) +
      "), the card has " + text(room) + " of " + text(total) + " free" +
      (limit_ ? ", expected at most " + text(limit_) + " in use" : std::string()) + " (" + why +
      ")");
}

CachingAllocator& caching_allocator(int device) {
  (void)device_state(device, "allocate");  // an Error where there is no such device
  return allocators.get(device, [&] { return new CachingAllocator(device, caching_wanted()); });
}

void empty_all_caches() {
  for (int k = 0; k < kMaxDevicesPerType; ++k)
    if (CachingAllocator* found = allocators.existing(k)) found->empty_cache();
}

void destroy_allocators() { allocators.destroy(); }

}  // namespace cuda
}  // namespace ramet
