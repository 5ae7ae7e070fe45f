#include "autograd/ops/pointwise/arithmetic.h"

#include "autograd/ops/front/arithmetic_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/shape/cat.h"
#include "kernels/pointwise/rows/arithmetic.h"

namespace ramet {

using namespace autograd;

namespace {

void check_alpha(const char* op, const Scalar& alpha, ScalarType dtype) {
  RAMET_CHECK(!alpha.isBoolean() || dtype == kBool, op,
              "Boolean alpha only supported for Boolean results: got ", alpha, " and ", dtype);
  RAMET_CHECK(is_floating(dtype) || !alpha.isFloatingPoint(), op,
              "For integral input tensors, argument alpha must not be a floating point "
              "number: got ",
              alpha);
}
void check_sub(const Tensor& a, ScalarType other) {
  RAMET_CHECK(a.scalar_type() != kBool && other != kBool, "sub",
              "Subtraction, the `-` operator, with a bool tensor is not supported. Use "
              "logical_xor() instead. Got ",
              describe(a));
}
ScalarType type_of(const Tensor& x) { return x.scalar_type(); }
ScalarType type_of(const Scalar& x) { return x.type(); }

// Code shared by add and sub: a + alpha * b or a - alpha * b, where b is a tensor or a number.
template <class Row> struct Sum {
  const char *op, *node;
  const PointwiseKernel& kernel;

  template <class B> ScalarType dtype(const Tensor& a, const B& b, const Scalar& alpha) const {
    if (std::is_same<Row, rows::Sub>::value) check_sub(a, type_of(b));
    const ScalarType dtype = result_type(a, b);
    check_alpha(op, alpha, dtype);
    return dtype;
  }
  template <class B> Tensor fresh(const Tensor& a, const B& b, const Scalar& alpha) const {
    check_operands(op, a, b);
    return recorded<Row>(node, pointwise_fresh(kernel, a, b, dtype(a, b, alpha), alpha), a, b,
                         alpha);
  }
  // Here `op` is the name of the in-place form.
  template <class B> Tensor& in_place(const Tensor& a, const B& b, const Scalar& alpha) const {
    return overwrite<Row>(op, node, kernel, dtype(a, b, alpha), a, b, alpha);
  }
  Tensor& into(Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) const {
    const ScalarType t = dtype(a, b, alpha);
    return pointwise_out(op, kernel, out, t, compute_type(t), a, b, {}, alpha);
  }
};
using Plus = Sum<rows::Add>;
using Minus = Sum<rows::Sub>;

}  // namespace

// ---- add, sub -----------------------------------------------------------------------------------

Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b) && is_one(alpha))) {
    out = plain_pointwise(kernels::add, a, b);
    if (!recording(a, b)) return out;
    return record("AddBackward0", {a, b}, std::move(out),
                  gradients_of<rows::Add, Alike>(a, b, One()));
  }
  return Plus{"add", "AddBackward0", RAMET_POINTWISE(add)}.fresh(a, b, alpha);
}
Tensor add(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  return Plus{"add", "AddBackward1", RAMET_POINTWISE(add)}.fresh(a, b, alpha);
}
Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b) && is_one(alpha))) {
    out = plain_pointwise(kernels::sub, a, b);
    if (!recording(a, b)) return out;
    return record("SubBackward0", {a, b}, std::move(out),
                  gradients_of<rows::Sub, Alike>(a, b, One()));
  }
  return Minus{"sub", "SubBackward0", RAMET_POINTWISE(sub)}.fresh(a, b, alpha);
}
Tensor sub(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  return Minus{"sub", "SubBackward1", RAMET_POINTWISE(sub)}.fresh(a, b, alpha);
}
Tensor& add_out(Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  return Plus{"add_out", "", RAMET_POINTWISE(add)}.into(out, a, b, alpha);
}
Tensor& sub_out(Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  return Minus{"sub_out", "", RAMET_POINTWISE(sub)}.into(out, a, b, alpha);
}
Tensor& Tensor::add_(const Tensor& o, const Scalar& alpha) const {
  check_inplace("add_", *this, o);
  check_defined("add_", o);
  return Plus{"add_", "AddBackward0", RAMET_POINTWISE(add)}.in_place(*this, o, alpha);
}
Tensor& Tensor::add_(const Scalar& o, const Scalar& alpha) const {
  check_inplace("add_", *this);
  return Plus{"add_", "AddBackward1", RAMET_POINTWISE(add)}.in_place(*this, o, alpha);
}
Tensor& Tensor::sub_(const Tensor& o, const Scalar& alpha) const {
  check_inplace("sub_", *this, o);
  check_defined("sub_", o);
  return Minus{"sub_", "SubBackward0", RAMET_POINTWISE(sub)}.in_place(*this, o, alpha);
}
Tensor& Tensor::sub_(const Scalar& o, const Scalar& alpha) const {
  check_inplace("sub_", *this);
  return Minus{"sub_", "SubBackward1", RAMET_POINTWISE(sub)}.in_place(*this, o, alpha);
}

Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& alpha) { return sub(b, a, alpha); }
Tensor rsub(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  check_defined("rsub", a);
  check_sub(a, b.type());
  const ScalarType dtype = result_type(a, b);
  check_alpha("rsub", alpha, dtype);
  Tensor out = pointwise_result("rsub", dtype, a);
  pointwise_into(RAMET_POINTWISE(sub), out, compute_type(dtype), b, a, {}, alpha);
  if (!recording(a)) return out;
  return record("RsubBackward1", {a}, std::move(out),
                [alpha, dtype = a.scalar_type()](const Node&, const Tensor& g) {
                  return rows::Sub::gradient_b(g, g, g, alpha).to(dtype);
                },
                [&](Arguments& to) { to("other", b), to("number", alpha); });
}
Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const std::optional<Tensor>& prepend,
            const std::optional<Tensor>& append) {
  check_defined("diff", self);
  RAMET_CHECK(self.dim() > 0, "diff", "expects input to be at least one-dimensional: got ",
              describe(self));
  RAMET_CHECK(n >= 0, "diff", "order must be non-negative but got ", n);
  const int64_t d = wrap_dim("diff", dim, self.dim());
  std::vector<Tensor> parts;
  const auto join = [&](const std::optional<Tensor>& other) {
    if (!other || !other->defined()) return;
    RAMET_CHECK(other->dim() == self.dim(), "diff",
                "expects prepend or append to be the same dimension as input: got ",
                describe(*other), " and ", describe(self));
    for (int64_t i = 0; i < self.dim(); ++i)
      RAMET_CHECK(i == d || other->size(i) == self.size(i), "diff",
                  "expects the shape of tensor to prepend or append to match that of input except "
                  "along the differencing dimension; input.size(",
                  i, ") = ", self.size(i), ", but got tensor.size(", i, ") = ", other->size(i));
    parts.push_back(*other);
  };
  join(prepend);
  parts.push_back(self);
  join(append);
  if (n == 0) return self.clone();
  Tensor x = parts.size() > 1 ? cat(parts, d) : self;
  if (n >= x.size(d)) return x.narrow(d, 0, 0).clone();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t left = x.size(d) - 1;
    const Tensor after = x.narrow(d, 1, left), before = x.narrow(d, 0, left);
    x = x.scalar_type() == kBool ? logical_xor(after, before) : sub(after, before);
  }
  return x;
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/arithmetic.inc"

}  // namespace ramet
