// A storage without memory, for a tensor with values that are elsewhere at the moment. An access to
// the values is detected. Parameters of sharded modules have it between their uses.
#pragma once
#include <functional>

#include "runtime/memory/storage_impl.h"

namespace ramet {

/// TensorBase::ptr() calls `touched` at each access to the values. `touched` points the tensors at
/// their values (TensorBase::repoint), or throws. Versions are counted as for any storage.
RAMET_API StorageImpl* absent_storage(Device device, std::function<void()> touched);

namespace detail {
// Such a storage always has a pending ticket, so that ptr() takes its slow path.
void touch_absent(StorageImpl& storage);
void destroy_absent(StorageImpl& storage);
}  // namespace detail

}  // namespace ramet
