// A piece of memory with its version counter.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/base/device.h"

namespace ramet {

/// One reference less; true for the last. The holder of the only reference needs no locked
/// instruction to detect it: no other thread can take another.
inline bool drop_ref(std::atomic<uint32_t>& refs) {
  return refs.load(std::memory_order_acquire) == 1 ||
         refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
}
/// One reference more.
inline void add_ref(std::atomic<uint32_t>& refs) { refs.fetch_add(1, std::memory_order_relaxed); }

/// Header of a piece of memory: one cache line. The data of an owning storage follows it. For small
/// data the header itself follows a TensorImpl in one block (`memory_of == this`): the block lives
/// until both are gone. An alias (flat-store member, replica parameter) has its data inside
/// `memory_of` and counts its versions in `version_of`, or itself where that is null.
struct alignas(64) StorageImpl {
  // Foreign memory; Ramet's own on a GPU; Ramet's own pinned memory (runtime/tensor/pinned.h); none
  // (runtime/memory/absent_storage.h).
  static constexpr uint64_t kForeign = 1, kOnGpu = 2, kPinned = 3, kAbsent = 4;
  std::atomic<uint32_t> refs{1};         // number of references
  std::atomic<uint32_t> own_version{0};  // number of writes
  // 0, or the ticket of the last pending use: a task (runtime/devices/devices.h) or a copy
  // (runtime/tensor/pinned.h)
  std::atomic<uint64_t> pending{0};
  void* data;             // the first byte
  uint64_t bytes : 48;    // of data
  uint64_t device : 8;    // Device::ordinal()
  uint64_t external : 4;  // not 0: `this` is an ExternalStorage of this kind
  // 1: an alias of memory that its holder may only read: TensorBase::own_memory
  uint64_t copy_on_write : 4;
  const char* writer = "nobody";  // last in-place operation: the second name in a version error
  StorageImpl* memory_of = nullptr;
  StorageImpl* version_of = nullptr;
  // given at the first request, never reused; 0: none yet. A replica's refresh compares it
  std::atomic<uint64_t> serial_{0};

  StorageImpl(size_t n, int device_ordinal)
      : data(this + 1),
        bytes(n & 0xffff'ffff'ffff),
        device(static_cast<uint64_t>(device_ordinal) & 0xff),
        external(0),
        copy_on_write(0) {}
  StorageImpl(const StorageImpl&) = delete;

  /// Uninitialised memory. Throws OutOfMemoryError.
  RAMET_API static StorageImpl* make(size_t bytes, Device device);
  /// A part of `memory` as a separate storage. Adds references for itself.
  RAMET_API static StorageImpl* alias(StorageImpl* memory, void* data, size_t bytes,
                                      StorageImpl* versions);
  /// Foreign memory. `deleter` (may be empty) is called with `data` when the last reference is
  /// gone. An Error (without a call of `deleter`) at kMaxStorageBytes or more.
  RAMET_API static StorageImpl* foreign(void* data, size_t bytes, Device device,
                                        std::function<void(void*)> deleter);

  /// The storage that owns the memory. Its aliases come and go.
  StorageImpl* root() {
    StorageImpl* s = this;
    while (s->memory_of && s->memory_of != s) s = s->memory_of;
    return s;
  }
  /// The version counter of this memory.
  std::atomic<uint32_t>& version() { return version_of ? version_of->own_version : own_version; }
  /// The operation that wrote it last: static text.
  const char* last_writer() const { return version_of ? version_of->writer : writer; }
  /// Each write through a public operation ends here: raises the version and records the operation.
  /// Tensor::data() has separate versions, so the storage that it shares gets another serial
  /// number.
  void wrote(const char* op) {
    (version_of ? version_of->writer : writer) = op;
    version().fetch_add(1, std::memory_order_relaxed);
    for (StorageImpl* s = this; s->memory_of && s->memory_of != s; s = s->memory_of)
      s->memory_of->serial_.store(0, std::memory_order_relaxed);
  }
  /// Do both hold some of the same bytes? Aliases, and foreign memory that was given twice, do.
  bool overlaps(const StorageImpl& o) const {
    if (this == &o) return true;
    const auto *a = static_cast<const char*>(data), *b = static_cast<const char*>(o.data);
    return device == o.device && a < b + o.bytes && b < a + bytes;
  }
  /// Its number, given at the first request and never to another.
  RAMET_API uint64_t serial();
  /// For pinned memory: do other storages share it?
  RAMET_API bool has_aliases();
  /// One reference less; the last one destroys it.
  void release() {
    if (drop_ref(refs)) destroy();
  }
  /// Called when the last reference is gone.
  RAMET_API void destroy();

 private:
  void leave(uint64_t ticket) noexcept;
};
static_assert(sizeof(void*) != 8 || sizeof(StorageImpl) == 64, "one cache line");

}  // namespace ramet
