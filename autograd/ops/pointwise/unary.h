// Functions of one tensor, element by element: LibTorch's functions of the same names.
// kernels/pointwise/lists.h lists them with their contracts. Integers give the default
// floating-point type, unless a contract says otherwise. Each has a method and an in-place method
// of its name, an out form, and (except for sign) an in-place function. The out form resizes `out`
// where its shape differs, and needs a dtype that the result can be cast to. It makes no history
// (an Error where one would be needed).
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#define RAMET_METHOD_ALONE(name, Row)        \
  RAMET_API Tensor name(const Tensor& self); \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self);
#define RAMET_FUNCTION(name, Row) \
  RAMET_METHOD_ALONE(name, Row)   \
  RAMET_API Tensor& name##_(Tensor& self);
RAMET_UNARY_FUNCTIONS(RAMET_FUNCTION)
RAMET_UNARY_COMPOSED(RAMET_FUNCTION)
RAMET_UNARY_METHODS(RAMET_METHOD_ALONE)
#undef RAMET_FUNCTION
#undef RAMET_METHOD_ALONE

/// The n-th derivative of digamma, n >= 0; for n > 0 it is infinite at 0, -1, -2, ... Also as the
/// methods self.polygamma(n) and self.polygamma_(n).
RAMET_API Tensor polygamma(int64_t n, const Tensor& self);
RAMET_API Tensor& polygamma_out(Tensor& out, int64_t n, const Tensor& self);

#include "autograd/forms/functions.inc"
#include "autograd/ops/pointwise/unary.inc"

/// (mantissa, exponent) with self = mantissa 2^exponent and 1/2 <= |mantissa| < 1; the exponent is
/// int32. 0, infinities and NaN are mantissas with exponent 0. Floating-point types. Also as the
/// method self.frexp().
RAMET_API std::tuple<Tensor, Tensor> frexp(const Tensor& self);
RAMET_API std::tuple<Tensor&, Tensor&> frexp_out(Tensor& mantissa, Tensor& exponent,
                                                 const Tensor& self);

}  // namespace ramet
