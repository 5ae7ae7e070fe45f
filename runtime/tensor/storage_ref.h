// A storage held for the length of a scope, and tensors over storages that were just made.
#pragma once
#include <memory>

#include "runtime/memory/storage_impl.h"
#include "runtime/tensor/tensor_base.h"

namespace ramet {

struct ReleaseStorage {
  void operator()(StorageImpl* s) const { s->release(); }
};
/// One reference, released at the end of the scope, also by an exception.
using StorageRef = std::unique_ptr<StorageImpl, ReleaseStorage>;

/// A tensor inside `flat`, `offset_bytes` from its start, with a separate storage. Versions are
/// counted in `versions`, or in the member itself.
inline TensorBase member_of(const TensorBase& flat, int64_t offset_bytes, IntArrayRef sizes,
                            IntArrayRef strides, ScalarType dtype,
                            StorageImpl* versions = nullptr) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  const StorageRef alias(StorageImpl::alias(flat.storage_impl(),
                                            static_cast<char*>(flat->data) + offset_bytes,
                                            static_cast<size_t>(n) * item_size(dtype), versions));
  return TensorBase::over(alias.get(), 0, sizes, strides, dtype);
}

}  // namespace ramet
