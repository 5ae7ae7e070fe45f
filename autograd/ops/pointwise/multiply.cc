#include "autograd/ops/pointwise/multiply.h"

#include "autograd/ops/front/arithmetic_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/pointwise/unary.h"
#include "kernels/pointwise/rows/arithmetic.h"

namespace ramet {

using namespace autograd;

// ---- mul, div -----------------------------------------------------------------------------------

namespace {
ScalarType divided(ScalarType t) { return is_floating(t) ? t : get_default_dtype(); }
}  // namespace

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b))) {
    out = plain_pointwise(kernels::mul, a, b);
    if (!recording(a, b)) return out;
    return record("MulBackward0", {a, b}, std::move(out), gradients_of<rows::Mul, Alike>(a, b));
  }
  common_device("mul", a, b);
  return recorded<rows::Mul>("MulBackward0",
                             pointwise_fresh(RAMET_POINTWISE(mul), a, b, result_type(a, b)), a, b);
}
Tensor mul(const Tensor& a, const Scalar& b) {
  check_defined("mul", a);
  return recorded<rows::Mul>("MulBackward1",
                             pointwise_fresh(RAMET_POINTWISE(mul), a, b, result_type(a, b)), a, b);
}
Tensor& mul_out(Tensor& out, const Tensor& a, const Tensor& b) {
  const ScalarType dtype = result_type(a, b);
  return pointwise_out("mul_out", RAMET_POINTWISE(mul), out, dtype, compute_type(dtype), a, b);
}
Tensor& Tensor::mul_(const Tensor& o) const {
  check_inplace("mul_", *this, o);
  check_defined("mul_", o);
  return overwrite<rows::Mul>("mul_", "MulBackward0", RAMET_POINTWISE(mul), result_type(*this, o),
                              *this, o);
}
Tensor& Tensor::mul_(const Scalar& o) const {
  check_inplace("mul_", *this);
  return overwrite<rows::Mul>("mul_", "MulBackward1", RAMET_POINTWISE(mul), result_type(*this, o),
                              *this, o);
}

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b))) {
    out = plain_pointwise(kernels::div, a, b);
    if (!recording(a, b)) return out;
    return record("DivBackward0", {a, b}, std::move(out), gradients_of<rows::Div, Alike>(a, b));
  }
  common_device("div", a, b);
  return recorded<rows::Div>(
      "DivBackward0", pointwise_fresh(RAMET_POINTWISE(div), a, b, divided(result_type(a, b))), a,
      b);
}
Tensor div(const Tensor& a, const Scalar& b) {
  check_defined("div", a);
  return recorded<rows::Div>(
      "DivBackward1", pointwise_fresh(RAMET_POINTWISE(div), a, b, divided(result_type(a, b))), a,
      b);
}
Tensor& div_out(Tensor& out, const Tensor& a, const Tensor& b) {
  const ScalarType dtype = divided(result_type(a, b));
  return pointwise_out("div_out", RAMET_POINTWISE(div), out, dtype, compute_type(dtype), a, b);
}
Tensor& Tensor::div_(const Tensor& o) const {
  check_inplace("div_", *this, o);
  check_defined("div_", o);
  return overwrite<rows::Div>("div_", "DivBackward0", RAMET_POINTWISE(div),
                              divided(result_type(*this, o)), *this, o);
}
Tensor& Tensor::div_(const Scalar& o) const {
  check_inplace("div_", *this);
  return overwrite<rows::Div>("div_", "DivBackward1", RAMET_POINTWISE(div),
                              divided(result_type(*this, o)), *this, o);
}
Tensor operator/(const Scalar& a, const Tensor& b) { return mul(b.reciprocal(), a); }

// ---- rounded quotients --------------------------------------------------------------------------

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
  Tensor out = pointwise_fresh(kernel, a, b, dtype);
  return recording(a) ? without_slope(a, std::move(out)) : without_slope(b, std::move(out));
}
Tensor div(const Tensor& a, const Scalar& b, std::optional<std::string> mode) {
  if (!mode) return div(a, b);
  check_defined("div", a);
  RAMET_CHECK(is_floating(result_type(a, b)) || a.numel() == 0 || b.toLong() != 0, "div",
              "ZeroDivisionError: integer division by 0");
  return without_slope(a, pointwise_fresh(rounded_kernel(*mode), a, b, result_type(a, b)));
}
Tensor floor_divide(const Tensor& a, const Tensor& b) { return div(a, b, "floor"); }
Tensor floor_divide(const Tensor& a, const Scalar& b) { return div(a, b, "floor"); }
Tensor& Tensor::div_(const Tensor& o, std::optional<std::string> mode) const {
  if (!mode) return div_(o);
  return computed_in_place("div_", *this, [&](const Tensor& x) { return ramet::div(x, o, mode); });
}
Tensor& Tensor::div_(const Scalar& o, std::optional<std::string> mode) const {
  if (!mode) return div_(o);
  return computed_in_place("div_", *this, [&](const Tensor& x) { return ramet::div(x, o, mode); });
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/multiply.inc"

}  // namespace ramet
