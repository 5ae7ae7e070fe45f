#include "autograd/ops/arithmetic.h"

#include "autograd/ops/front/arithmetic_front.h"
#include "autograd/ops/front/out_front.h"

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

// a + alpha * b or a - alpha * b: what add and sub share off the fast path.
struct Sum {
  const char *op, *node;
  const PointwiseKernel& kernel;
  bool minus;

  // The gradient of b.
  static Tensor term(const Tensor& g, const Scalar& alpha, bool minus) {
    return minus ? times(g, alpha).neg() : times(g, alpha);
  }

  Tensor of(const Tensor& a, const Tensor& b, const Scalar& alpha) const {
    common_device(op, a, b);
    if (minus) check_sub(a, b.scalar_type());
    const ScalarType dtype = result_type(a, b);
    check_alpha(op, alpha, dtype);
    Tensor out = pointwise_fresh(kernel, a, b, dtype, alpha);
    if (!recording(a, b)) return out;
    return record(
        node, {a, b}, std::move(out),
        [ma = Meta(a), mb = Meta(b), alpha, minus = minus](const Node& self, const Tensor& g) {
          return Pair{self.needs(0) ? ma.reduce(g) : Tensor(),
                      self.needs(1) ? mb.reduce(term(g, alpha, minus)) : Tensor()};
        });
  }
  Tensor of(const Tensor& a, const Scalar& b, const Scalar& alpha) const {
    check_defined(op, a);
    if (minus) check_sub(a, b.type());
    const ScalarType dtype = result_type(a, b);
    check_alpha(op, alpha, dtype);
    Tensor out = pointwise_fresh(kernel, a, b, dtype, alpha);
    if (!recording(a)) return out;
    return record(node, {a}, std::move(out),
                  [dtype = a.scalar_type()](const Node&, const Tensor& g) { return g.to(dtype); });
  }

  // In place; op is then the name of that form.
  Tensor& into_first(const Tensor& a, const Tensor& b, const Scalar& alpha) const {
    check_inplace(op, a, b);
    check_defined(op, b);
    if (minus) check_sub(a, b.scalar_type());
    check_alpha(op, alpha, result_type(a, b));
    pointwise_inplace(op, kernel, a, a, b, result_type(a, b), alpha);
    wrote(op, a);
    if (recording(a, b)) {
      record_inplace(node, {a, b}, a,
                     [mb = Meta(b), alpha, minus = minus](const Node& self, const Tensor& g) {
                       return Pair{g, self.needs(1) ? mb.reduce(term(g, alpha, minus)) : Tensor()};
                     });
    }
    return as_mutable(a);
  }
  Tensor& into_first(const Tensor& a, const Scalar& b, const Scalar& alpha) const {
    check_inplace(op, a);
    if (minus) check_sub(a, b.type());
    check_alpha(op, alpha, result_type(a, b));
    pointwise_inplace(op, kernel, a, a, b, result_type(a, b), alpha);
    wrote(op, a);
    if (recording(a)) record_inplace(node, {a}, a, [](const Node&, const Tensor& g) { return g; });
    return as_mutable(a);
  }
};

}  // namespace

// ---- add, sub -----------------------------------------------------------------------------------

Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const bool one = is_one(alpha);
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b) && one)) {
    out = plain_pointwise(kernels::add, a, b);
    if (!recording(a, b)) return out;
    return record("AddBackward0", {a, b}, std::move(out), [](const Node& self, const Tensor& g) {
      return Pair{self.needs(0) ? g : Tensor(), self.needs(1) ? g : Tensor()};
    });
  }
  return Sum{"add", "AddBackward0", RAMET_POINTWISE(add), false}.of(a, b, alpha);
}

Tensor add(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  return Sum{"add", "AddBackward1", RAMET_POINTWISE(add), false}.of(a, b, alpha);
}

Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b) && is_one(alpha))) {
    out = plain_pointwise(kernels::sub, a, b);
    if (!recording(a, b)) return out;
    return record("SubBackward0", {a, b}, std::move(out), [](const Node& self, const Tensor& g) {
      return Pair{self.needs(0) ? g : Tensor(), self.needs(1) ? g.neg() : Tensor()};
    });
  }
  return Sum{"sub", "SubBackward0", RAMET_POINTWISE(sub), true}.of(a, b, alpha);
}

Tensor sub(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  return Sum{"sub", "SubBackward1", RAMET_POINTWISE(sub), true}.of(a, b, alpha);
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
                  return times(g, alpha).neg().to(dtype);
                });
}

Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }

// ---- out forms ----------------------------------------------------------------------------------

Tensor& add_out(Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const ScalarType dtype = result_type(a, b);
  check_alpha("add_out", alpha, dtype);
  return pointwise_out("add_out", RAMET_POINTWISE(add), out, dtype, compute_type(dtype), a, b, {},
                       alpha);
}
Tensor& sub_out(Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  check_sub(a, b.scalar_type());
  const ScalarType dtype = result_type(a, b);
  check_alpha("sub_out", alpha, dtype);
  return pointwise_out("sub_out", RAMET_POINTWISE(sub), out, dtype, compute_type(dtype), a, b, {},
                       alpha);
}

// ---- methods ------------------------------------------------------------------------------------

Tensor Tensor::add(const Tensor& o, const Scalar& alpha) const {
  return ramet::add(*this, o, alpha);
}
Tensor Tensor::add(const Scalar& o, const Scalar& alpha) const {
  return ramet::add(*this, o, alpha);
}
Tensor Tensor::sub(const Tensor& o, const Scalar& alpha) const {
  return ramet::sub(*this, o, alpha);
}
Tensor Tensor::sub(const Scalar& o, const Scalar& alpha) const {
  return ramet::sub(*this, o, alpha);
}
Tensor& Tensor::add_(const Tensor& o, const Scalar& alpha) const {
  return Sum{"add_", "AddBackward0", RAMET_POINTWISE(add), false}.into_first(*this, o, alpha);
}
Tensor& Tensor::add_(const Scalar& o, const Scalar& alpha) const {
  return Sum{"add_", "AddBackward1", RAMET_POINTWISE(add), false}.into_first(*this, o, alpha);
}
Tensor& Tensor::sub_(const Tensor& o, const Scalar& alpha) const {
  return Sum{"sub_", "SubBackward0", RAMET_POINTWISE(sub), true}.into_first(*this, o, alpha);
}
Tensor& Tensor::sub_(const Scalar& o, const Scalar& alpha) const {
  return Sum{"sub_", "SubBackward1", RAMET_POINTWISE(sub), true}.into_first(*this, o, alpha);
}

}  // namespace ramet
