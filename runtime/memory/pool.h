// Memory for implementations, storages, nodes and data up to 4 MB: size-class free lists, owned by
// a thread.
//
// A block freed on another thread goes to its owner's `remote` list (one atomic push). The owner
// takes the whole list back when a class has no free block. The kept memory is bounded: at most
// kSpareSlabs empty slabs per thread, and at most kLargeKept bytes per large class. It is safe in
// static destructors and at thread exit. The heap object is never destroyed and is offered to the
// next new thread. Until then, each thread that frees into it drains it under a lock. Under ASan
// and TSan every call goes to malloc. A recycled block would hide a use-after-free and invent
// happens-before edges.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/context.h"

namespace ramet {
namespace pool {

struct Heap;
/// The content of a free block: the next one, and its own size.
struct Free {
  Free* next;
  size_t bytes;  // of a large block
};
/// First 64 bytes of a slab (found by masking a small block's address) and of a large block (at p -
/// 64). It holds the owner `heap`, its `free` blocks, the number of `used` blocks, and the
/// `size_class`.
struct alignas(64) Slab {
  Heap* heap;
  Free* free;
  Slab *prev, *next;  // slabs of one class that have a free block
  uint32_t used, size_class;
};
/// Sizes of the classes of small blocks, and of the slab that they are cut from.
inline constexpr size_t kStep = 64, kSmallMax = 1024, kSmallClasses = kSmallMax / kStep,
                        kSlabBytes = 32 << 10;
/// payload of the largest class; for larger blocks see runtime/memory/allocator.h
inline constexpr size_t kLargeMax = size_t{4} << 20;

struct HeapFront {                 // the part of a Heap that the inline path needs
  Slab* open[kSmallClasses] = {};  // of each class a slab with two free blocks or more, or null
};

// Under sanitizers every block is malloc's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/// Defined where every block is malloc's.
#define RAMET_POOL_PASS_THROUGH 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RAMET_POOL_PASS_THROUGH 1
#endif
#endif
#ifdef RAMET_POOL_PASS_THROUGH
/// Is every block malloc's, as under sanitizers?
inline constexpr bool kPassThrough = true;
#else
/// Is every block malloc's, as under sanitizers?
inline constexpr bool kPassThrough = false;
#endif

/// The slow paths of allocate() and deallocate():
RAMET_API void* allocate_slow(size_t bytes);
RAMET_API void deallocate_slow(void* p, size_t bytes);

/// A 64-byte aligned block, never null (OutOfMemoryError). Inline, because the class of most
/// callers is a constant.
inline void* allocate(size_t bytes) {
  if constexpr (!kPassThrough) {
    HeapFront* h = ramet::detail::tls.heap;
    if (RAMET_LIKELY(bytes <= kSmallMax && h != nullptr)) {
      Slab* s = h->open[(bytes + kStep - 1) / kStep - 1];
      // the last block closes the slab: slow path
      if (RAMET_LIKELY(s != nullptr && s->free->next != nullptr)) {
        Free* b = s->free;
        s->free = b->next;
        ++s->used;
        return b;
      }
    }
  }
  return allocate_slow(bytes);
}

/// From any thread; `bytes` as given to allocate. Sized: no header of the block itself to read.
inline void deallocate(void* p, size_t bytes) {
  if constexpr (!kPassThrough) {
    if (RAMET_LIKELY(bytes <= kSmallMax)) {
      Slab* s = reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(p) & ~(kSlabBytes - 1));
      if (RAMET_LIKELY(reinterpret_cast<HeapFront*>(s->heap) == ramet::detail::tls.heap &&
                       s->free && s->used > 1)) {
        static_cast<Free*>(p)->next = s->free;  // own, open, and stays in use
        s->free = static_cast<Free*>(p);
        --s->used;
        return;
      }
    }
  }
  deallocate_slow(p, bytes);
}

/// Counts of the calling thread's heap; for tests.
struct Counts {
  /// Slabs in use and empty ones, bytes of large blocks that are kept, heaps of all threads.
  size_t slabs, spare, large_bytes, heaps;
};
/// The current counts.
RAMET_API Counts counts();

/// Planned failures. With RAMET_FAIL_ALLOC=n in the environment (n >= 0) every allocation of the
/// library is counted, and the n-th one (from 1) throws OutOfMemoryError. Such a process bypasses
/// the free lists. n = 0 only counts.
RAMET_API bool failures_enabled();
/// In such a process: the n-th allocation from now fails (0: none).
RAMET_API void fail_allocation_after(uint64_t n);
/// Allocations since the last call of fail_allocation_after.
RAMET_API uint64_t allocations_counted();
/// The allocators call it for every request. Throws at the request that must fail.
RAMET_API void count_allocation(size_t bytes);

}  // namespace pool
}  // namespace ramet
