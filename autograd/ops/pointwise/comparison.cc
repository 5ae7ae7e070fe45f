#include "autograd/ops/pointwise/comparison.h"

#include "autograd/ops/front/arithmetic_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

namespace {

Tensor truth(const char* op, const PointwiseKernel& k, const Tensor& a, const Tensor& b) {
  common_device(op, a, b);
  const ScalarType dtype = result_type(a, b);
  if (cast_first(dtype, a.scalar_type(), b.scalar_type()))
    return truth(op, k, a.detach().to(dtype), b.detach().to(dtype));
  Tensor out = pointwise_result(op, kBool, a, &b);
  pointwise_into(k, out, compute_type(dtype), a, b);
  return out;
}
Tensor truth(const char* op, const PointwiseKernel& k, const Tensor& a, const Scalar& b) {
  check_defined(op, a);
  const ScalarType dtype = result_type(a, b);
  if (cast_first(dtype, a.scalar_type(), dtype)) return truth(op, k, a.detach().to(dtype), b);
  Tensor out = pointwise_result(op, kBool, a);
  pointwise_into(k, out, compute_type(dtype), a, rounded(b, dtype));
  return out;
}
Tensor truth(const char* op, const PointwiseKernel& k, const Tensor& a) {
  check_defined(op, a);
  Tensor out = pointwise_result(op, kBool, a);
  pointwise_into(k, out, compute_type(a.scalar_type()), a);
  return out;
}
Tensor& truth_out(const char* op, const PointwiseKernel& k, Tensor& out, const Tensor& a,
                  const Tensor& b) {
  check_operands(op, a, b);
  const ScalarType dtype = result_type(a, b);
  if (cast_first(dtype, a.scalar_type(), b.scalar_type()))
    return truth_out(op, k, out, a.detach().to(dtype), b.detach().to(dtype));
  return pointwise_out(op, k, out, kBool, compute_type(dtype), a, b);
}
Tensor& truth_out(const char* op, const PointwiseKernel& k, Tensor& out, const Tensor& a,
                  const Scalar& b) {
  check_operands(op, a, b);
  const ScalarType dtype = result_type(a, b);
  if (cast_first(dtype, a.scalar_type(), dtype))
    return truth_out(op, k, out, a.detach().to(dtype), b);
  return pointwise_out(op, k, out, kBool, compute_type(dtype), a, rounded(b, dtype));
}
// Replaces a's values by 0 and 1; the old values get no gradient.
template <class Other>
Tensor& truth_in_place(const char* op, const PointwiseKernel& k, const Tensor& a, const Other& b) {
  return computed_in_place(op, a, [&](const Tensor& old) { return truth(op, k, old, b); });
}
std::string shown(const Tensor& t) { return describe(t); }
const Scalar& shown(const Scalar& s) { return s; }
template <class Other>
Tensor bits(const char* op, const PointwiseKernel& k, const Tensor& a, const Other& b) {
  check_operands(op, a, b);
  const ScalarType dtype = result_type(a, b);
  RAMET_CHECK(is_integral(dtype), op, "expected integers or bool: got ", describe(a), " and ",
              shown(b));
  return pointwise_fresh(k, a, b, dtype, 1);
}

}  // namespace

