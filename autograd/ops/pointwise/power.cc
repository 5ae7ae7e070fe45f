#include "autograd/ops/pointwise/power.h"

#include <cmath>

#include "autograd/ops/front/arithmetic_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "kernels/pointwise/rows/arithmetic.h"

namespace ramet {

using namespace autograd;

// ---- pow ----------------------------------------------------------------------------------------

namespace {

// x ^ p into out: the cheap exponents have their own kernels.
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
// The same for tensors. Where p is 0, x is replaced, so that further derivatives are 0 there, too.
Tensor base_gradient(const Tensor& g, const Tensor& x, const Tensor& p) {
  return rows::Pow::gradient_a(g, recording(x) ? where(eq(p, 0), 1, x) : x, p);
}

}  // namespace

static Tensor pow_body(const Tensor& x, const Scalar& p) {
  const ScalarType dtype = pow_type("pow", x, p);
  Tensor out = empty_like_layout(x, dtype);
  pow_into(out, dtype, x, p);
  if (!recording(x)) return out;
  return record("PowBackward0", {x}, std::move(out),
                [sx = save(x), p, dtype = x.scalar_type()](const Node& self, const Tensor& g) {
                  return base_gradient(g, sx.get(self), p).to(dtype);
                },
                [&](Arguments& to) { to("exponent", p); });
}
static Tensor pow_body(const Tensor& x, const Tensor& p) {
  common_device("pow", x, p);
  Tensor out = pointwise_fresh(RAMET_POINTWISE(pow), x, p, not_bool("pow", result_type(x, p)));
  if (!recording(x, p)) return out;
  return record("PowBackward1", {x, p}, std::move(out),
                [sx = save(x), sp = save(p), sy = wants_grad(p) ? save_output(out) : SavedOutput(),
                 mx = Meta(x), mp = Meta(p)](const Node& self, const Tensor& g) {
                  const Tensor &x = sx.get(self), &p = sp.get(self);
                  return Pair{self.needs(0) ? mx.reduce(base_gradient(g, x, p)) : Tensor(),
                              self.needs(1)
                                  ? mp.reduce(rows::Pow::gradient_b(g, x, p, sy.get(self)))
                                  : Tensor()};
                });
}
static Tensor pow_body(const Scalar& x, const Tensor& p) {
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
                },
                [&](Arguments& to) { to("self", x); });
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
    record_inplace(
        "PowBackward0", {*this}, *this,
        [sx, p](const Node& self, const Tensor& g) { return base_gradient(g, sx.get(self), p); },
        [&](Arguments& to) { to("exponent", p); });
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
              self.needs(1) ? mp.reduce(rows::Pow::gradient_b(g, x, p, sy.get(self))) : Tensor()};
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
  return recorded<Row>(node, pointwise_fresh(k, a, b, dtype), a, b);
}
template <class Row>
Tensor divided_rest(const char* op, const char* node, const PointwiseKernel& k, const Tensor& a,
                    const Scalar& b) {
  check_defined(op, a);
  const ScalarType dtype = result_type(a, b);
  RAMET_CHECK(is_floating(dtype) || a.numel() == 0 || b.toLong() != 0, op,
              "ZeroDivisionError: integer division by 0");
  Tensor out = empty_like_layout(a, dtype);
  pointwise_into(k, out, compute_type(dtype), a, rounded(b, dtype));
  return recorded<Row>(node, std::move(out), a, b);
}

}  // namespace

Tensor remainder(const Tensor& a, const Tensor& b) {
  return divided_rest<rows::Remainder>("remainder", "RemainderBackward1",
                                       RAMET_POINTWISE(remainder), a, b);
}
Tensor remainder(const Tensor& a, const Scalar& b) {
  return divided_rest<rows::Remainder>("remainder", "RemainderBackward0",
                                       RAMET_POINTWISE(remainder), a, b);
}
Tensor remainder(const Scalar& a, const Tensor& b) { return remainder(scalar_to_tensor(a), b); }
Tensor operator%(const Scalar& a, const Tensor& b) { return remainder(a, b); }
Tensor fmod(const Tensor& a, const Tensor& b) {
  return divided_rest<rows::Fmod>("fmod", "FmodBackward1", RAMET_POINTWISE(fmod), a, b);
}
Tensor fmod(const Tensor& a, const Scalar& b) {
  return divided_rest<rows::Fmod>("fmod", "FmodBackward0", RAMET_POINTWISE(fmod), a, b);
}

// ---- float_power --------------------------------------------------------------------------------

Tensor float_power(const Tensor& x, const Tensor& p) {
  common_device("float_power", x, p);
  return pow(x.to(kDouble), p.to(kDouble));
}
Tensor float_power(const Tensor& x, const Scalar& p) {
  check_defined("float_power", x);
  return pow(x.to(kDouble), p);
}
Tensor float_power(const Scalar& x, const Tensor& p) {
  check_defined("float_power", p);
  return pow(x, p.to(kDouble));
}

namespace {
constexpr OperandsRule kDoubles{{OutType::kSame}};
template <class F> Tensor& double_in_place(const char* op, const Tensor& x, const F& f) {
  check_defined(op, x);
  RAMET_CHECK(x.scalar_type() == kDouble, op, "the base has dtype ", name_of(x.scalar_type()),
              ", but the operation's result requires dtype ", name_of(kDouble));
  return computed_in_place(op, x, f);
}
}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/power.inc"

}  // namespace ramet
