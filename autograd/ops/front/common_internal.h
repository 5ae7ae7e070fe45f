// Code shared by the fronts of operations: checks, promotion, the adjoint of broadcasting. Private
// to autograd/ops.
#pragma once
#include "autograd/grad_mode.h"
#include "autograd/graph/inplace.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/node.h"
#include "autograd/ops/front/autocast_internal.h"
#include "autograd/ops/pointwise/promotion.h"

namespace ramet {
namespace autograd {

[[noreturn]] RAMET_API void refuse_undefined(const char* op);
inline void check_defined(const char* op, const Tensor& x) {
  if (RAMET_UNLIKELY(!x.defined())) refuse_undefined(op);
}
/// x with strides that may be read: made row-major first where its layout is internal.
inline const Tensor& settled(const char* op, const Tensor& x) {
  check_defined(op, x);
  if (RAMET_UNLIKELY(x->is(TensorImpl::kInternalLayout))) settle(x);
  return x;
}

/// The address of x's elements; null for an undefined operand.
inline void* pointer(const Tensor& x) { return x.defined() ? x.ptr() : nullptr; }

/// Scratch memory for a kernel. Undefined, with a null pointer(), where the kernel needs none.
inline Tensor scratch(int64_t bytes, Device device) {
  return bytes > 0 ? Tensor(TensorBase::empty(bytes, kByte, device)) : Tensor();
}

/// The result of an operation in no_grad mode. The operation may end with a view; its result is no
/// view.
inline Tensor own(Tensor made) { return made->base ? made.shallow() : std::move(made); }

/// Is it a 16-bit floating-point type? These compute in float.
inline bool is_narrow(ScalarType t) { return t == kHalf || t == kBFloat16; }
/// The number rounded to 16 bits where `dtype` has 16 bits, else unchanged. Some results jump at a
/// number (comparisons, bounds, remainders). There both sides are first rounded to the common
/// dtype, as in LibTorch: half(0.1) == 0.1.
inline Scalar rounded(const Scalar& v, ScalarType dtype) {
  if (dtype == kHalf) return static_cast<float>(Half(static_cast<float>(v.toDouble())));
  if (dtype == kBFloat16) return static_cast<float>(BFloat16(static_cast<float>(v.toDouble())));
  return v;
}
/// Does the operation first cast operands of these types to the common `dtype`, and then compute?
inline bool cast_first(ScalarType dtype, ScalarType a, ScalarType b) {
  return RAMET_UNLIKELY(is_narrow(dtype)) && (a != dtype || b != dtype);
}

/// Is x a 0-dim tensor on cpu:0? LibTorch combines only those with tensors of other devices. The
/// other CPU devices count as devices here.
inline bool is_host_number(const Tensor& x) {
  return x.dim() == 0 && x.device() == Device(kCPU, 0);
}
[[noreturn]] RAMET_API void refuse_devices(const char* op, const Tensor& a, const Tensor& b,
                                           const char* name);
[[noreturn]] RAMET_API void refuse_gradient(const char* op, const char* name);
/// An Error that names both unless they are on one device; `name` says what b is.
inline void check_same_device(const char* op, const Tensor& a, const Tensor& b,
                              const char* name = "") {
  if (RAMET_UNLIKELY(a->device != b->device)) refuse_devices(op, a, b, name);
}
/// An Error where x wants a gradient. The operation has no derivative for x, so the gradient would
/// be lost. `name` says what x is. As LibTorch.
inline void check_constant(const char* op, const char* name, const Tensor& x) {
  if (RAMET_UNLIKELY(x.defined() && recording(x))) refuse_gradient(op, name);
}
/// `out` with LibTorch's history of a result without derivative: the node "NotImplemented", an
/// Error where a backward reaches it.
RAMET_API Tensor without_derivative(const char* op, ArrayRef<Tensor> inputs, Tensor out);
/// `out` with LibTorch's history of a random draw: gradients of zeros. `inputs`: the tensors that
/// `out` was broadcast from.
RAMET_API Tensor drawn_from(const char* node, ArrayRef<Tensor> inputs, Tensor out);
/// The device on which an operation on a and b runs: their common one. Where one of them is a
/// number on the host, it is the other's device. Otherwise an Error that names both.
RAMET_API Device common_device(const char* op, const Tensor& a, const Tensor& b);

/// As in autograd/ops/pointwise/promotion.h, but for three tensors or a list of them.
RAMET_API ScalarType result_type(const Tensor& a, const Tensor& b, const Tensor& c);
RAMET_API ScalarType result_type(TensorList list);
using ramet::result_type;

/// The sum of x over the dimensions in which it was broadcast from `sizes`; x itself where it was
/// not broadcast. Differentiable.
RAMET_API Tensor sum_to(const Tensor& x, IntArrayRef sizes);

/// The data that a backward function keeps of an input if it does not need the input's values.
struct RAMET_API Meta {
  int64_t sizes[kInlineRank];
  std::vector<int64_t> long_sizes;  // ranks above kInlineRank
  uint8_t rank;
  ScalarType dtype;
  Device device;
  explicit Meta(const Tensor& t) : rank(t->rank), dtype(t.scalar_type()), device(t.device()) {
    if (RAMET_UNLIKELY(rank > kInlineRank)) {
      long_sizes = t.sizes().vec();
      return;
    }
    for (int i = 0; i < rank; ++i) sizes[i] = t->sizes()[i];
  }
  IntArrayRef shape() const {
    return rank > kInlineRank ? IntArrayRef(long_sizes) : IntArrayRef(sizes, rank);
  }
  /// Turns a gradient of the broadcast, promoted result into a gradient of this input. Sums it,
  /// casts it and moves it, where they differ.
  Tensor reduce(const Tensor& g) const {
    if (RAMET_LIKELY(g.scalar_type() == dtype && g.sizes() == shape() && g.device() == device))
      return g;
    return reduce_slow(g);
  }

 private:
  Tensor reduce_slow(const Tensor& g) const;
};

}  // namespace autograd
}  // namespace ramet
