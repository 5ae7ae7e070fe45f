// Comparisons and logic: the result is bool and carries no gradient. With broadcasting and
// promotion, as LibTorch's functions of the same names; a NaN compares unequal to everything. Out
// forms (resized where the shape differs) take any dtype and write 0 and 1, as the in-place
// methods.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#define RAMET_LOGIC(name, Row)                                    \
  RAMET_API Tensor name(const Tensor& self, const Tensor& other); \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const Tensor& other);
#define RAMET_COMPARE(name, Row)                                  \
  RAMET_LOGIC(name, Row)                                          \
  RAMET_API Tensor name(const Tensor& self, const Scalar& other); \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const Scalar& other);
/// eq ne lt le gt ge
RAMET_COMPARE_FUNCTIONS(RAMET_COMPARE)
/// logical_and, logical_or, logical_xor: anything but zero is true.
RAMET_LOGIC_FUNCTIONS(RAMET_LOGIC)
#define RAMET_TEST(name, Row) RAMET_API Tensor name(const Tensor& self);
/// logical_not, isnan, isinf, isfinite
RAMET_TEST_FUNCTIONS(RAMET_TEST)
RAMET_API Tensor& logical_not_out(Tensor& out, const Tensor& self);
RAMET_API Tensor& isnan_out(Tensor& out, const Tensor& self);
RAMET_API Tensor& isinf_out(Tensor& out, const Tensor& self);
/// bitwise_and, bitwise_or, bitwise_xor: integers and bool only. The out forms' dtype must take the
/// result's.
#define RAMET_BITS(name, Row)                                     \
  RAMET_COMPARE(name, Row)                                        \
  RAMET_API Tensor name(const Scalar& self, const Tensor& other); \
  RAMET_API Tensor& name##_out(Tensor& out, const Scalar& self, const Tensor& other);
RAMET_BITS_FUNCTIONS(RAMET_BITS)
#undef RAMET_BITS
#undef RAMET_TEST
#undef RAMET_COMPARE
#undef RAMET_LOGIC
RAMET_API Tensor bitwise_not(const Tensor& self);
RAMET_API Tensor& bitwise_not_out(Tensor& out, const Tensor& self);
/// Have both the same sizes?
inline bool is_same_size(const Tensor& self, const Tensor& other) {
  return self.is_same_size(other);
}
/// Is its element not 0? An Error unless it has one element; waits for it.
inline bool is_nonzero(const Tensor& self) { return self.is_nonzero(); }
/// Same sizes and equal elements; two dtypes are compared as eq() does.
RAMET_API bool equal(const Tensor& self, const Tensor& other);
/// |self - other| <= atol + |rtol other| everywhere, computed in their dtype (integers in the
/// default one); equal infinities are close. The dtypes must agree.
RAMET_API bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-05,
                        double atol = 1e-08, bool equal_nan = false);
/// Where |self - other| <= atol + rtol |other|, or both are the same infinity or (with equal_nan)
/// NaN: bool, not differentiable.
RAMET_API Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-05,
                         double atol = 1e-08, bool equal_nan = false);

}  // namespace ramet
