#include "autograd/ops/pointwise/ternary.h"

#include "autograd/ops/front/arithmetic_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/pointwise/unary.h"
#include "kernels/pointwise/rows/arithmetic.h"

namespace ramet {

using namespace autograd;

// ---- addcmul, addcdiv ---------------------------------------------------------------------------

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
  const auto run = [&]() __attribute__((always_inline)) {
    pointwise_into(k, a, compute_type(dtype), a, b, c, value);
    wrote(op, a);
  };
  if (recording(a, b, c)) {
    auto backward = gradients_of<Row, Overwritten, Own>(a, b, c, value);  // before the write
    run();
    record_inplace(node, {a, b, c}, a, std::move(backward));
  } else {
    run();
  }
  return as_mutable(a);
}

}  // namespace

static Tensor addcmul_body(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value) {
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
static Tensor addcdiv_body(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value) {
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
  return recorded<rows::Lerp>("LerpBackward0", std::move(out), a, b, w);
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
  return overwrite<rows::Lerp>("lerp_", "LerpBackward0", RAMET_POINTWISE(lerp), scalar_type(),
                               *this, end, w);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/ternary.inc"

}  // namespace ramet
