#include "runtime/cuda/caching_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/kept_memory.h"
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

CachingAllocator::~CachingAllocator() { give_back_free_segments(); }

// REQUIRES: the lock.
void* CachingAllocator::take(size_t size) {
  auto& list = small(size) ? free_[0] : free_[1];
  const auto found = list.lower_bound({size, nullptr});
  if (found == list.end()) return nullptr;
  char* at = found->at;
  list.erase(found);
  Block& block = blocks_.at(at);
  block.free = false;
  // The rest becomes a block if a request of this kind could use it, or if it would exceed the
  // limit.
  const size_t rest = block.size - size;
  const bool too_much = rest && limit_ && current_ + block.size > limit_;
  if (too_much || rest >= (small(size) ? kAlign : (size_t{1} << 20))) {
    block.size = size;
    blocks_[at + size] = {rest, true, block.segment, block.freed};
    list.insert({rest, at + size});
  }
  return at;
}

// REQUIRES: the lock.
void CachingAllocator::add_segment(char* at, size_t size) {
  segments_[at] = size;
  reserved_ += size;
  blocks_[at] = {size, true, at};
  free_list(size).insert({size, at});
}

// REQUIRES: the lock.
void CachingAllocator::check_limit(size_t size, size_t bytes, std::unique_lock<std::mutex>& lock) {
  if (limit_ && current_ + size > limit_) out_of_memory(bytes, "set_memory_limit", lock);
}
// REQUIRES: the lock.
void CachingAllocator::count(size_t size) {
  current_ += size;
  peak_ = std::max(peak_, current_);
  ++allocations_;
}

// Checks the first result of both calls here, because a later free() cannot report an error.
bool CachingAllocator::pooled() {
  if (pair_ == Pair::kNotTried) {
    const DeviceState& state = device_state(device_, "allocate");
    int has_pools = 0;
    RAMET_CUDA("allocate", device_,
               cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, state.card));
    if (has_pools) {
      const CardGuard guard("allocate", state);
      const ComputeStreamGuard beside(-1, nullptr);
      const cudaStream_t stream =
          device_state(device_, "allocate").stream(Queue::kCompute, "allocate");
      void* trial = nullptr;
      const cudaError_t code = cudaMallocAsync(&trial, kAlign, stream);
      if (code == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return true;  // tried again by the next call
      }
      RAMET_CUDA("allocate", device_, code);
      RAMET_CUDA("allocate", device_, cudaFreeAsync(trial, stream));
      freed_ = stream;
    }
    pair_ = has_pools ? Pair::kPool : Pair::kPlain;
  }
  return pair_ == Pair::kPool;
}

// Null where the GPU has no more memory. No lock is held, because the call may wait for the GPU.
void* CachingAllocator::from_driver(size_t bytes) {
  const bool pool = !caches_ && pooled();
  const CardGuard guard("allocate", device_);
  const ComputeStreamGuard beside(-1, nullptr);  // no part of a graph that is being made
  void* memory = nullptr;
  const cudaError_t code =
      pool ? cudaMallocAsync(&memory, bytes,
                             device_state(device_, "allocate").stream(Queue::kCompute, "allocate"))
           : cudaMalloc(&memory, bytes);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  RAMET_CUDA("allocate", device_, code);
  return memory;
}

// Does not wait: a wait could delay the thread that queues the work that this one waits for. The
// call is no part of the graph that this thread may be making.
void CachingAllocator::to_driver(void* memory) noexcept {
  try {
    DeviceState& state = device_state(device_, "free");
    const CardGuard guard("free", state);
    const ComputeStreamGuard beside(-1, nullptr);
    if (!pooled()) {
      {
        const std::lock_guard lock(mutex_);
        kept_.push_back(memory);
      }
      return free_kept();
    }
    const cudaStream_t stream = state.stream(Queue::kCompute, "free");
    ignore(cudaFreeAsync(memory, stream));
    freed_ = stream;
  } catch (const std::exception&) {}  // from a lost device; the next call reports it again
}

void CachingAllocator::free_kept() {
  const DeviceState* state = existing_state(device_);
  // The next call gives it back.
  if (ComputeStreamGuard::captures() || !state || keeps_memory(state->card)) return;
  std::vector<void*> going;
  {
    const std::lock_guard lock(mutex_);
    going.swap(kept_);
  }
  for (void* memory : going) ignore(cudaFree(memory));  // waits for the GPU
}

// Null where the GPU has no more memory. The lock is held before and after.
void* CachingAllocator::allocate_block(size_t size, size_t bytes,
                                       std::unique_lock<std::mutex>& lock) {
  if (caches_)
    if (void* p = take(size)) return p;
  const size_t wanted = !caches_             ? std::max<size_t>(bytes, 1)
                        : small(size)        ? kSmallSegment
                        : size < kOwnSegment ? kSegment
                                             : rounded(size, kSmallSegment);
  lock.unlock();
  char* const at = static_cast<char*>(from_driver(wanted));
  lock.lock();
  if (!at) return nullptr;
  if (caches_) {
    add_segment(at, wanted);
    check_limit(size, bytes, lock);  // other threads may have allocated since
    return take(size);
  }
  if (limit_ && current_ + size > limit_) {
    lock.unlock();
    to_driver(at);
    lock.lock();
    out_of_memory(bytes, "set_memory_limit", lock);
  }
  reserved_ += size;  // the driver rounds, too
  blocks_[at] = {size, false, at, turn_};
  return at;
}

