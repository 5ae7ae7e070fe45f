// How values get from one place to another: at once, or behind operands that are still being
// written. Private to parallel/.
//
// Note [Movements do not wait]
// A movement whose operands are ready runs on the calling thread. Otherwise it is queued on the
// destination's worker behind the tasks that write its operands, and its own ticket goes into the
// pending word of every storage it touches: into those it writes, so that readers wait for it, and
// into those it reads, so that a later writer does. The caller goes on at once and no worker waits
// inside a movement (devices::post_after), so chains of movements cannot deadlock.
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

/// The ticket of the task that still uses t's memory; 0: none. Copies that nobody waits for
/// (runtime/tensor/pinned.h) are none: kernels are put behind them, and where they use the host's
/// memory this waits.
inline uint64_t ticket_of(const Tensor& t) {
  StorageImpl& s = *t.storage_impl();
  uint64_t ticket = s.pending.load(std::memory_order_acquire);
  for (; gpu::is_copy(ticket); ticket = s.pending.load(std::memory_order_acquire)) wait_pending(s);
  return ticket;
}
inline bool is_ready(const Tensor& t) { return ticket_of(t) == 0; }

/// Queues `work` on `device` as the Note says. It keeps `reads` and `writes` alive; it must not
/// throw.
void queue(Device device, std::vector<Tensor> reads, const std::vector<Tensor>& writes,
           std::function<void()> work);

/// Runs `work` now or queues it. `work` captures by value, uses only tensors named in `reads` and
/// `writes`, does not throw.
template <class F>
void move(Device device, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes,
          F&& work) {
  bool ready = true;
  for (const Tensor& t : reads) ready = ready && is_ready(t);
  for (const Tensor& t : writes) ready = ready && is_ready(t);
  if (RAMET_LIKELY(ready)) return work();
  queue(device, reads, writes, std::forward<F>(work));
}

/// to = from as a movement on to's device, counted: any strides, equal sizes and dtypes.
void copy(const Tensor& to, const Tensor& from);

/// Uninitialised bytes.
inline Tensor flat_memory(int64_t bytes, Device device) {
  return Tensor(TensorBase::empty({bytes}, kByte, device));
}

/// Uninitialised [sizes] whose dimensions lie in memory in the order of like's, where `like` is
/// dense; else row-major. Takes over like's internal layout with its flag.
Tensor empty_in_layout_of(const Tensor& like, IntArrayRef sizes, Device device);

/// Strides of that memory order.
std::vector<int64_t> strides_in_layout_of(const Tensor& like, IntArrayRef sizes);

/// `length` entries of dimension `dim` from `start`, over x's memory: no history, no tracking. Raw
/// strides.
Tensor narrowed(const Tensor& x, int64_t dim, int64_t start, int64_t length);

/// The same tensor behind a copy-on-write storage of its own (Alias::view): a write to it never
/// reaches x.
Tensor shared(const Tensor& piece);

/// Each device with a definite index; Errors for devices that do not exist.
std::vector<Device> resolved(ArrayRef<Device> devices);

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
