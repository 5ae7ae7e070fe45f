#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "runtime/base/checked_size.h"
#include "runtime/base/device.h"
#include "runtime/base/machine_internal.h"
#include "runtime/memory/arena_internal.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000  // Linux 4.17; older ones take the address for a wish
#endif

namespace ramet {
namespace detail {
namespace {

constinit std::atomic<size_t> g_mapped{0}, g_used{0};  // bytes of all arenas
constinit std::atomic<Arena*> g_arenas[kMaxDevices];

size_t up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
size_t less(size_t a, size_t b) { return a > b ? a - b : 0; }
char* up(char* at, size_t unit) {
  return at + (unit - reinterpret_cast<uintptr_t>(at) % unit) % unit;
}

#if defined(__EMSCRIPTEN__)

// WebAssembly's memory grows and never shrinks. So a range is a block of the C library's, and
// stays.
char* map_at(char*, size_t) { return nullptr; }
char* map_anywhere(size_t bytes, size_t) {
  void* p = nullptr;
  return posix_memalign(&p, 64 << 10, bytes) == 0 ? static_cast<char*>(p) : nullptr;
}
int unmap(void*, size_t) { return -1; }
void prefer_huge_pages(void*, size_t) {}

#else

int unmap(void* at, size_t bytes) { return munmap(at, bytes); }
void prefer_huge_pages(void* at, size_t bytes) { madvise(at, bytes, MADV_HUGEPAGE); }

char* map_at(char* wish, size_t bytes) {
  void* p = mmap(wish, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | (wish ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  if (p == MAP_FAILED) return nullptr;
  if (wish && p != wish) {
    munmap(p, bytes);
    return nullptr;
  }
  return static_cast<char*>(p);
}

// At a multiple of `unit`.
char* map_anywhere(size_t bytes, size_t unit) {
  char* p = map_at(nullptr, bytes);
  if (!p || up(p, unit) == p) return p;
  munmap(p, bytes);
  p = map_at(nullptr, bytes + unit);
  if (!p) return p;
  char* const start = up(p, unit);
  if (start != p) munmap(p, static_cast<size_t>(start - p));
  munmap(start + bytes, static_cast<size_t>(p + unit - start));
  return start;
}

#endif

// Is there memory to give back, and might `more` bytes be too many for the process's control group?
bool should_return(size_t more) {
  const GroupLimits& limits = my_group_limits();
  if (limits.memory == 0 || g_mapped == g_used) return false;
  const auto limit = static_cast<size_t>(limits.memory);
  return static_cast<size_t>(group_memory_in_use(limits)) + more > limit - limit / 16;
}

}  // namespace

// Takes the upper end of a range. The system puts new mappings below the last one, so a rest at the
// lower end can grow.
void* Arena::take(size_t size) {
  const auto found = sizes_.lower_bound({size, nullptr});
  if (found == sizes_.end()) return nullptr;
  auto by_size = sizes_.extract(found);
  auto& [left, at] = by_size.value();
  const auto by_address = free_.find(at);
  kept_ -= size;
  left -= size;
  char* const block = at + left;
  if (left == 0) {
    free_.erase(by_address);
  } else {
    by_address->second = left;
    sizes_.insert(std::move(by_size));  // reuses the node, so it cannot fail
  }
  return block;
}

void Arena::remove(std::map<char*, size_t>::iterator range) {
  sizes_.erase({range->second, range->first});
  kept_ -= range->second;
  free_.erase(range);
}

void Arena::add(char* at, size_t size) noexcept {
  auto next = free_.lower_bound(at);
  if (next != free_.end() && next->first == at + size) {
    size += next->second;
    const auto joined = next++;
    remove(joined);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == at) {
      at = before->first;
      size += before->second;
      remove(before);
    }
  }
  try {
    const auto by_size = sizes_.emplace(size, at).first;
    try {
      free_.emplace(at, size);
    } catch (...) {
      sizes_.erase(by_size);
      throw;
    }
    kept_ += size;
  } catch (const std::bad_alloc&) {  // no memory for its record
    unmap(at, size);
    g_mapped -= size;
    ++returned_;
  }
}

size_t Arena::allowed() const {
  const size_t most = std::max(most_[0], most_[1]), used = used_;
  size_t keep = less(most + most / 16 + (size_t{4} << 20), used);
  keep = std::min(keep, std::max(used, std::min(size_t{1} << 31, usable_ / 16) * 2));
  keep = std::min(keep, less(usable_ / 4 * 3, g_mapped - kept_));
  return limit_ ? std::min(keep, less(limit_, used)) : keep;
}

// Gives back whole huge pages of the largest ranges first. If nothing is kept, it gives back whole
// ranges.
void Arena::trim(size_t keep) noexcept {
  const size_t page = keep == 0 ? kUnit : kHuge;
  auto largest = sizes_.end();
  while (kept_ > keep && largest != sizes_.begin()) {
    --largest;
    const auto [size, at] = *largest;
    char* const start = up(at, page);
    const size_t before = static_cast<size_t>(start - at);
    const size_t whole = less(size, before) / page * page;
    if (whole == 0) {
      if (size < page) return;  // so are the others
      continue;
    }
    const size_t going = std::min(whole, up(kept_ - keep, page));
    if (unmap(start, going) != 0) return;  // too many mappings
    g_mapped -= going;
    ++returned_;
    remove(free_.find(at));
    if (before) add(at, before);
    if (const size_t after = size - before - going) add(start + going, after);
    largest = sizes_.end();
  }
}

bool Arena::grow(size_t size, bool extend) {
  if (extend && !sizes_.empty()) {
    const auto [has, at] = *sizes_.rbegin();
    const size_t more = up(size - has, kHuge);
    for (char* const wish : {at + has, at - more})
      if (reinterpret_cast<uintptr_t>(wish) % kHuge == 0 && map_at(wish, more)) {
        prefer_huge_pages(wish, more);
        g_mapped += more;
        add(wish, more);
        return true;
      }
  }
  const size_t more = up(size, kHuge);
  char* const fresh = map_anywhere(more, kHuge);
  if (!fresh) return false;
  prefer_huge_pages(fresh, more);
  g_mapped += more;
  add(fresh, more);
  return true;
}

void* Arena::allocate(size_t bytes) {
  const size_t size = up(bytes, kUnit);
  std::unique_lock lock(mutex_);
  if (++requests_ == kPeriod) {
    requests_ = 0;
    most_ = {used_, most_[0]};
  }
  void* block = take(size);
  const bool asks = !block;
  for (int attempt = 0; !block; ++attempt) {
    if (attempt == 2) return nullptr;
    if (attempt == 0 && should_return(size)) attempt = 1;
    if (attempt == 1) {
      lock.unlock();  // two threads with a lock each would wait for each other's
      release_arenas();
      lock.lock();
    }
    ++asked_;
    if (grow(size, attempt == 0)) block = take(size);
  }
  used_ += size;
  g_used += size;
  most_[0] = std::max(most_[0], used_);
  if (asks) trim(allowed());
  return block;
}

void Arena::free(void* block, size_t bytes) noexcept {
  const size_t size = up(bytes, kUnit);
  const std::lock_guard lock(mutex_);
  used_ -= size;
  g_used -= size;
  add(static_cast<char*>(block), size);
  trim(allowed());
}

void Arena::release(size_t keep) noexcept {
  const std::lock_guard lock(mutex_);
  trim(keep);
}

void Arena::set_limit(size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
  trim(allowed());
}

Arena::Counts Arena::counts() {
  const std::lock_guard lock(mutex_);
  return {used_, kept_, asked_, returned_};
}

Arena* existing_arena(int device_ordinal) {
  return g_arenas[device_ordinal].load(std::memory_order_acquire);
}

Arena& arena(int device_ordinal) {
  if (Arena* const known = existing_arena(device_ordinal)) return *known;
  auto* const made = new Arena(static_cast<size_t>(std::min(usable_memory(), kMaxStorageBytes)));
  Arena* expected = nullptr;
  if (g_arenas[device_ordinal].compare_exchange_strong(expected, made)) return *made;
  delete made;
  return *expected;
}

bool release_arenas() noexcept {
  const size_t before = g_mapped;
  for (int k = 0; k < kMaxDevices; ++k)
    if (Arena* const known = existing_arena(k)) known->release(0);
  return g_mapped < before;
}

}  // namespace detail
}  // namespace ramet