void* CachingAllocator::allocate(size_t bytes) {
  const size_t size = rounded(std::max<size_t>(bytes, 1), kAlign);
  std::unique_lock lock(mutex_);
  for (bool again = false;; again = true) {
    check_limit(size, bytes, lock);
    if (void* p = allocate_block(size, bytes, lock)) {
      count(blocks_.at(static_cast<char*>(p)).size);
      return p;
    }
    if (again) out_of_memory(bytes, "the card has no more", lock);
    lock.unlock();
    const bool captures = ComputeStreamGuard::captures();
    if (!captures) empty_caches_of_card(device_);
    lock.lock();
    if (captures) out_of_memory(bytes, "nothing is freed while a graph is made", lock);
  }
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
  RAMET_CHECK(!ComputeStreamGuard::captures(), "empty_cache", "cuda:", device_,
              ": got a call while this thread makes a graph, expected none: the memory that goes "
              "back is waited for");
  // Another thread's segments may be on their way to the driver. A thread that finds the GPU full
  // then waits here for them. It waits for that GPU alone, as a cudaFree() of its own would.
  static constinit std::mutex freeing[64];  // by GPU
  const std::lock_guard lock(freeing[device_state(device_, "empty_cache").card % 64]);
  give_back_free_segments();
}

void CachingAllocator::give_back_free_segments() {
  const DeviceState* state = existing_state(device_);
  if (!state || keeps_memory(state->card)) return;
  const CardGuard guard("empty_cache", *state);
  free_kept();
  if (const cudaStream_t stream = freed_.exchange(nullptr)) ignore(cudaStreamSynchronize(stream));
  std::vector<std::pair<char*, size_t>> going;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = segments_.begin(); it != segments_.end();) {
      const auto block = blocks_.find(it->first);
      if (!block->second.free || block->second.size != it->second) {
        ++it;
        continue;
      }
      going.push_back(*it);
      free_list(it->second).erase({it->second, it->first});
      blocks_.erase(block);
      reserved_ -= it->second;
      it = segments_.erase(it);
    }
  }
  for (const auto& [at, size] : going) {
    const cudaError_t code = cudaFree(at);  // waits for the GPU
    if (RAMET_LIKELY(code == cudaSuccess)) continue;
    ignore(code);  // from a lost device; the next call reports it. We keep the memory
    const std::lock_guard lock(mutex_);
    add_segment(at, size);
    blocks_.at(at).freed = turn_;  // kernels that used it may still be running
  }
}

void CachingAllocator::open_to(int card) {
  if (caches_ || !pooled()) return;
  const DeviceState& state = device_state(device_, "peer access");
  cudaMemPool_t pool{};
  RAMET_CUDA("peer access", device_, cudaDeviceGetDefaultMemPool(&pool, state.card));
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = card;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  RAMET_CUDA("peer access", device_, cudaMemPoolSetAccess(pool, &access, 1));
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

// REQUIRES: the lock, which goes.
void CachingAllocator::out_of_memory(size_t bytes, const char* why,
                                     std::unique_lock<std::mutex>& lock) {
  size_t room = 0, total = 0, largest = 0;
  for (const auto& list : free_)
    if (!list.empty()) largest = std::max(largest, list.rbegin()->size);
  const size_t current = current_, cached = reserved_ - current_, limit = limit_;
  lock.unlock();
  const CardGuard guard("allocate", device_);
  if (cudaMemGetInfo(&room, &total) != cudaSuccess) {
    (void)cudaGetLastError();
    room = total = 0;
  }
  const auto text = [](size_t n) { return std::to_string(n); };
  throw OutOfMemoryError(
      "[allocate] out of memory on cuda:" + std::to_string(device_) + ": got a request of " +
      text(bytes) + " bytes, " + text(current) + " bytes are in use, " + text(cached) +
      " are cached (largest piece " + text(largest) + "), the card has " + text(room) + " of " +
      text(total) + " free" +
      (limit ? ", expected at most " + text(limit) + " in use" : std::string()) + " (" + why + ")");
}

CachingAllocator& caching_allocator(int device) {
  (void)device_state(device, "allocate");  // an Error where there is no such device
  return allocators.get(device, [&] { return new CachingAllocator(device, caching_wanted()); });
}

void empty_caches_of_card(int device) {
  const int card = device_state(device, "empty_cache").card;
  for (int k = 0; k < kMaxDevicesPerType; ++k) {
    const DeviceState* state = existing_state(k);
    if (!state || state->card != card) continue;
    if (CachingAllocator* found = allocators.existing(k)) found->empty_cache();
  }
}

void empty_all_caches() {
  for (int k = 0; k < kMaxDevicesPerType; ++k)
    if (CachingAllocator* found = allocators.existing(k)) found->empty_cache();
}

void destroy_allocators() { allocators.destroy(); }

}  // namespace cuda
}  // namespace ramet
