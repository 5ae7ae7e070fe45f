// Comparisons and logic: the result is bool and carries no gradient. They broadcast and promote, as
// LibTorch's functions of the same names. A NaN is unequal to everything. Out forms (resized where
// the shape differs) take any dtype and write 0 and 1, as the in-place methods do.
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
/// bitwise_and, bitwise_or, bitwise_xor: integers and bool only. The result must be castable to the
/// dtype of an out form's `out`.
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
/// Do both have the same sizes?
inline bool is_same_size(const Tensor& self, const Tensor& other) {
  return self.is_same_size(other);
}
/// Is its element not 0? An Error unless it has exactly one element. Waits for its value.
inline bool is_nonzero(const Tensor& self) { return self.is_nonzero(); }
/// Do both have the same sizes and equal elements? Different dtypes are compared as by eq().
RAMET_API bool equal(const Tensor& self, const Tensor& other);
/// Is |self - other| <= atol + |rtol other| everywhere? Computed in their dtype (integers in the
/// default one); equal infinities are close. The dtypes must agree.
RAMET_API bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-05,
                        double atol = 1e-08, bool equal_nan = false);
/// A bool tensor: where |self - other| <= atol + rtol |other|, or where both are the same infinity
/// or (with equal_nan) NaN. Not differentiable.
RAMET_API Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-05,
                         double atol = 1e-08, bool equal_nan = false);

}  // namespace ramet
