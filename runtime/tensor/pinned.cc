#include "runtime/tensor/pinned.h"

#include "runtime/capture/capture.h"
#include "runtime/tensor/storage_ref.h"

namespace ramet {

namespace {

// Bytes from the first element to the end of the last one.
size_t extent_of(const TensorBase& t) {
  if (t.numel() == 0) return 0;
  int64_t last = 0;
  const IntArrayRef sizes = t.sizes(), strides = t.raw_strides();
  for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  return static_cast<size_t>(last + 1) * t.element_size();
}

}  // namespace

bool is_pinned(const TensorBase& t) {
  return t.is_cpu() && t.storage_impl()->root()->external == StorageImpl::kPinned;
}

TensorBase empty_pinned(const TensorBase& like) {
  RAMET_CHECK(like.is_cpu(), "pin_memory", "only dense CPU tensors can be pinned: got ",
              describe(like));
  if (!cuda::is_available()) return like;
  capture::refuse("pin_memory", "pinned memory would be allocated");
  gpu::HostCopies* const copies = gpu::host_copies();
  const size_t bytes = extent_of(like);
  void* const memory = copies->allocate(bytes);
  StorageImpl* made = nullptr;
  try {
    made =
        StorageImpl::foreign(memory, bytes, like.device(), [copies](void* p) { copies->free(p); });
  } catch (...) {
    copies->free(memory);
    throw;
  }
  made->external = StorageImpl::kPinned;
  const StorageRef storage(made);
  return TensorBase::over(made, 0, like.sizes(), like.raw_strides(), like.scalar_type());
}

bool gpu::copy_later(const TensorBase& to, const TensorBase& from, bool fresh) {
  const bool in = to.is_cuda() && from.is_cpu(), out = to.is_cpu() && from.is_cuda();
  if (!(in && is_pinned(from)) && !(out && is_pinned(to))) return false;
  const TensorBase &here = in ? from : to, &there = in ? to : from;
  StorageImpl &host = *here.storage_impl(), &device = *there.storage_impl();
  if (host.has_aliases()) return false;  // the aliases' words would hold no ticket
  // The library orders copies of the host's memory, without a wait.
  const uint64_t before = host.pending.load(std::memory_order_acquire);
  if (before && !is_copy(before)) wait_pending(host);
  (void)there.ptr();
  const uint64_t ticket =
      host_copies()->copy(to->data, to.device(), from->data, from.device(), to.nbytes(), fresh);
  host.pending.store(ticket, std::memory_order_release);
  if (!device.memory_of && device.refs.load(std::memory_order_acquire) == 1)
    device.pending.store(ticket, std::memory_order_release);
  else host_copies()->order(ticket);
  return true;
}

bool gpu::wait_copy(StorageImpl& storage, uint64_t ticket) {
  bool waited = false;
  if (Device::from_ordinal(static_cast<int>(storage.device)).is_cpu())
    waited = host_copies()->wait(storage.data);
  else host_copies()->order(ticket);
  uint64_t expected = ticket;  // a newer one stays
  storage.pending.compare_exchange_strong(expected, 0);
  return waited;
}

}  // namespace ramet
