#include "parallel/replicas/buffer_page_internal.h"

#include "autograd/graph/node.h"
#include "parallel/move/movement_internal.h"
#include "runtime/capture/capture.h"

namespace ramet {
namespace parallel {
namespace detail {

void keep_pages(const Tensor& buffer) {
  if (buffer.defined()) autograd::grad_accumulator(buffer.impl());
}

Tensor fresh_page(const Tensor& buffer, uint32_t holders) {
  const StorageImpl& old = *buffer.storage_impl();
  if (capture::active() || old.refs.load(std::memory_order_acquire) <= holders) return {};
  if ((old.memory_of && old.memory_of != &old) || old.version_of ||
      old.external == StorageImpl::kForeign || buffer->data != old.data ||
      buffer.nbytes() != old.bytes)
    return {};
  const Tensor page = empty_in_layout_of(buffer, buffer.sizes(), buffer.device());
  // A graph that kept the tensor itself before keep_pages() then finds another version.
  page.storage_impl()->version().store(buffer.version(), std::memory_order_relaxed);
  return page;
}

void turn_page(const Tensor& buffer, const Tensor& page) {
  if (!page.defined()) return;
  buffer.set_data(page);
  keep_pages(buffer);
}

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