#define RAMET_TRUTH_OF(name, Other)                                    \
  Tensor name(const Tensor& a, const Other& b) {                       \
    return truth(#name, RAMET_POINTWISE(name), a, b);                  \
  }                                                                    \
  Tensor& name##_out(Tensor& out, const Tensor& a, const Other& b) {   \
    return truth_out(#name "_out", RAMET_POINTWISE(name), out, a, b);  \
  }                                                                    \
  Tensor& Tensor::name##_(const Other& o) const {                      \
    return truth_in_place(#name "_", RAMET_POINTWISE(name), *this, o); \
  }
#define RAMET_LOGIC(name, Row) RAMET_TRUTH_OF(name, Tensor)
#define RAMET_COMPARE(name, Row) RAMET_TRUTH_OF(name, Tensor) RAMET_TRUTH_OF(name, Scalar)
RAMET_COMPARE_FUNCTIONS(RAMET_COMPARE)
RAMET_LOGIC_FUNCTIONS(RAMET_LOGIC)
#undef RAMET_COMPARE
#undef RAMET_LOGIC
#undef RAMET_TRUTH_OF

#define RAMET_BITS_OF(name, Left, Right)                                                           \
  Tensor& name##_out(Tensor& out, const Left& a, const Right& b) {                                 \
    return computed_out(#name "_out", out, false, OutType::kCastable, [&] { return name(a, b); }); \
  }
#define RAMET_BITS_WITH(name, Other)                 \
  Tensor name(const Tensor& a, const Other& b) {     \
    return bits(#name, RAMET_POINTWISE(name), a, b); \
  }                                                  \
  RAMET_BITS_OF(name, Tensor, Other)
#define RAMET_BITS(name, Row)                                                            \
  RAMET_BITS_WITH(name, Tensor)                                                          \
  RAMET_BITS_WITH(name, Scalar)                                                          \
  Tensor name(const Scalar& a, const Tensor& b) { return name(b, a); } /* commutative */ \
  RAMET_BITS_OF(name, Scalar, Tensor)
RAMET_BITS_FUNCTIONS(RAMET_BITS)
#undef RAMET_BITS
#undef RAMET_BITS_WITH
#undef RAMET_BITS_OF

#define RAMET_TEST(name, Row) \
  Tensor name(const Tensor& a) { return truth(#name, RAMET_POINTWISE(name), a); }
RAMET_TEST_FUNCTIONS(RAMET_TEST)
#undef RAMET_TEST

Tensor bitwise_not(const Tensor& a) {
  check_defined("bitwise_not", a);
  RAMET_CHECK(is_integral(a.scalar_type()), "bitwise_not", "expected integers or bool: got ",
              describe(a));
  if (a.scalar_type() == kBool) return logical_not(a);
  Tensor out = pointwise_result("bitwise_not", a.scalar_type(), a);
  pointwise_into(RAMET_POINTWISE(bitwise_not), out, kLong, a);
  return out;
}
Tensor& Tensor::bitwise_not_() const { return copy_(ramet::bitwise_not(*this)); }
Tensor& bitwise_not_out(Tensor& out, const Tensor& a) {
  return computed_out("bitwise_not_out", out, false, OutType::kCastable,
                      [&] { return bitwise_not(a); });
}
Tensor& Tensor::logical_not_() const { return copy_(ramet::logical_not(*this)); }
Tensor& logical_not_out(Tensor& out, const Tensor& a) {
  check_defined("logical_not_out", a);
  return pointwise_out("logical_not_out", RAMET_POINTWISE(logical_not), out, kBool,
                       compute_type(a.scalar_type()), a);
}
Tensor& isnan_out(Tensor& out, const Tensor& a) {
  return computed_out("isnan_out", out, false, OutType::kSame, [&] { return isnan(a); });
}
Tensor& isinf_out(Tensor& out, const Tensor& a) {
  return computed_out("isinf_out", out, false, OutType::kSame, [&] { return isinf(a); });
}

bool equal(const Tensor& a, const Tensor& b) {
  common_device("equal", a, b);
  if (!same_sizes(a, b)) return false;
  capture::refuse("equal", "the host reads the answer");
  return a.numel() == 0 || eq(a, b).all().item<bool>();
}

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  common_device("isclose", a, b);
  RAMET_CHECK(rtol >= 0 && atol >= 0, "isclose", "tolerances: got rtol ", rtol, " and atol ", atol,
              ", expected 0 or more");
  RAMET_CHECK(a.scalar_type() == b.scalar_type(), "isclose", a.scalar_type(), " did not match ",
              b.scalar_type());
  NoGradGuard off;
  Tensor close = eq(a, b);
  if (equal_nan && is_floating(a.scalar_type())) close.logical_or_(logical_and(isnan(a), isnan(b)));
  if (rtol == 0 && atol == 0) return close;
  // Compute every step in the tensors' dtype (integers in the default dtype). That is LibTorch's
  // rounding, so elements on the border count as close.
  const bool whole = is_integral(a.scalar_type());
  const Tensor x = a.scalar_type() == kBool ? a.to(get_default_dtype()) : a,
               y = whole ? b.to(get_default_dtype()) : b;
  const Tensor error = x.sub(y).abs(),
               allowed = y.mul(rtol).abs().add(rounded(atol, y.scalar_type()));
  return close.logical_or_(logical_and(isfinite(error), le(error, allowed)));
}
bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  capture::refuse("allclose", "the host reads the answer");
  return isclose(a, b, rtol, atol, equal_nan).all().item<bool>();
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/comparison.inc"

}  // namespace ramet
