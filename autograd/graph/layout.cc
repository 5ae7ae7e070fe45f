#include "autograd/graph/layout.h"

#include "autograd/ops/make/copy.h"

namespace ramet {
namespace autograd {

bool is_channels_last(const TensorBase& t) {
  if (t.dim() != 4) return false;
  if (t->is(TensorImpl::kInternalLayout)) return true;
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
  // Sizes are checked below: until then a product may wrap.
  const auto times = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  };
  const int64_t sizes[] = {n, c, h, w}, strides[] = {times(times(h, w), c), 1, times(w, c), c};
  Tensor t(TensorBase::empty_strided(sizes, strides, dtype, device));
  if (!t.raw_contiguous()) t->flags |= TensorImpl::kInternalLayout;
  return t;
}

Tensor empty_like_layout(const Tensor& like, ScalarType dtype) {
  if (like->is(TensorImpl::kInternalLayout)) {
    const IntArrayRef s = like.sizes();
    return empty_channels_last(s[0], s[1], s[2], s[3], dtype, like.device());
  }
  if (like.raw_contiguous() || !non_overlapping_and_dense(like))
    return Tensor(TensorBase::empty(like.sizes(), dtype, like.device()));
  return Tensor(TensorBase::empty_strided(like.sizes(), like.raw_strides(), dtype, like.device()));
}

void settle(const TensorBase& t) {
  if (!t->is(TensorImpl::kInternalLayout)) return;
  const TensorBase row_major = TensorBase::empty(t.sizes(), t.scalar_type(), t.device());
  copy_values(row_major, t);
  t.settle(row_major);
}

}  // namespace autograd

void Tensor::settle_layout() const { autograd::settle(*this); }

}  // namespace ramet
