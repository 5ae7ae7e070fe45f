// What sums, products and quotients share: their kernels on any operands and on the common ones.
// Private to autograd/ops.
#pragma once
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/front/pointwise_front.h"

namespace ramet {
namespace autograd {

using Pair = std::array<Tensor, 2>;

/// a op b into a fresh tensor, any operands. Functions of their own: the argument block of the
/// general path would give the fast one a frame of several hundred bytes.
RAMET_API Tensor pointwise_fresh(const PointwiseKernel& k, const Tensor& a, const Tensor& b,
                                 ScalarType dtype, const Scalar& s);
RAMET_API Tensor pointwise_fresh(const PointwiseKernel& k, const Tensor& a, const Scalar& b,
                                 ScalarType dtype, const Scalar& s);
/// a op b into `out`, which may be a: checked, but without history or version change.
RAMET_API void pointwise_inplace(const char* op, const PointwiseKernel& k, const Tensor& out,
                                 const Tensor& a, const Operand& b, ScalarType dtype,
                                 const Scalar& s);

/// Not of `true`, which is refused as a factor of numbers.
inline bool is_one(const Scalar& s) {
  return RAMET_LIKELY(s.isIntegral(false)) ? s.toDouble() == 1 : s.isFloatingPoint() && s.equal(1);
}

}  // namespace autograd
}  // namespace ramet
