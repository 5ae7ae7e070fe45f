// Comparisons and logic: the result is bool and carries no gradient. With broadcasting and
// promotion, as LibTorch's functions of the same names; a NaN compares unequal to everything. Out
// forms (resized where the shape differs) take any dtype and write 0 and 1, as the in-place
// methods.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#define RAMET_COMPARE(name)                                                           \
  RAMET_API Tensor name(const Tensor& self, const Tensor& other);                     \
  RAMET_API Tensor name(const Tensor& self, const Scalar& other);                     \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const Tensor& other); \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const Scalar& other);
RAMET_COMPARE(eq)
RAMET_COMPARE(ne)
RAMET_COMPARE(lt)
RAMET_COMPARE(le)
RAMET_COMPARE(gt)
RAMET_COMPARE(ge)
#undef RAMET_COMPARE
/// Anything but zero is true.
#define RAMET_LOGIC(name)                                         \
  RAMET_API Tensor name(const Tensor& self, const Tensor& other); \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_LOGIC(logical_and)
RAMET_LOGIC(logical_or)
RAMET_LOGIC(logical_xor)
#undef RAMET_LOGIC
RAMET_API Tensor logical_not(const Tensor& self);
RAMET_API Tensor& logical_not_out(Tensor& out, const Tensor& self);
RAMET_API Tensor isnan(const Tensor& self);
RAMET_API Tensor& isnan_out(Tensor& out, const Tensor& self);
RAMET_API Tensor isinf(const Tensor& self);
RAMET_API Tensor& isinf_out(Tensor& out, const Tensor& self);
RAMET_API Tensor isfinite(const Tensor& self);
/// Bit by bit; integers and bool only. The out forms' dtype must take the result's.
#define RAMET_BITS(name)                                                              \
  RAMET_API Tensor name(const Tensor& self, const Tensor& other);                     \
  RAMET_API Tensor name(const Tensor& self, const Scalar& other);                     \
  RAMET_API Tensor name(const Scalar& self, const Tensor& other);                     \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const Tensor& other); \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const Scalar& other); \
  RAMET_API Tensor& name##_out(Tensor& out, const Scalar& self, const Tensor& other);
RAMET_BITS(bitwise_and)
RAMET_BITS(bitwise_or)
RAMET_BITS(bitwise_xor)
#undef RAMET_BITS
RAMET_API Tensor bitwise_not(const Tensor& self);
RAMET_API Tensor& bitwise_not_out(Tensor& out, const Tensor& self);
/// Same sizes and equal elements; two dtypes are compared as eq() does.
RAMET_API bool equal(const Tensor& self, const Tensor& other);
/// |self - other| <= atol + |rtol other| everywhere, computed in their dtype (integers in the
/// default one); equal infinities are close. The dtypes must agree.
RAMET_API bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-05,
                        double atol = 1e-08, bool equal_nan = false);
RAMET_API Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-05,
                         double atol = 1e-08, bool equal_nan = false);

}  // namespace ramet
