#include "autograd/ops/front/arithmetic_internal.h"

namespace ramet {
namespace autograd {

Tensor pointwise_fresh(const PointwiseKernel& k, const Tensor& a, const Tensor& b, ScalarType dtype,
                       const Scalar& s) {
  Tensor out = pointwise_result(k.dense.name, dtype, a, &b);
  pointwise_into(k, out, compute_type(dtype), a, b, {}, s);
  return out;
}

Tensor pointwise_fresh(const PointwiseKernel& k, const Tensor& a, const Scalar& b, ScalarType dtype,
                       const Scalar& s) {
  check_defined(k.dense.name, a);
  Tensor out = pointwise_result(k.dense.name, dtype, a);
  pointwise_into(k, out, compute_type(dtype), a, b, {}, s);
  return out;
}

}  // namespace autograd
}  // namespace ramet
