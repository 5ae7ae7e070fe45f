#include "autograd/ops/front/arithmetic_front.h"

#include "autograd/ops/front/out_front.h"

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

void pointwise_inplace(const char* op, const PointwiseKernel& k, const Tensor& out, const Tensor& a,
                       const Operand& b, ScalarType dtype, const Scalar& s) {
  if (b.tensor) {
    common_device(op, a, *b.tensor);
    check_output(op, out, broadcast_sizes(op, a.sizes(), b.tensor->sizes()), dtype);
  } else {
    check_output(op, out, a.sizes(), dtype);
  }
  pointwise_into(k, out, compute_type(dtype), a, b, {}, s);
}

}  // namespace autograd
}  // namespace ramet
