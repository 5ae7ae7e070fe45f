#include "runtime/memory/storage_impl.h"

#include <new>
#include <utility>

#include "runtime/base/checked_size.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/gpu.h"
#include "runtime/memory/absent_storage.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/memory_observer.h"
#include "runtime/memory/pool.h"
#include "runtime/tensor/pinned.h"
#include "runtime/tensor/tensor_base.h"

namespace ramet {
namespace {

struct ExternalStorage : StorageImpl {
  std::function<void(void*)> deleter;
  std::atomic<uint32_t> aliases{0};  // of pinned memory
  ExternalStorage(void* p, size_t n, Device d, std::function<void(void*)> f)
      : StorageImpl(n, d.ordinal()), deleter(std::move(f)) {
    data = p;
    external = kForeign;
  }
};

std::atomic<uint32_t>* aliases_of(StorageImpl* memory) {
  StorageImpl* const root = memory->root();
  return root->external == StorageImpl::kPinned ? &static_cast<ExternalStorage*>(root)->aliases
                                                : nullptr;
}

[[gnu::cold, gnu::noinline]] void tell(const StorageImpl& s, bool made) {
  detail::tell_memory({s.data, static_cast<size_t>(s.bytes),
                       Device::from_ordinal(static_cast<int>(s.device)), made});
}

void check_bytes(size_t bytes) {
  RAMET_CHECK(bytes < static_cast<size_t>(kMaxStorageBytes), "allocate", "got a request of ", bytes,
              " bytes, expected less than 2^", kMaxStorageBits);
}

// The header is in host memory; the memory goes back to the device that it came from.
[[gnu::cold]] StorageImpl* make_on_gpu(size_t bytes, Device device) {
  gpu::Library& gpus = gpu::required("allocate", device);
  void* memory = gpus.allocate(bytes, device.index());
  try {
    StorageImpl* s = StorageImpl::foreign(
        memory, bytes, device,
        [&gpus, bytes, k = device.index()](void* p) { gpus.free(p, bytes, k); });
    s->external = StorageImpl::kOnGpu;
    if (memory_observed()) tell(*s, true);
    return s;
  } catch (...) {
    gpus.free(memory, bytes, device.index());
    throw;
  }
}

}  // namespace

StorageImpl* StorageImpl::make(size_t bytes, Device device) {
  check_bytes(bytes);
  if (RAMET_UNLIKELY(!device.is_cpu())) return make_on_gpu(bytes, device);
  void* p = detail::allocate_block(sizeof(StorageImpl) + bytes, bytes, device.ordinal());
  return new (p) StorageImpl(bytes, device.ordinal());
}

StorageImpl* StorageImpl::alias(StorageImpl* memory, void* data, size_t bytes,
                                StorageImpl* versions) {
  // The alias's own pending word will not show a copy.
  if (const uint64_t ticket = memory->pending.load(std::memory_order_acquire);
      RAMET_UNLIKELY(gpu::is_copy(ticket)))
    gpu::wait_copy(*memory, ticket);
  auto* s = new (pool::allocate(sizeof(StorageImpl)))
      StorageImpl(bytes, static_cast<int>(memory->device));
  s->data = data;
  s->memory_of = memory;
  add_ref(memory->refs);
  if (auto* const aliases = aliases_of(memory)) ++*aliases;
  if (versions) {
    s->version_of = versions;
    add_ref(versions->refs);
  }
  return s;
}

StorageImpl* StorageImpl::foreign(void* data, size_t bytes, Device device,
                                  std::function<void(void*)> deleter) {
  check_bytes(bytes);
  return new (pool::allocate(sizeof(ExternalStorage)))
      ExternalStorage(data, bytes, device, std::move(deleter));
}

// Waits for a pending use of the memory. Pinned memory itself knows which copies use it.
void StorageImpl::leave(uint64_t ticket) noexcept {
  if (gpu::is_copy(ticket) && external == kPinned) return;
  try {
    gpu::is_copy(ticket) ? (void)gpu::wait_copy(*this, ticket) : wait_pending(*this);
  } catch (...) {}  // a lost device, or a task that threw: a wait for it reports that
}

void StorageImpl::destroy() {
  if (RAMET_UNLIKELY(external == kAbsent)) return detail::destroy_absent(*this);
  if (const uint64_t ticket = pending.load(std::memory_order_acquire)) leave(ticket);
  // the block starts with a TensorImpl
  if (memory_of == this) {
    return pool::deallocate(reinterpret_cast<TensorImpl*>(this) - 1,
                            sizeof(TensorImpl) + sizeof(StorageImpl) + bytes);
  }
  if (version_of) version_of->release();
  if (external) {
    if (external == kOnGpu && memory_observed()) tell(*this, false);
    auto* self = static_cast<ExternalStorage*>(this);
    auto deleter = std::move(self->deleter);
    void* memory = data;
    self->~ExternalStorage();
    pool::deallocate(self, sizeof(ExternalStorage));
    if (deleter) deleter(memory);
    return;
  }
  if (memory_of) {
    if (auto* const aliases = aliases_of(memory_of)) --*aliases;
    memory_of->release();
    return pool::deallocate(this, sizeof(StorageImpl));
  }
  detail::free_block(this, sizeof(StorageImpl) + bytes, bytes, static_cast<int>(device));
}

bool StorageImpl::has_aliases() {
  const auto* const aliases = aliases_of(this);
  return memory_of || (aliases && *aliases > 0);
}

uint64_t StorageImpl::serial() {
  static std::atomic<uint64_t> last{0};
  uint64_t mine = serial_.load(std::memory_order_relaxed);
  if (mine) return mine;
  const uint64_t fresh = ++last;
  return serial_.compare_exchange_strong(mine, fresh) ? fresh : mine;
}

}  // namespace ramet
