// Moves values: at once, or after the tasks that still write the operands. Private to parallel/.
//
// Note [Movements do not wait]
// A movement with ready operands runs on the calling thread. Otherwise it is queued on the
// destination's worker, after the tasks that write its operands. Its own ticket then goes into the
// pending word of every storage that it uses. In storages that it writes, the ticket makes readers
// wait; in storages that it reads, it makes a later writer wait. The caller continues at once, and
// no worker waits inside a movement (devices::post_after). So chains of movements cannot deadlock.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "autograd/tensor.h"
#include "parallel/move/counters.h"
#include "runtime/tensor/pinned.h"

namespace ramet {
namespace parallel {
namespace detail {

/// The ticket of the task that still uses t's memory; 0: none. Asynchronous copies
/// (runtime/tensor/pinned.h) do not count as tasks. Kernels are ordered after them, and if a copy
/// uses the host's memory, this function waits for it.
inline uint64_t ticket_of(const Tensor& t) {
  StorageImpl& s = *t.storage_impl();
  uint64_t ticket = s.pending.load(std::memory_order_acquire);
  for (; gpu::is_copy(ticket); ticket = s.pending.load(std::memory_order_acquire)) wait_pending(s);
  return ticket;
}
inline bool is_ready(const Tensor& t) { return ticket_of(t) == 0; }

/// Queues `work` on `device` as the Note describes. It keeps `reads` and `writes` alive. `work`
/// must not throw.
void queue(Device device, std::vector<Tensor> reads, const std::vector<Tensor>& writes,
           std::function<void()> work);

/// Runs `work` now or queues it. `work` captures by value, uses only tensors in `reads` and
/// `writes`, and does not throw.
template <class F>
void move(Device device, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes,
          F&& work) {
  bool ready = true;
  for (const Tensor& t : reads) ready = ready && is_ready(t);
  for (const Tensor& t : writes) ready = ready && is_ready(t);
  if (RAMET_LIKELY(ready)) return work();
  queue(device, reads, writes, std::forward<F>(work));
}

/// to = from as a movement on to's device, counted. Any strides; equal sizes and dtypes.
void copy(const Tensor& to, const Tensor& from);

/// Uninitialised bytes.
inline Tensor flat_memory(int64_t bytes, Device device) {
  return Tensor(TensorBase::empty({bytes}, kByte, device));
}

/// An uninitialised tensor of [sizes]. If `like` is dense, its dimensions have the memory order of
/// like's; else it is row-major. Also takes over like's internal layout with its flag.
Tensor empty_in_layout_of(const Tensor& like, IntArrayRef sizes, Device device);

/// The strides of that memory order.
std::vector<int64_t> strides_in_layout_of(const Tensor& like, IntArrayRef sizes);

/// `length` entries of dimension `dim` from `start`, over x's memory, without history or tracking.
/// Raw strides.
Tensor narrowed(const Tensor& x, int64_t dim, int64_t start, int64_t length);

/// The same tensor with a copy-on-write storage of its own (Alias::view): a write to it never
/// changes x.
Tensor shared(const Tensor& piece);

/// The devices, each with a definite index; Errors for devices that do not exist.
std::vector<Device> resolved(ArrayRef<Device> devices);

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
