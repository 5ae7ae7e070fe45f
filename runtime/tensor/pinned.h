// Pinned host memory, which GPUs read and write by themselves, and copies from and to it that do
// not block the host.
//
// Note [Copies that do not block the host]
// Between pinned memory and a GPU, a `non_blocking` copy returns when it is queued on the device's
// copy stream. It runs concurrently with kernels that do not use its memory:
//
// - It begins after the kernels that were queued before it. A copy into memory that was allocated
//   for it begins only after the kernels that used this memory for an earlier owner.
// - It leaves a ticket in the pending words of both storages (Note [Pending storages] in
//   runtime/devices/devices.h). The next call that asks for the GPU's memory (TensorBase::ptr)
//   orders the compute stream after the copy, and the host does not wait. A call that asks for the
//   host's memory waits. A raw pointer that was taken earlier is valid after synchronize() or an
//   Event.
// - Other storages may share the GPU's memory, and their pending words hold no ticket. Then the
//   compute stream is at once ordered after the copy. If other storages share the host's memory
//   (Tensor::data), the host waits for the copy.
//
// Pinned memory that is released is not given out again before the copies from and to it are done.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/tensor/tensor_base.h"

namespace ramet {
namespace gpu {

/// Tickets of such copies have this bit, tickets of workers do not.
inline constexpr uint64_t kCopyTicket = uint64_t{1} << 63;
inline bool is_copy(uint64_t ticket) { return (ticket & kCopyTicket) != 0; }

/// The part of it that //runtime/cuda implements. Thread safety: all of it.
class RAMET_API HostCopies {
 public:
  /// Pinned memory, aligned to 64 bytes. Throws OutOfMemoryError.
  virtual void* allocate(size_t bytes) = 0;
  /// May be called while a copy still uses the memory.
  virtual void free(void* memory) noexcept = 0;
  /// Queues a copy; one side is a GPU's memory, the other was allocated here. `fresh`: nothing has
  /// used the target since it was allocated. Returns the ticket.
  virtual uint64_t copy(void* to, Device to_device, const void* from, Device from_device,
                        size_t bytes, bool fresh) = 0;
  /// Orders kernels of the device that are queued from now on after that copy.
  virtual void order(uint64_t ticket) = 0;
  /// Waits for all copies from and to the pinned memory that holds this address. Then throws faults
  /// that kernels before copies into it reported. True where there was something to wait for.
  virtual bool wait(const void* memory) = 0;
  /// Gives unused memory back.
  virtual void empty_cache() = 0;

 protected:
  ~HostCopies() = default;
};

/// Weak, as linked() is: null without //runtime/cuda.
[[gnu::weak]] HostCopies* host_copies();

/// to = from, both dense in the same way and of one dtype. Queues the copy if one is on a GPU and
/// the other in pinned memory. Otherwise false, and nothing is done. Not while a step is captured.
RAMET_API bool copy_later(const TensorBase& to, const TensorBase& from, bool fresh);
/// Does the work of wait_pending() where the pending word holds a copy's ticket. True where the
/// host had to wait.
RAMET_API bool wait_copy(StorageImpl& storage, uint64_t ticket);

}  // namespace gpu

/// Is the memory pinned?
RAMET_API bool is_pinned(const TensorBase& t);
/// Uninitialised pinned memory with the sizes, strides, dtype and CPU device of `like`. If the
/// program has no GPU, pinned memory has no use and `like` itself is returned. memory_stats() does
/// not count pinned memory. Throws OutOfMemoryError; an Error while a step is captured.
RAMET_API TensorBase empty_pinned(const TensorBase& like);

}  // namespace ramet
