#include "runtime/memory/allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "runtime/base/checked_size.h"
#include "runtime/base/machine_internal.h"
#include "runtime/devices/gpu.h"
#include "runtime/memory/arena_internal.h"
#include "runtime/memory/debug_memory.h"
#include "runtime/memory/memory_observer.h"
#include "runtime/memory/pool.h"

namespace ramet {
namespace {

struct alignas(64) Counters {
  std::atomic<int64_t> current{0}, peak{0}, allocations{0}, limit{0};
  // Further work for each block: nothing, or some of these.
  static constexpr uint32_t kLimit = 1, kObserved = 2;
  std::atomic<uint32_t> watch{0};
  void set(uint32_t bit, bool on) {
    if (on) watch.fetch_or(bit);
    else watch.fetch_and(~bit);
  }
};
constinit Counters g_counters[kMaxDevices];

void* allocate_large(size_t block, int device) {
  pool::count_allocation(block);
  void* p = nullptr;
  if (!pool::kPassThrough) p = detail::arena(device).allocate(block);
  else if (posix_memalign(&p, 64, block) != 0) p = nullptr;
  if (p) return p;
  throw OutOfMemoryError("[allocate] out of memory on " + Device::from_ordinal(device).str() +
                         ": got a request of " + std::to_string(block) + " bytes, " +
                         std::to_string(g_counters[device].current.load()) + " bytes are in use");
}

void free_large(void* p, size_t block, int device) {
  if (pool::kPassThrough) return std::free(p);
  if (RAMET_UNLIKELY(debug_memory())) detail::poison_freed(p, block);
  detail::arena(device).free(p, block);
}

[[noreturn, gnu::cold]] void over_limit(size_t bytes, int device) {
  const Counters& c = g_counters[device];
  throw OutOfMemoryError("[allocate] out of memory on " + Device::from_ordinal(device).str() +
                         ": got a request of " + std::to_string(bytes) + " bytes, " +
                         std::to_string(c.current.load()) + " bytes are in use, expected at most " +
                         std::to_string(c.limit.load()) + " (set_memory_limit)");
}

}  // namespace

MemoryStats memory_stats(Device device) {
  device = resolve(device);
  if (!device.is_cpu()) return gpu::library()->memory_stats(device.index());
  const int d = device.ordinal();
  const Counters& c = g_counters[d];
  MemoryStats s;
  s.current = c.current.load();
  s.peak = c.peak.load();
  s.allocations = c.allocations.load();
  if (detail::Arena* const arena = detail::existing_arena(d))
    s.cached = static_cast<int64_t>(arena->counts().kept);
  return s;
}

void reset_peak_memory_stats(Device device) {
  device = resolve(device);
  if (!device.is_cpu()) return gpu::library()->reset_peak_memory_stats(device.index());
  Counters& c = g_counters[device.ordinal()];
  c.peak = c.current.load();
}

void set_memory_limit(Device device, int64_t bytes) {
  RAMET_CHECK(bytes >= 0, "set_memory_limit", "bytes: got ", bytes,
              ", expected 0 (no limit) or more");
  device = resolve(device);
  if (!device.is_cpu())
    return gpu::library()->set_memory_limit(device.index(), static_cast<size_t>(bytes));
  Counters& c = g_counters[device.ordinal()];
  c.limit = bytes;
  c.set(Counters::kLimit, bytes != 0);
  detail::arena(device.ordinal()).set_limit(static_cast<size_t>(std::min(bytes, kMaxStorageBytes)));
}

void empty_cache() {
  detail::release_arenas();
  if (gpu::Library* gpus = gpu::library()) gpus->empty_cache();
}

void check_room(const char* op, const char* what, uint64_t count, uint64_t each) {
  const Counters& c = g_counters[0];
  const int64_t limit = c.limit.load(std::memory_order_relaxed);
  const auto room = static_cast<uint64_t>(limit ? std::max<int64_t>(limit - c.current.load(), 0)
                                                : detail::usable_memory());
  if (RAMET_LIKELY(count <= room / each)) return;
  throw OutOfMemoryError("[" + std::string(op) + "] " + what + ": got " + std::to_string(count) +
                         ", expected at most " + std::to_string(room / each) + ", for which " +
                         std::to_string(room) + " bytes of memory are left");
}

namespace {

[[gnu::always_inline]] inline void* allocate_counted(size_t block, size_t bytes, int device) {
  Counters& c = g_counters[device];
  const auto want = static_cast<int64_t>(bytes);
  void* p = block <= pool::kLargeMax ? pool::allocate(block) : allocate_large(block, device);
  const int64_t now = c.current.fetch_add(want, std::memory_order_relaxed) + want;
  c.allocations.fetch_add(1, std::memory_order_relaxed);
  for (int64_t peak = c.peak.load(std::memory_order_relaxed);
       now > peak && !c.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed);) {}
  return p;
}

// Reports to observers the memory after the storage's header.
[[gnu::cold, gnu::noinline]] void tell(void* p, size_t block, size_t bytes, int device, bool made) {
  if (memory_observed())
    detail::tell_memory(
        {static_cast<char*>(p) + (block - bytes), bytes, Device::from_ordinal(device), made});
}

[[gnu::cold, gnu::noinline]] void* allocate_watched(size_t block, size_t bytes, int device) {
  const Counters& c = g_counters[device];
  const int64_t limit = c.limit.load(std::memory_order_relaxed);
  if (limit != 0 && c.current.load(std::memory_order_relaxed) + static_cast<int64_t>(bytes) > limit)
    over_limit(bytes, device);
  void* p = allocate_counted(block, bytes, device);
  tell(p, block, bytes, device, true);
  return p;
}

}  // namespace

namespace detail {

void observe_blocks(bool on) {
  for (Counters& c : g_counters) c.set(Counters::kObserved, on);
}

void* allocate_block(size_t block, size_t bytes, int device) {
  if (RAMET_UNLIKELY(g_counters[device].watch.load(std::memory_order_relaxed) != 0))
    return allocate_watched(block, bytes, device);
  return allocate_counted(block, bytes, device);
}

void free_block(void* p, size_t block, size_t bytes, int device) {
  if (RAMET_UNLIKELY(g_counters[device].watch.load(std::memory_order_relaxed) != 0))
    tell(p, block, bytes, device, false);
  g_counters[device].current.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  if (block <= pool::kLargeMax) return pool::deallocate(p, block);
  free_large(p, block, device);
}

}  // namespace detail
}  // namespace ramet
