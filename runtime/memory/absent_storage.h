// A storage without memory: of a tensor whose values are elsewhere just now, so that whoever asks
// for them is noticed. Parameters of sharded modules have it between their uses.
#pragma once
#include <functional>

#include "runtime/memory/storage_impl.h"

namespace ramet {

/// `touched` is called each time somebody asks for the values, by TensorBase::ptr(): it points the
/// tensors at their values (TensorBase::repoint), or throws. The versions are counted as anywhere.
RAMET_API StorageImpl* absent_storage(Device device, std::function<void()> touched);

namespace detail {
// Such a storage always has a pending ticket, so that ptr() looks.
void touch_absent(StorageImpl& storage);
void destroy_absent(StorageImpl& storage);
}  // namespace detail

}  // namespace ramet
