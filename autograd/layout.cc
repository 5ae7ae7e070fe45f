#include "autograd/layout.h"

#include <mutex>

#include "autograd/grad_mode.h"

namespace ramet {
namespace autograd {

bool is_channels_last(const TensorBase& t) {
  if (t.dim() != 4) return false;
  const int order[] = {1, 3, 2, 0};
  int64_t expected = 1;
  for (int d : order) {
    if (t->sizes()[d] == 1) continue;
    if (t->strides()[d] != expected) return false;
    expected *= t->sizes()[d];
  }
  return true;
}

Tensor empty_channels_last(int64_t n, int64_t c, int64_t h, int64_t w, ScalarType dtype,
                           Device device) {
  const int64_t sizes[] = {n, c, h, w}, strides[] = {h * w * c, 1, w * c, c};
  Tensor t(TensorBase::empty_strided(sizes, strides, dtype, device));
  if (!t.raw_contiguous()) t->flags |= TensorImpl::kInternalLayout;
  return t;
}

Tensor empty_like_layout(const Tensor& like, ScalarType dtype) {
  if (like.raw_contiguous() || !non_overlapping_and_dense(like))
    return Tensor(TensorBase::empty(like.sizes(), dtype, like.device()));
  Tensor t(TensorBase::empty_strided(like.sizes(), like.raw_strides(), dtype, like.device()));
  t->flags |= like->flags & TensorImpl::kInternalLayout;
  return t;
}

void settle(const TensorBase& t) {
  // Two threads may look at one activation at the same time; the second finds the work done.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!t->is(TensorImpl::kInternalLayout)) return;
  NoGradGuard off;
  Tensor row_major(TensorBase::empty(t.sizes(), t.scalar_type(), t.device()));
  row_major.copy_(Tensor(t.shallow_impl()));
  // Versions go on where they were: the values are the same, and a Saved that holds this
  // implementation must find the version it knows. That also keeps the old memory until this one
  // goes: another thread may be reading it.
  Storage* seen = Storage::alias(row_major.storage_impl(), row_major->data, row_major.nbytes(),
                                 t.storage_impl());
  const_cast<TensorBase&>(t).repoint(seen, row_major->data);
}

}  // namespace autograd

void Tensor::settle_layout() const { autograd::settle(*this); }

}  // namespace ramet
