#include "autograd/ops/power.h"

#include <cmath>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/comparison.h"
#include "autograd/ops/front/arithmetic_front.h"
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/unary.h"
#include "autograd/ops/where.h"
#include "kernels/pointwise/rows/arithmetic.h"

namespace ramet {

using namespace autograd;

namespace {

Tensor fresh(const char* op, const PointwiseKernel& k, const Tensor& a, const Tensor& b,
             ScalarType dtype) {
  Tensor out = pointwise_result(op, dtype, a, &b);
  pointwise_into(k, out, compute_type(dtype), a, b);
  return out;
}
// LibTorch has none of these for bool.
ScalarType not_bool(const char* op, ScalarType dtype) {
  RAMET_CHECK(dtype != kBool, op, "not implemented for bool");
  return dtype;
}

}  // namespace

// ---- pow ----------------------------------------------------------------------------------------

namespace {

// x ^ p into out: the cheap exponents have kernels of their own.
void pow_into(const TensorBase& out, ScalarType dtype, const Tensor& x, const Scalar& p) {
  const ScalarType compute = compute_type(dtype);
  const double e = p.toDouble();
  if (e == 2) return pointwise_into(RAMET_POINTWISE(square), out, compute, x);
  if (e == 3) return pointwise_into(RAMET_POINTWISE(cube), out, compute, x);
  if (is_floating(dtype)) {
    if (e == 0.5) return pointwise_into(RAMET_POINTWISE(sqrt), out, compute, x);
    if (e == -0.5) return pointwise_into(RAMET_POINTWISE(rsqrt), out, compute, x);
    if (e == -1) return pointwise_into(RAMET_POINTWISE(reciprocal), out, compute, x);
  }
  pointwise_into(RAMET_POINTWISE(pow), out, compute, x, p);
}
ScalarType pow_type(const char* op, const Tensor& x, const Scalar& p) {
  check_defined(op, x);
  const ScalarType dtype = result_type(x, p);
  RAMET_CHECK(is_floating(dtype) || p.toLong() >= 0, op,
              "Integers to negative integer powers are not allowed.");
  return dtype;
}

// g p x^(p-1); 0 for p = 0, whatever x is.
Tensor base_gradient(const Tensor& g, const Tensor& x, const Scalar& p) {
  const double e = p.toDouble();
  if (e == 0) return mul(g, 0);
  if (e == 1) return g;
  if (e == 2) return mul(mul(g, x), 2);
  return mul(g, mul(pow(x, Scalar(e - 1)), e));
}
Tensor base_gradient(const Tensor& g, const Tensor& x, const Tensor& p) {
  return where(eq(p, 0), 0, mul(g, mul(p, pow(x, sub(p, 1)))));
}
// g y log x; 0 where x is 0 and p is not negative. The logarithm of whole numbers is as precise
// as y.
Tensor exponent_gradient(const Tensor& g, const Tensor& x, const Tensor& p, const Tensor& y) {
  return where(logical_and(eq(x, 0), ge(p, 0)), 0, mul(g, mul(y, log(x.to(y.scalar_type())))));
}

}  // namespace

Tensor pow(const Tensor& x, const Scalar& p) {
  const ScalarType dtype = pow_type("pow", x, p);
  Tensor out = empty_like_layout(x, dtype);
  pow_into(out, dtype, x, p);
  if (!recording(x)) return out;
  return record("PowBackward0", {x}, std::move(out),
                [sx = save(x), p, dtype = x.scalar_type()](const Node& self, const Tensor& g) {
                  return base_gradient(g, sx.get(self), p).to(dtype);
                });
}
Tensor pow(const Tensor& x, const Tensor& p) {
  common_device("pow", x, p);
  Tensor out = fresh("pow", RAMET_POINTWISE(pow), x, p, not_bool("pow", result_type(x, p)));
  if (!recording(x, p)) return out;
  return record(
      "PowBackward1", {x, p}, std::move(out),
      [sx = save(x), sp = save(p), sy = wants_grad(p) ? save_output(out) : SavedOutput(),
       mx = Meta(x), mp = Meta(p)](const Node& self, const Tensor& g) {
        const Tensor &x = sx.get(self), &p = sp.get(self);
        return Pair{self.needs(0) ? mx.reduce(base_gradient(g, x, p)) : Tensor(),
                    self.needs(1) ? mp.reduce(exponent_gradient(g, x, p, sy.get(self))) : Tensor()};
      });
}
Tensor pow(const Scalar& x, const Tensor& p) {
  check_defined("pow", p);
  const ScalarType dtype = result_type(p, x);
  Tensor out = empty_like_layout(p, dtype);
  pointwise_into(RAMET_POINTWISE(pow), out, compute_type(dtype), x, p);
  if (!recording(p)) return out;
  return record("PowBackward2", {p}, std::move(out),
                [x, sp = save_if(x.toDouble() == 0, p), sy = save_output(out),
                 dtype = p.scalar_type()](const Node& self, const Tensor& g) {
                  if (sp.defined()) {
                    const Tensor& p = sp.get(self);
                    return where(ge(p, 0), 0, mul(g, mul(sy.get(self), -INFINITY))).to(dtype);
                  }
                  return mul(mul(g, sy.get(self)), std::log(x.toDouble())).to(dtype);
                });
}
Tensor& pow_out(Tensor& out, const Tensor& x, const Tensor& p) {
  common_device("pow_out", x, p);
  const ScalarType dtype = not_bool("pow_out", result_type(x, p));
  return pointwise_out("pow_out", RAMET_POINTWISE(pow), out, dtype, compute_type(dtype), x, p);
}
Tensor& Tensor::pow_(const Scalar& p) const {
  check_inplace("pow_", *this);
  const ScalarType dtype = pow_type("pow_", *this, p);
  check_output("pow_", *this, sizes(), dtype);
  const bool records = recording(*this);
  const Saved sx = save_overwritten(records && p.toDouble() != 0 && p.toDouble() != 1, *this);
  pow_into(*this, dtype, *this, p);
  wrote("pow_", *this);
  if (records)
    record_inplace("PowBackward0", {*this}, *this, [sx, p](const Node& self, const Tensor& g) {
      return base_gradient(g, sx.get(self), p);
    });
  return as_mutable(*this);
}
Tensor& Tensor::pow_(const Tensor& p) const {
  check_inplace("pow_", *this, p);
  common_device("pow_", *this, p);
  const ScalarType dtype = not_bool("pow_", result_type(*this, p));
  check_output("pow_", *this, broadcast_sizes("pow_", sizes(), p.sizes()), dtype);
  const bool records = recording(*this, p);
  const Saved sx = save_overwritten(records, *this), sp = save_if(records, p);
  pointwise_into(RAMET_POINTWISE(pow), *this, compute_type(dtype), *this, p);
  wrote("pow_", *this);
  if (records) {
    record_inplace(
        "PowBackward1", {*this, p}, *this,
        [sx, sp, sy = save_output(*this), mp = Meta(p)](const Node& self, const Tensor& g) {
          const Tensor &x = sx.get(self), &p = sp.get(self);
          return Pair{
              self.needs(0) ? base_gradient(g, x, p).to(g.scalar_type()) : Tensor(),
              self.needs(1) ? mp.reduce(exponent_gradient(g, x, p, sy.get(self))) : Tensor()};
        });
  }
  return as_mutable(*this);
}

// ---- remainders ---------------------------------------------------------------------------------

namespace {

template <class Row>
Tensor divided_rest(const char* op, const char* node, const PointwiseKernel& k, const Tensor& a,
                    const Tensor& b) {
  common_device(op, a, b);
  const ScalarType dtype = not_bool(op, result_type(a, b));
  if (cast_first(dtype, a.scalar_type(), b.scalar_type()))
    return divided_rest<Row>(op, node, k, a.to(dtype), b.to(dtype));
  check_divisor(op, a, b, dtype);
  Tensor out = fresh(op, k, a, b, dtype);
  if (!recording(a, b)) return out;
  return record(node, {a, b}, std::move(out), gradients_of<Row>(a, b));
}
Tensor divided_rest(const char* op, const char* node, const PointwiseKernel& k, const Tensor& a,
                    const Scalar& b) {
  check_defined(op, a);
  const ScalarType dtype = result_type(a, b);
  RAMET_CHECK(is_floating(dtype) || a.numel() == 0 || b.toLong() != 0, op,
              "ZeroDivisionError: integer division by 0");
  Tensor out = empty_like_layout(a, dtype);
  pointwise_into(k, out, compute_type(dtype), a, rounded(b, dtype));
  if (!recording(a)) return out;
  return record(node, {a}, std::move(out),
                [dtype = a.scalar_type()](const Node&, const Tensor& g) { return g.to(dtype); });
}

}  // namespace

Tensor remainder(const Tensor& a, const Tensor& b) {
  return divided_rest<rows::Remainder>("remainder", "RemainderBackward1",
                                       RAMET_POINTWISE(remainder), a, b);
}
Tensor remainder(const Tensor& a, const Scalar& b) {
  return divided_rest("remainder", "RemainderBackward0", RAMET_POINTWISE(remainder), a, b);
}
Tensor remainder(const Scalar& a, const Tensor& b) { return remainder(scalar_to_tensor(a), b); }
Tensor operator%(const Scalar& a, const Tensor& b) { return remainder(a, b); }
Tensor fmod(const Tensor& a, const Tensor& b) {
  return divided_rest<rows::Fmod>("fmod", "FmodBackward1", RAMET_POINTWISE(fmod), a, b);
}
Tensor fmod(const Tensor& a, const Scalar& b) {
  return divided_rest("fmod", "FmodBackward0", RAMET_POINTWISE(fmod), a, b);
}

// ---- three operands -----------------------------------------------------------------------------

namespace {

ScalarType type_of_three(const char* op, const Tensor& a, const Tensor& b, const Tensor& c,
                         const Scalar& value, bool floating_only) {
  common_device(op, a, b);
  common_device(op, a, c);
  const ScalarType dtype = not_bool(op, result_type(a, b, c));
  RAMET_CHECK(is_floating(dtype) || !floating_only, op,
              "Integer division with addcdiv is not supported: got ", describe(a), ", ",
              describe(b), ", ", describe(c));
  RAMET_CHECK(
      is_floating(dtype) || !value.isFloatingPoint(), op,
      "For integral input tensors, argument value must not be a floating point number: got ",
      value);
  return dtype;
}
std::vector<int64_t> shape_of_three(const char* op, const Tensor& a, const Tensor& b,
                                    const Tensor& c) {
  return broadcast_sizes(op, broadcast_sizes(op, a.sizes(), b.sizes()), c.sizes());
}
// The three forms of one operation.
template <class Row>
Tensor plain_form(const char* op, const char* node, const PointwiseKernel& k, const Tensor& a,
                  const Tensor& b, const Tensor& c, const Scalar& value, bool floating_only) {
  const ScalarType dtype = type_of_three(op, a, b, c, value, floating_only);
  Tensor out = pointwise_result(op, dtype, a, &b, &c);
  pointwise_into(k, out, compute_type(dtype), a, b, c, value);
  if (!recording(a, b, c)) return out;
  return record(node, {a, b, c}, std::move(out), gradients_of<Row>(a, b, c, value));
}
Tensor& out_form(const char* op, const PointwiseKernel& k, Tensor& out, const Tensor& a,
                 const Tensor& b, const Tensor& c, const Scalar& value, bool floating_only) {
  const ScalarType dtype = type_of_three(op, a, b, c, value, floating_only);
  return pointwise_out(op, k, out, dtype, compute_type(dtype), a, b, c, value);
}
template <class Row>
Tensor& in_place_form(const char* op, const char* node, const PointwiseKernel& k, const Tensor& a,
                      const Tensor& b, const Tensor& c, const Scalar& value, bool floating_only) {
  check_inplace(op, a, b, c);
  const ScalarType dtype = type_of_three(op, a, b, c, value, floating_only);
  check_output(op, a, shape_of_three(op, a, b, c), dtype);
  if (recording(a, b, c)) {
    auto backward = gradients_of<Row>(a, b, c, value);  // saves before the write
    pointwise_into(k, a, compute_type(dtype), a, b, c, value);
    wrote(op, a);
    record_inplace(node, {a, b, c}, a, std::move(backward));
  } else {
    pointwise_into(k, a, compute_type(dtype), a, b, c, value);
    wrote(op, a);
  }
  return as_mutable(a);
}

}  // namespace

Tensor addcmul(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value) {
  return plain_form<rows::Addcmul>("addcmul", "AddcmulBackward0", RAMET_POINTWISE(addcmul), a, b, c,
                                   value, false);
}
Tensor& addcmul_out(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c,
                    const Scalar& value) {
  return out_form("addcmul_out", RAMET_POINTWISE(addcmul), out, a, b, c, value, false);
}
Tensor& Tensor::addcmul_(const Tensor& b, const Tensor& c, const Scalar& value) const {
  return in_place_form<rows::Addcmul>("addcmul_", "AddcmulBackward0", RAMET_POINTWISE(addcmul),
                                      *this, b, c, value, false);
}
Tensor addcdiv(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value) {
  return plain_form<rows::Addcdiv>("addcdiv", "AddcdivBackward0", RAMET_POINTWISE(addcdiv), a, b, c,
                                   value, true);
}
Tensor& addcdiv_out(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c,
                    const Scalar& value) {
  return out_form("addcdiv_out", RAMET_POINTWISE(addcdiv), out, a, b, c, value, true);
}
Tensor& Tensor::addcdiv_(const Tensor& b, const Tensor& c, const Scalar& value) const {
  return in_place_form<rows::Addcdiv>("addcdiv_", "AddcdivBackward0", RAMET_POINTWISE(addcdiv),
                                      *this, b, c, value, true);
}

// ---- lerp ---------------------------------------------------------------------------------------

namespace {
void check_lerp(const char* op, const Tensor& a, const Tensor& b) {
  common_device(op, a, b);
  RAMET_CHECK(a.scalar_type() == b.scalar_type() && is_floating(a.scalar_type()), op,
              "expected one floating-point dtype, but got ", describe(a), " and ", describe(b));
}
}  // namespace

Tensor lerp(const Tensor& a, const Tensor& b, const Scalar& w) {
  check_lerp("lerp", a, b);
  Tensor out = pointwise_result("lerp", a.scalar_type(), a, &b);
  pointwise_into(RAMET_POINTWISE(lerp), out, compute_type(a.scalar_type()), a, b, w);
  if (!recording(a, b)) return out;
  return record("LerpBackward0", {a, b}, std::move(out),
                [w, ma = Meta(a), mb = Meta(b)](const Node& self, const Tensor& g) {
                  return Pair{self.needs(0) ? ma.reduce(mul(g, 1 - w.toDouble())) : Tensor(),
                              self.needs(1) ? mb.reduce(mul(g, w)) : Tensor()};
                });
}
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& w) {
  check_lerp("lerp", a, b);
  check_lerp("lerp", a, w);
  Tensor out = pointwise_result("lerp", a.scalar_type(), a, &b, &w);
  pointwise_into(RAMET_POINTWISE(lerp), out, compute_type(a.scalar_type()), a, b, w);
  if (!recording(a, b, w)) return out;
  return record("LerpBackward1", {a, b, w}, std::move(out), gradients_of<rows::Lerp>(a, b, w));
}
Tensor& Tensor::lerp_(const Tensor& end, const Scalar& w) const {
  check_inplace("lerp_", *this, end);
  check_lerp("lerp_", *this, end);
  check_output("lerp_", *this, broadcast_sizes("lerp_", sizes(), end.sizes()), scalar_type());
  pointwise_into(RAMET_POINTWISE(lerp), *this, compute_type(scalar_type()), *this, end, w);
  wrote("lerp_", *this);
  if (recording(*this, end)) {
    record_inplace("LerpBackward0", {*this, end}, *this,
                   [w, mb = Meta(end)](const Node& self, const Tensor& g) {
                     return Pair{self.needs(0) ? ramet::mul(g, 1 - w.toDouble()) : Tensor(),
                                 self.needs(1) ? mb.reduce(ramet::mul(g, w)) : Tensor()};
                   });
  }
  return as_mutable(*this);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/power.inc"

}  // namespace ramet
