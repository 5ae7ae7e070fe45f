// Products and quotients: mul, div, floor_divide and their forms.
#include "autograd/ops/front/arithmetic_front.h"
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/unary.h"
#include "kernels/pointwise/rows/arithmetic.h"

namespace ramet {

using namespace autograd;

namespace {
ScalarType divided(ScalarType t) { return is_floating(t) ? t : get_default_dtype(); }
}  // namespace

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b))) {
    out = plain_pointwise(kernels::mul, a, b);
    if (!recording(a, b)) return out;
    return record("MulBackward0", {a, b}, std::move(out),
                  gradients_of<rows::Mul, AlikeOperand>(a, b));
  }
  common_device("mul", a, b);
  out = pointwise_fresh(RAMET_POINTWISE(mul), a, b, result_type(a, b), 1);
  if (!recording(a, b)) return out;
  return record("MulBackward0", {a, b}, std::move(out), gradients_of<rows::Mul>(a, b));
}

Tensor mul(const Tensor& a, const Scalar& b) {
  check_defined("mul", a);
  Tensor out = pointwise_fresh(RAMET_POINTWISE(mul), a, b, result_type(a, b), 1);
  if (!recording(a)) return out;
  return record(
      "MulBackward1", {a}, std::move(out),
      [b, dtype = a.scalar_type()](const Node&, const Tensor& g) { return mul(g, b).to(dtype); });
}

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b))) {
    out = plain_pointwise(kernels::div, a, b);
    if (!recording(a, b)) return out;
    return record("DivBackward0", {a, b}, std::move(out),
                  gradients_of<rows::Div, AlikeOperand>(a, b));
  }
  common_device("div", a, b);
  out = pointwise_fresh(RAMET_POINTWISE(div), a, b, divided(result_type(a, b)), 1);
  if (!recording(a, b)) return out;
  return record("DivBackward0", {a, b}, std::move(out), gradients_of<rows::Div>(a, b));
}

Tensor div(const Tensor& a, const Scalar& b) {
  check_defined("div", a);
  Tensor out = pointwise_fresh(RAMET_POINTWISE(div), a, b, divided(result_type(a, b)), 1);
  if (!recording(a)) return out;
  return record(
      "DivBackward1", {a}, std::move(out),
      [b, dtype = a.scalar_type()](const Node&, const Tensor& g) { return div(g, b).to(dtype); });
}

Tensor operator/(const Scalar& a, const Tensor& b) { return mul(b.reciprocal(), a); }

namespace {

const PointwiseKernel rounded_kernel(const std::string& mode) {
  if (mode == "floor") return RAMET_POINTWISE(div_floor);
  RAMET_CHECK(mode == "trunc", "div",
              "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode,
              "'");
  return RAMET_POINTWISE(div_trunc);
}
// Rounded division is constant almost everywhere.
Tensor without_slope(const Tensor& a, Tensor out) {
  if (!recording(a)) return out;
  return record("DivBackward1", {a}, std::move(out),
                [](const Node&, const Tensor&) { return Tensor(); });
}

}  // namespace

Tensor div(const Tensor& a, const Tensor& b, std::optional<std::string> mode) {
  if (!mode) return div(a, b);
  common_device("div", a, b);
  const PointwiseKernel kernel = rounded_kernel(*mode);
  const ScalarType dtype = result_type(a, b);
  RAMET_CHECK(dtype != kBool, "div", "rounding is not implemented for bool");
  check_divisor("div", a, b, dtype);
  Tensor out = pointwise_fresh(kernel, a, b, dtype, 1);
  return recording(a) ? without_slope(a, std::move(out)) : without_slope(b, std::move(out));
}
Tensor div(const Tensor& a, const Scalar& b, std::optional<std::string> mode) {
  if (!mode) return div(a, b);
  check_defined("div", a);
  RAMET_CHECK(is_floating(result_type(a, b)) || a.numel() == 0 || b.toLong() != 0, "div",
              "ZeroDivisionError: integer division by 0");
  return without_slope(a, pointwise_fresh(rounded_kernel(*mode), a, b, result_type(a, b), 1));
}
Tensor floor_divide(const Tensor& a, const Tensor& b) { return div(a, b, "floor"); }
Tensor floor_divide(const Tensor& a, const Scalar& b) { return div(a, b, "floor"); }

// ---- out forms ----------------------------------------------------------------------------------

