#include "runtime/memory/pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

#include "runtime/memory/arena_internal.h"
#include "runtime/memory/debug_memory.h"

using ramet::detail::tls;

// ./tools/install adds it (tools/sdk/templates/symbol.c); elsewhere it has no address.
extern "C" __attribute__((weak, visibility("default"))) int ramet_is_mixed();

namespace ramet {

namespace detail {
__thread Context tls;
}

namespace pool {
// kSlabBytes is below glibc's mmap threshold even with its alignment slack.
constexpr int kSpareSlabs = 32;                  // 1 MiB of empty slabs per thread
constexpr int kLargeLow = 10, kLargeHigh = 22,   // 4 MiB = kLargeMax
    kLargeClasses = kLargeHigh - kLargeLow + 1;  // 1 KiB .. 4 MiB of payload
constexpr size_t kLargeKept = 8 << 20;

struct Heap : HeapFront {
  Free* large[kLargeClasses] = {};
  size_t large_bytes[kLargeClasses] = {};
  Slab* spare = nullptr;
  int spares = 0;
  size_t slabs = 0;
  std::atomic<Free*> remote{nullptr};
  std::atomic<bool> abandoned{false};
  Heap* next = nullptr;
};

namespace {

// abandoned heaps; trivially destructible, so usable at any time
std::mutex g_mutex;
Heap* g_abandoned = nullptr;
// for threads after the end of their thread-locals; always used under g_mutex
Heap* g_shared = nullptr;
size_t g_heaps = 0;

[[noreturn, gnu::cold]] void refuse(size_t bytes) {
  throw OutOfMemoryError("[allocate] out of memory: got a request of " + std::to_string(bytes) +
                         " bytes");
}

// Exactly `bytes`, so that a sanitizer detects the first byte after the end.
void* aligned(size_t alignment, size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, alignment, bytes) == 0) return p;
  // The memory that arenas keep for large blocks may be missing now.
  if (!detail::release_arenas() || posix_memalign(&p, alignment, bytes) != 0) refuse(bytes);
  return p;
}

// -1: not asked yet, 0: off, 1: on. See fail_allocation_after in pool.h.
std::atomic<int> g_failures{-1};
std::atomic<uint64_t> g_counted{0}, g_fail_at{0};

[[gnu::cold]] bool ask_for_failures() {
  const char* text = std::getenv("RAMET_FAIL_ALLOC");
  const bool on = text && *text;
  if (on) {
    char* end = nullptr;
    g_fail_at = std::strtoull(text, &end, 10);
    RAMET_CHECK(*end == 0 && *text != '-', "RAMET_FAIL_ALLOC", "got \"", text,
                "\", expected a number of 0 or more");
  }
  g_failures = on;
  return on;
}

int large_class(size_t bytes) {  // a class holds 2^k of payload plus one 64-byte storage header
  return std::max(0, int(std::bit_width(bytes - kStep - 1)) - kLargeLow);
}

void link(Heap* h, Slab* s) {
  s->prev = nullptr;
  s->next = h->open[s->size_class];
  if (s->next) s->next->prev = s;
  h->open[s->size_class] = s;
}

void unlink(Heap* h, Slab* s) {
  (s->prev ? s->prev->next : h->open[s->size_class]) = s->next;
  if (s->next) s->next->prev = s->prev;
}

void local_free(Heap* h, void* p, size_t bytes) {
  Free* b = static_cast<Free*>(p);
  if (bytes > kSmallMax) {
    const int c = large_class(bytes);
    const size_t size = size_t(1) << (c + kLargeLow);
    if (h->large_bytes[c] + size > kLargeKept) return std::free(static_cast<char*>(p) - kStep);
    h->large_bytes[c] += size;
    b->next = h->large[c];
    h->large[c] = b;
    return;
  }
  Slab* s = reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(p) & ~(kSlabBytes - 1));
  b->next = s->free;
  if (!s->free) [[unlikely]]
    link(h, s);
  s->free = b;
  if (--s->used == 0 && (s->prev || s->next)) [[unlikely]] {  // keep one slab per class open
    unlink(h, s);
    --h->slabs;
    if (h->spares == kSpareSlabs) return std::free(s);
    ++h->spares;
    s->next = h->spare;
    h->spare = s;
  }
}

void drain(Heap* h) {
  Free* b = h->remote.exchange(nullptr, std::memory_order_acquire);
  while (b) {
    Free* next = b->next;
    local_free(h, b, b->bytes);
    b = next;
  }
}

[[gnu::noinline]] void* slow_small(Heap* h, uint32_t c) {
  if (h->remote.load(std::memory_order_relaxed)) drain(h);
  if (!h->open[c]) {
    Slab* s = h->spare;
    if (s) {
      h->spare = s->next;
      --h->spares;
    } else {
      s = static_cast<Slab*>(aligned(kSlabBytes, kSlabBytes));
    }
    const size_t size = (c + 1) * kStep;
    *s = {h, nullptr, nullptr, nullptr, 0, c};
    char* base = reinterpret_cast<char*>(s);
    for (size_t at = sizeof(Slab) + (kSlabBytes - sizeof(Slab)) / size * size; at > sizeof(Slab);
         at -= size) {
      Free* b = reinterpret_cast<Free*>(base + at - size);
      b->next = s->free;
      s->free = b;
    }
    ++h->slabs;
    link(h, s);
  }
  Slab* s = h->open[c];
  Free* b = s->free;
  if (!(s->free = b->next)) unlink(h, s);
  ++s->used;
  return b;
}

