// What the fronts of operations share: checks, promotion, the adjoint of broadcasting. Private to
// autograd/ops.
#pragma once
#include "autograd/grad_mode.h"
#include "autograd/graph/inplace.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/node.h"
#include "autograd/ops/pointwise/promotion.h"

namespace ramet {
namespace autograd {

[[noreturn]] RAMET_API void refuse_undefined(const char* op);
inline void check_defined(const char* op, const Tensor& x) {
  if (RAMET_UNLIKELY(!x.defined())) refuse_undefined(op);
}
/// x, of which strides may be read: row-major if its layout was internal.
inline const Tensor& settled(const char* op, const Tensor& x) {
  check_defined(op, x);
  if (RAMET_UNLIKELY(x->is(TensorImpl::kInternalLayout))) settle(x);
  return x;
}

/// Where x's elements lie; null for an operand that is not there.
inline void* pointer(const Tensor& x) { return x.defined() ? x.ptr() : nullptr; }

/// Memory that a kernel works in; undefined, of which pointer() is null, where it needs none.
inline Tensor scratch(int64_t bytes, Device device) {
  return bytes > 0 ? Tensor(TensorBase::empty(bytes, kByte, device)) : Tensor();
}

/// What an operation has made in no_grad mode, whose last step may be a look: nobody's view.
inline Tensor own(Tensor made) { return made->base ? made.shallow() : std::move(made); }

/// Types of 16 bits, which compute in float.
inline bool is_narrow(ScalarType t) { return t == kHalf || t == kBFloat16; }
/// A number as a value of 16 bits where `dtype` is one, else as it is. Where a result jumps at a
/// number (comparisons, bounds, remainders) both sides are rounded to the common dtype first, as by
/// LibTorch: half(0.1) == 0.1.
inline Scalar rounded(const Scalar& v, ScalarType dtype) {
  if (dtype == kHalf) return static_cast<float>(Half(static_cast<float>(v.toDouble())));
  if (dtype == kBFloat16) return static_cast<float>(BFloat16(static_cast<float>(v.toDouble())));
  return v;
}
/// Are operands of these types cast to `dtype`, the common one, before anything is computed?
inline bool cast_first(ScalarType dtype, ScalarType a, ScalarType b) {
  return RAMET_UNLIKELY(is_narrow(dtype)) && (a != dtype || b != dtype);
}

/// A 0-dim tensor on cpu:0: what LibTorch lets meet tensors of other devices. Other CPU devices
/// count as devices.
inline bool is_host_number(const Tensor& x) {
  return x.dim() == 0 && x.device() == Device(kCPU, 0);
}
[[noreturn]] RAMET_API void refuse_devices(const char* op, const Tensor& a, const Tensor& b,
                                           const char* name);
[[noreturn]] RAMET_API void refuse_gradient(const char* op, const char* name);
/// An Error naming both unless they are on one device; `name` says what b is.
inline void check_same_device(const char* op, const Tensor& a, const Tensor& b,
                              const char* name = "") {
  if (RAMET_UNLIKELY(a->device != b->device)) refuse_devices(op, a, b, name);
}
/// An Error where x, for which the operation has no derivative, wants a gradient, which would be
/// lost; `name` says what x is. As LibTorch.
inline void check_constant(const char* op, const char* name, const Tensor& x) {
  if (RAMET_UNLIKELY(x.defined() && recording(x))) refuse_gradient(op, name);
}
/// `out` with LibTorch's history of what has no derivative for its inputs: "NotImplemented", an
/// Error where a backward comes to it.
RAMET_API Tensor without_derivative(const char* op, ArrayRef<Tensor> inputs, Tensor out);
/// `out` with LibTorch's history of what was drawn: gradients of zeros, however `inputs` (which
/// `out` was broadcast from) looked.
RAMET_API Tensor drawn_from(const char* node, ArrayRef<Tensor> inputs, Tensor out);
/// The device an operation on a and b runs on: theirs, or the other's where one is a number on the
/// host. An Error naming both otherwise.
RAMET_API Device common_device(const char* op, const Tensor& a, const Tensor& b);

/// As autograd/ops/pointwise/promotion.h, of three, and of a list.
RAMET_API ScalarType result_type(const Tensor& a, const Tensor& b, const Tensor& c);
RAMET_API ScalarType result_type(TensorList list);
using ramet::result_type;

/// Sum of x over the dimensions in which it was broadcast from `sizes`. Differentiable; x itself
/// where nothing was.
RAMET_API Tensor sum_to(const Tensor& x, IntArrayRef sizes);

/// What a backward function keeps of an input whose values it does not need.
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
  /// A gradient of the broadcast, promoted result as one of this input: summed, cast and moved
  /// where they differ.
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
