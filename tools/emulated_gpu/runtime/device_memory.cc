#include "tools/emulated_gpu/runtime/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "tools/emulated_gpu/checker/checks.h"

namespace ramet::emulated {
namespace {

/// Bytes after each allocation that belong to none.
constexpr size_t kRedZone = 512;

constexpr uintptr_t kPage = 4096, kHugePage = uintptr_t{2} << 20;  // of the system

size_t rounded(size_t bytes) {
  return (std::max<size_t>(bytes, 1) + kMemoryUnit - 1) / kMemoryUnit * kMemoryUnit;
}

}  // namespace

DeviceMemory::DeviceMemory(int device, size_t capacity) : device_(device), capacity_(capacity) {
#if !defined(RAMET_EMULATED_ASAN)
  arena_bytes_ = capacity * 2 + (size_t(1) << 20);
  void* arena = mmap(nullptr, arena_bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) throw std::bad_alloc();
  // Each kernel guards all pages in use: with huge pages these are fewer.
  madvise(arena, arena_bytes_, MADV_HUGEPAGE);
  arena_ = static_cast<char*>(arena);
  free_[0] = arena_bytes_;
  if (checks().arena) checks().arena(arena_, arena_bytes_, device_);
#endif
}

DeviceMemory::~DeviceMemory() {
  release_all();
  if (!arena_) return;
  if (checks().arena_gone) checks().arena_gone(arena_);
  munmap(arena_, arena_bytes_);
}

void* DeviceMemory::allocate(size_t bytes, bool in_order) {
  const size_t counted = rounded(bytes);
  if (counted > capacity_ || used_ > capacity_ - counted) return nullptr;
  void* memory = take_range(bytes);
  if (!memory) return nullptr;
  used_ += counted;
  allocations_[reinterpret_cast<uintptr_t>(memory)] = {bytes, in_order};
  // Changes the huge pages that the memory lies in. All pages would take long, and parts would be
  // cut into small pages.
  const auto pages = [&](int access) {
    const auto arena = reinterpret_cast<uintptr_t>(arena_),
               at = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t low = std::max(arena, at / kHugePage * kHugePage),
                    high = std::min(arena + arena_bytes_,
                                    (at + bytes + kHugePage - 1) / kHugePage * kHugePage);
    if (mprotect(reinterpret_cast<void*>(low), high - low, access) != 0) throw std::bad_alloc();
  };
  if (!exposed_) pages(PROT_READ | PROT_WRITE);
  std::memset(memory, 0xff, bytes);
  if (!exposed_) pages(PROT_NONE);
  if (checks().allocated) checks().allocated(memory, bytes);
  return memory;
}

void DeviceMemory::expose(bool to_host) {
  if (!arena_ || exposed_ == to_host) return;
  if (mprotect(arena_, arena_bytes_, to_host ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
    throw std::bad_alloc();  // no memory for the page tables
  exposed_ = to_host;
}

bool DeviceMemory::release(void* memory) {
  const auto found = allocations_.find(reinterpret_cast<uintptr_t>(memory));
  if (found == allocations_.end()) return false;
  const size_t bytes = found->second.bytes;
  used_ -= rounded(bytes);
  allocations_.erase(found);
  if (checks().freed) checks().freed(memory, bytes);
  give_range(memory, bytes);
  return true;
}

void DeviceMemory::release_all() {
  while (!allocations_.empty()) release(reinterpret_cast<void*>(allocations_.begin()->first));
}

bool DeviceMemory::find(const void* address, Allocation* allocation) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto next = allocations_.upper_bound(at);
  if (next == allocations_.begin()) return false;
  --next;
  const Given& given = next->second;
  if (at >= next->first + std::max<size_t>(given.bytes, 1)) return false;
  *allocation = {reinterpret_cast<const void*>(next->first), given.bytes, device_, given.in_order};
  return true;
}

#if defined(RAMET_EMULATED_ASAN)

void* DeviceMemory::take_range(size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, kMemoryUnit, std::max<size_t>(bytes, 1)) == 0 ? memory : nullptr;
}

void DeviceMemory::give_range(void* memory, size_t) { std::free(memory); }

#else

void* DeviceMemory::take_range(size_t bytes) {
  const size_t wanted = rounded(bytes) + kRedZone;
  // With the checker, addresses are not used again before all have been used once, so that it sees
  // a use after free. Otherwise the first hole serves.
  for (const bool from_cursor : {true, false}) {
    if (from_cursor && !checks().allocated) continue;
    for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
      const size_t low = hole->first, high = low + hole->second;
      const size_t at = from_cursor ? std::max(low, cursor_) : low;
      if (at + wanted > high) continue;
      free_.erase(hole);
      if (at > low) free_[low] = at - low;
      if (at + wanted < high) free_[at + wanted] = high - at - wanted;
      cursor_ = at + wanted;
      return arena_ + at;
    }
  }
  return nullptr;
}

void DeviceMemory::give_range(void* memory, size_t bytes) {
  // Large blocks go back to the system: 40 tests with 64 MB devices should not need 2.5 GB. Only
  // whole pages go, because another allocation may own the rest of a page.
  if (bytes >= (size_t(1) << 20)) {
    const auto start = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t low = (start + kPage - 1) / kPage * kPage,
                    high = (start + rounded(bytes)) / kPage * kPage;
    madvise(reinterpret_cast<void*>(low), high - low, MADV_DONTNEED);
  }
  size_t at = static_cast<size_t>(static_cast<char*>(memory) - arena_);
  size_t size = rounded(bytes) + kRedZone;
  auto next = free_.lower_bound(at);
  if (next != free_.end() && next->first == at + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == at) {
      before->second += size;
      return;
    }
  }
  free_[at] = size;
}

#endif

}  // namespace ramet::emulated