void* allocate_from(Heap* h, size_t bytes) {
  if (bytes <= kSmallMax) {
    const uint32_t c = uint32_t((bytes + kStep - 1) / kStep) - 1;
    Slab* s = h->open[c];
    // taking the last block would close the slab: slow path
    if (s && s->free->next) [[likely]] {
      Free* b = s->free;
      s->free = b->next;
      ++s->used;
      return b;
    }
    return slow_small(h, c);
  }
  const int c = large_class(bytes);
  if (!h->large[c] && h->remote.load(std::memory_order_relaxed)) drain(h);
  if (Free* b = h->large[c]) {
    h->large[c] = b->next;
    h->large_bytes[c] -= size_t(1) << (c + kLargeLow);
    return b;
  }
  Slab* head = static_cast<Slab*>(aligned(64, kStep + kStep + (size_t(1) << (c + kLargeLow))));
  head->heap = h;
  return reinterpret_cast<char*>(head) + kStep;
}

// Gives the heap up at thread exit. Order matters: announce first, drain after. A thread that frees
// pushes first and reads `abandoned` after. With sequential consistency one of the two sees the
// write of the other, so no block is forgotten.
struct ExitGuard {
  ~ExitGuard() {
    auto* h = static_cast<Heap*>(tls.heap);
    tls.heap = nullptr;
    tls.heap_gone = true;
    if (!h) return;
    std::lock_guard lock(g_mutex);
    h->abandoned.store(true);
    drain(h);
    h->next = g_abandoned;
    g_abandoned = h;
  }
};

// Two copies of the archive may share inline functions. Then each would do a part: a guard in one,
// the operation in the other. Checked once for each thread, so it costs nothing.
[[gnu::cold]] void refuse_mixed() {
  fail("ramet", "this process holds several copies of libramet.a that call each other, in the ",
       "program and in shared libraries that it is linked with (or loads with RTLD_GLOBAL): ",
       "expected all to be linked with libramet.so (CMake: Ramet_SHARED, pkg-config: ",
       "ramet-shared), or each of the shared libraries with -Wl,-Bsymbolic");
}

[[gnu::noinline]] Heap* acquire_heap() {
  if (ramet_is_mixed && ramet_is_mixed()) refuse_mixed();
  thread_local ExitGuard guard;  // registers the destructor on this thread
  (void)&guard;
  std::lock_guard lock(g_mutex);
  Heap* h = g_abandoned;
  if (h) {
    g_abandoned = h->next;
    h->abandoned.store(false);
  } else {
    h = new Heap;
    ++g_heaps;
  }
  tls.heap = h;
  return h;
}

[[gnu::noinline]] void remote_free(Heap* h, void* p, size_t bytes) {
  Free* b = static_cast<Free*>(p);
  b->bytes = bytes;
  b->next = h->remote.load(std::memory_order_relaxed);
  while (!h->remote.compare_exchange_weak(b->next, b)) {}  // push only, take all: no ABA
  if (h->abandoned.load()) [[unlikely]] {
    std::lock_guard lock(g_mutex);
    if (h->abandoned.load()) drain(h);
  }
}

// a static or thread-local destructor allocates
[[gnu::noinline]] void* shared_allocate(size_t bytes) {
  std::lock_guard lock(g_mutex);
  if (!g_shared) {
    g_shared = new Heap;
    // for ever: every free into it drains under the lock
    g_shared->abandoned.store(true);
  }
  return allocate_from(g_shared, bytes);
}

}  // namespace

bool failures_enabled() {
  const int known = g_failures.load(std::memory_order_relaxed);
  return known < 0 ? ask_for_failures() : known != 0;
}

void fail_allocation_after(uint64_t n) {
  failures_enabled();  // reads the environment first; later it would override this call
  g_counted = 0;
  g_fail_at = n;
}

uint64_t allocations_counted() { return g_counted; }

void count_allocation(size_t bytes) {
  if (!failures_enabled()) return;
  if (++g_counted == g_fail_at) {
    throw OutOfMemoryError(
        "[allocate] out of memory (planned by RAMET_FAIL_ALLOC): got a request of " +
        std::to_string(bytes) + " bytes");
  }
}

void* allocate_slow(size_t bytes) {
  if (kPassThrough || RAMET_UNLIKELY(failures_enabled())) {
    count_allocation(bytes);
    if (kPassThrough) return aligned(kStep, bytes ? bytes : 1);
  }
  auto* h = static_cast<Heap*>(tls.heap);
  if (RAMET_UNLIKELY(!h)) {
    // A process with planned failures or memory checks never sets tls.heap, so that every request
    // comes through here and every block through remote_free.
    if (tls.heap_gone || failures_enabled() || debug_memory()) return shared_allocate(bytes);
    h = acquire_heap();
  }
  return allocate_from(h, bytes);
}

void deallocate_slow(void* p, size_t bytes) {
  if (kPassThrough) return std::free(p);
  Slab* s = bytes <= kSmallMax
                ? reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(p) & ~(kSlabBytes - 1))
                : reinterpret_cast<Slab*>(static_cast<char*>(p) - kStep);
  if (s->heap == tls.heap) return local_free(s->heap, p, bytes);
  if (RAMET_UNLIKELY(debug_memory())) detail::poison_freed(p, bytes);
  remote_free(s->heap, p, bytes);
}

Counts counts() {
  auto* h = static_cast<Heap*>(tls.heap);
  if (!h) return {};
  drain(h);
  size_t large = 0;
  for (size_t b : h->large_bytes) large += b;
  return {h->slabs, size_t(h->spares), large, g_heaps};
}

}  // namespace pool
}  // namespace ramet
