// How fronts run pointwise kernels: promotion, broadcasting, layouts, in-place and out forms.
// Private to autograd/ops.
#pragma once
#include <optional>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view.h"
#include "kernels/pointwise/pointwise.h"

namespace ramet {
namespace autograd {

/// The two entries of one operation: POINTWISE(add).
struct PointwiseKernel {
  const kernels::Kernel<kernels::PointwiseArgs>& dense;
  const kernels::Kernel<kernels::PointwiseStridedArgs>& strided;
};
#define RAMET_POINTWISE(name) \
  (::ramet::autograd::PointwiseKernel{::ramet::kernels::name, ::ramet::kernels::name##_strided})

/// A front's knowledge of a row of kernels/pointwise/rows: its kernels, and the names of its forms
/// and node. It is for places that instantiate gradients (RAMET_ROWS).
struct RowNames {
  const char *name, *in_place, *out, *node;
  PointwiseKernel kernel;
};
#define RAMET_ROWS ramet::autograd::rows
#define RAMET_ROW_NAMES(name, Row)                                                          \
  ::ramet::autograd::RowNames {                                                             \
#name, #name "_", #name "_out", rows::Row::kNode ? rows::Row::kNode : #Row "Backward0", \
        RAMET_POINTWISE(name)                                                               \
  }

/// A number as an argument of the compute type.
inline kernels::Number number(const Scalar& v, ScalarType compute) {
  kernels::Number n;
  if (compute == kLong) n.i = v.isFloatingPoint() ? static_cast<int64_t>(v.toDouble()) : v.toLong();
  else n.d = v.toDouble();
  return n;
}

/// The largest finite number of a floating-point dtype.
inline double largest_finite(ScalarType dtype) {
  return dtype == kDouble  ? 0x1.fffffffffffffp1023
         : dtype == kFloat ? 0x1.fffffep127
         : dtype == kHalf  ? 65504
                           : 0x1.fep127;
}
/// The smallest number above 0 of a floating-point dtype.
inline double smallest_above_zero(ScalarType dtype) {
  return dtype == kDouble  ? 0x1p-1074
         : dtype == kFloat ? 0x1p-149
         : dtype == kHalf  ? 0x1p-24
                           : 0x1p-133;
}

/// An operand of an operation: a tensor, a number, or nothing.
struct Operand {
  const Tensor* tensor = nullptr;
  Scalar value;
  bool given = false;
  Operand() = default;
  Operand(const Tensor& t) : tensor(&t), given(true) {}
  Operand(const Scalar& v) : value(v), given(true) {}
};

/// out[...] = f(a, b, c; s, t) in the compute type; operands broadcast to out. A 0-dim operand on a
/// host is read as a number where that is safe. The kernel has one place, `t`, for such an operand
/// and for the row's second number. So where `t` is given, no operand is a number. Adds no history
/// and raises no version.
RAMET_API void pointwise_into(const PointwiseKernel& kernel, const TensorBase& out,
                              ScalarType compute, const Operand& a, const Operand& b = {},
                              const Operand& c = {}, const Scalar& s = 0,
                              const std::optional<Scalar>& t = std::nullopt);

/// A fresh result of `dtype`. It has the operands' common shape and device, and their common dense
/// layout where they share one.
RAMET_API Tensor pointwise_result(const char* op, ScalarType dtype, const Tensor& a,
                                  const Tensor* b = nullptr, const Tensor* c = nullptr);

/// Checks an in-place or out form: the common shape must be out's, and the result type must be
/// castable to out's.
RAMET_API void check_output(const char* op, const Tensor& out, IntArrayRef shape,
                            ScalarType result);
/// LibTorch's error where an `_out` form would cut gradients.
RAMET_API void check_out_history(const char* op, const Tensor& out, bool inputs_record);
/// Resizes `out` (of an `_out` form) where its shape differs. An Error where that would cut
/// gradients.
RAMET_API void prepare_out(const char* op, const Tensor& out, IntArrayRef shape, ScalarType result,
                           bool inputs_record);

/// LibTorch's ZeroDivisionError: throws where integers are divided (`dtype` is integral) and the
/// divisor has a zero. An empty dividend may be divided by anything.
RAMET_API void check_divisor(const char* op, const Tensor& dividend, const Tensor& divisor,
                             ScalarType dtype);

/// The fast case of binary operations: two contiguous tensors of one shape, dtype and device.
/// Inline and small.
inline bool alike(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && a->key() == b->key() &&
         (a->all_flags() & b->all_flags() & TensorImpl::kContiguous) &&
         same_sizes(a.impl(), b.impl());
}
/// Contiguous float32, the most frequent case in small programs: no promotion, no broadcasting, no
/// strides.
inline bool plain_float(const Tensor& x) { return x->dtype == kFloat && x.raw_contiguous(); }
inline bool plain_float(const Tensor& a, const Tensor& b) {
  return alike(a, b) && a->dtype == kFloat;
}
/// A fresh tensor f(a, b; s, t), or f(a; s, t), for plain tensors. Inline and small.
template <class Kernel>
inline Tensor plain_pointwise(const Kernel& kernel, const Tensor& a, const Tensor& b = {},
                              double s = 1, double t = 1) {
  Tensor out(TensorBase::empty_alike(a, kFloat));
  kernels::Number sn, tn;
  sn.d = s;
  tn.d = t;
  kernel(a.stream(), {a.ptr(), b.defined() ? b.ptr() : nullptr, nullptr, out->data, a.numel(), sn,
                      tn, kFloat, kFloat, kFloat, kFloat, kFloat});
  return out;
}

/// The gradient f(g, x; s, t) of a function of x, in one pass over two tensors of one shape
/// (checked). Floating-point dtypes only. No history.
RAMET_API Tensor pointwise_gradient(const PointwiseKernel& kernel, const Tensor& g, const Tensor& x,
                                    const Scalar& s = 0,
                                    const std::optional<Scalar>& t = std::nullopt);

}  // namespace autograd
}  // namespace ramet
