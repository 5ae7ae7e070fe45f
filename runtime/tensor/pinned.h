// Pinned host memory, which GPUs read and write by themselves, and copies from and to it that
// nobody waits for.
//
// Note [Copies that nobody waits for]
// Between pinned memory and a GPU `non_blocking` returns when the copy is queued on the device's
// copy stream. It runs beside kernels that have nothing to do with its memory:
//
// - It begins after the kernels that were queued before it; into memory that was allocated for it,
//   only after those that used this memory for an earlier owner.
// - It leaves a ticket in the pending words of both storages (Note [Pending storages] in
//   runtime/devices/devices.h). Whoever next asks for the GPU's memory (TensorBase::ptr) puts the
//   compute stream behind the copy; the host does not wait. Whoever asks for the host's waits. A
//   raw pointer that was taken earlier is good after synchronize() or an Event.
// - Where other storages may see the GPU's memory, whose words say nothing, the compute stream is
//   put behind the copy at once. Where others see the host's (Tensor::data), the copy is waited
//   for.
//
// Pinned memory that is released goes to nobody else before the copies from and to it are done.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/tensor/tensor_base.h"

namespace ramet {
namespace gpu {

/// Tickets of such copies have this bit, tickets of workers do not.
inline constexpr uint64_t kCopyTicket = uint64_t{1} << 63;
inline bool is_copy(uint64_t ticket) { return (ticket & kCopyTicket) != 0; }

/// What //runtime/cuda does of it. Thread safety: all of it.
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
  /// The device's kernels that are queued from now on come behind that copy.
  virtual void order(uint64_t ticket) = 0;
  /// Waits for all copies from and to the pinned memory that holds this address, then throws what
  /// kernels before copies into it reported. True where there was something to wait for.
  virtual bool wait(const void* memory) = 0;
  /// Gives back what nobody uses.
  virtual void empty_cache() = 0;

 protected:
  ~HostCopies() = default;
};

/// Weak, as linked() is: null without //runtime/cuda.
[[gnu::weak]] HostCopies* host_copies();

/// to = from, dense alike and of one dtype, queued where one is on a GPU and the other in pinned
/// memory; false, and nothing done, elsewhere. Not while a step is captured.
RAMET_API bool copy_later(const TensorBase& to, const TensorBase& from, bool fresh);
/// What wait_pending() does where the pending word holds a copy's ticket. True where the host had
/// to wait.
RAMET_API bool wait_copy(StorageImpl& storage, uint64_t ticket);

}  // namespace gpu

/// Is the memory pinned?
RAMET_API bool is_pinned(const TensorBase& t);
/// Uninitialised, with the sizes, strides, dtype and CPU device of `like`, in pinned memory; `like`
/// itself where the program has no GPU, since there is nobody to pin memory for. Pinned memory is
/// no part of memory_stats(). Throws OutOfMemoryError; an Error while a step is captured.
RAMET_API TensorBase empty_pinned(const TensorBase& like);

}  // namespace ramet