Tensor& mul_out(Tensor& out, const Tensor& a, const Tensor& b) {
  const ScalarType dtype = result_type(a, b);
  return pointwise_out("mul_out", RAMET_POINTWISE(mul), out, dtype, compute_type(dtype), a, b, {},
                       1);
}
Tensor& div_out(Tensor& out, const Tensor& a, const Tensor& b) {
  const ScalarType dtype = divided(result_type(a, b));
  return pointwise_out("div_out", RAMET_POINTWISE(div), out, dtype, compute_type(dtype), a, b, {},
                       1);
}

// ---- methods ------------------------------------------------------------------------------------

Tensor Tensor::mul(const Tensor& o) const { return ramet::mul(*this, o); }
Tensor Tensor::mul(const Scalar& o) const { return ramet::mul(*this, o); }
Tensor Tensor::div(const Tensor& o) const { return ramet::div(*this, o); }
Tensor Tensor::div(const Scalar& o) const { return ramet::div(*this, o); }
Tensor Tensor::div(const Tensor& o, std::optional<std::string> m) const {
  return ramet::div(*this, o, std::move(m));
}
Tensor Tensor::div(const Scalar& o, std::optional<std::string> m) const {
  return ramet::div(*this, o, std::move(m));
}
Tensor Tensor::floor_divide(const Tensor& o) const { return ramet::floor_divide(*this, o); }
Tensor Tensor::floor_divide(const Scalar& o) const { return ramet::floor_divide(*this, o); }

Tensor& Tensor::mul_(const Tensor& o) const {
  check_inplace("mul_", *this, o);
  check_defined("mul_", o);
  const bool records = recording(*this, o);
  const Saved x = save_overwritten(records && wants_grad(o), *this);
  const Saved y = save_if(records && wants_grad(*this), o);
  pointwise_inplace("mul_", RAMET_POINTWISE(mul), *this, *this, o, result_type(*this, o), 1);
  wrote("mul_", *this);
  if (records) {
    record_inplace(
        "MulBackward0", {*this, o}, *this, [x, y, mb = Meta(o)](const Node& self, const Tensor& g) {
          // A wider factor does not widen the gradient of what stayed in its place.
          return Pair{self.needs(0) ? ramet::mul(g, y.get(self)).to(g.scalar_type()) : Tensor(),
                      self.needs(1) ? mb.reduce(ramet::mul(g, x.get(self))) : Tensor()};
        });
  }
  return as_mutable(*this);
}
Tensor& Tensor::mul_(const Scalar& o) const {
  check_inplace("mul_", *this);
  pointwise_inplace("mul_", RAMET_POINTWISE(mul), *this, *this, o, result_type(*this, o), 1);
  wrote("mul_", *this);
  if (recording(*this))
    record_inplace("MulBackward1", {*this}, *this,
                   [o](const Node&, const Tensor& g) { return ramet::mul(g, o); });
  return as_mutable(*this);
}
Tensor& Tensor::div_(const Tensor& o) const {
  check_inplace("div_", *this, o);
  check_defined("div_", o);
  const bool records = recording(*this, o);
  const Saved x = save_overwritten(records && wants_grad(o), *this), y = save_if(records, o);
  pointwise_inplace("div_", RAMET_POINTWISE(div), *this, *this, o, divided(result_type(*this, o)),
                    1);
  wrote("div_", *this);
  if (records) {
    record_inplace(
        "DivBackward0", {*this, o}, *this, [x, y, mb = Meta(o)](const Node& self, const Tensor& g) {
          const Tensor& b = y.get(self);
          return Pair{
              self.needs(0) ? rows::Div::gradient_a(g, b, b).to(g.scalar_type()) : Tensor(),
              self.needs(1) ? mb.reduce(rows::Div::gradient_b(g, x.get(self), b)) : Tensor()};
        });
  }
  return as_mutable(*this);
}
Tensor& Tensor::div_(const Scalar& o) const {
  check_inplace("div_", *this);
  pointwise_inplace("div_", RAMET_POINTWISE(div), *this, *this, o, divided(result_type(*this, o)),
                    1);
  wrote("div_", *this);
  if (recording(*this))
    record_inplace("DivBackward1", {*this}, *this,
                   [o](const Node&, const Tensor& g) { return ramet::div(g, o); });
  return as_mutable(*this);
}

}  // namespace ramet
