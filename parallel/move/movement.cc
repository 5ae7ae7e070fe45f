#include "parallel/move/movement_internal.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "autograd/graph/layout.h"
#include "autograd/ops/make/copy.h"
#include "runtime/base/checked_size.h"
#include "runtime/devices/devices.h"

namespace ramet {
namespace parallel {
namespace detail {

void queue(Device device, std::vector<Tensor> reads, const std::vector<Tensor>& writes,
           std::function<void()> work) {
  // Queueing is rare. It is serialised, so that two movements of one operand see each other's
  // tickets.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::vector<uint64_t> after;
  reads.insert(reads.end(), writes.begin(), writes.end());
  for (const Tensor& t : reads)
    if (const uint64_t ticket = ticket_of(t)) after.push_back(ticket);
  const uint64_t ticket =
      devices::post_after(device, std::move(after), [keep = reads, work = std::move(work)] {
        const devices::OperandsReady ready;
        work();
      });
  for (const Tensor& t : reads) t.storage_impl()->pending.store(ticket, std::memory_order_release);
  count(Count::kQueued);
}

void copy(const Tensor& to, const Tensor& from) {
  if (to.numel() == 0) return;
  count(Count::kTransfers);
  count(Count::kLaunches);
  count_bytes(from->device, to->device, to.nbytes());
  const auto task = [](const Tensor& t) {
    const uint64_t ticket = t.storage_impl()->pending.load(std::memory_order_acquire);
    return ticket != 0 && !gpu::is_copy(ticket);
  };
  // The queued copy may have to wait, and its ticket stands for the whole movement.
  if (!task(to) && !task(from)) return autograd::copy_values_later(to, from, /*fresh=*/false);
  move(to.device(), {from}, {to}, [to, from] { autograd::copy_values(to, from); });
}

std::vector<int64_t> strides_in_layout_of(const Tensor& given, IntArrayRef sizes) {
  const TensorBase like = given.steady();
  if (like.raw_contiguous() || !non_overlapping_and_dense(like)) return contiguous_strides(sizes);
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const IntArrayRef steps = like.raw_strides();
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return steps[a] > steps[b]; });
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride = stepped_stride(stride, std::max<int64_t>(sizes[order[i]], 1));  // checked together
                                                                             // with the sizes
  }
  return strides;
}

Tensor empty_in_layout_of(const Tensor& like, IntArrayRef sizes, Device device) {
  // Read before the strides: `like` may be settled between the two, and is contiguous then.
  const bool internal = like->is(TensorImpl::kInternalLayout);
  Tensor t(TensorBase::empty_strided(sizes, strides_in_layout_of(like, sizes), like.scalar_type(),
                                     device));
  if (internal && !t.raw_contiguous()) t->set(TensorImpl::kInternalLayout, true);
  return t;
}

Tensor narrowed(const Tensor& given, int64_t dim, int64_t start, int64_t length) {
  const TensorBase x = given.steady();
  std::vector<int64_t> sizes = x.sizes().vec();
  const auto d = static_cast<size_t>(dim);
  sizes[d] = length;
  return Tensor(x.view_impl(sizes, x.raw_strides(), x.numel() ? start * x.raw_strides()[d] : 0));
}

Tensor shared(const Tensor& piece) {
  int64_t extent = piece.numel() ? 1 : 0;
  for (size_t d = 0; d < piece.sizes().size() && extent; ++d)
    extent += (piece.sizes()[d] - 1) * piece.raw_strides()[d];
  StorageImpl* own = piece.storage_impl();
  Tensor t = piece.shallow();
  StorageImpl* alias =
      StorageImpl::alias(own, piece->data, static_cast<size_t>(extent) * piece.element_size(),
                         own->version_of ? own->version_of : own);
  alias->copy_on_write = 1;
  alias->pending.store(own->pending.load());
  t->storage->release();
  t->storage = alias;
  return t;
}

std::vector<Device> resolved(ArrayRef<Device> devices) {
  std::vector<Device> out;
  for (Device d : devices) out.push_back(resolve(d));
  return out;
}

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
