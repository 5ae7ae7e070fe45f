// Functions of one tensor, element by element: LibTorch's functions of the same names. Integers
// give the default floating-point type, except where a comment says "any type". Each has a method
// and an in-place method of its name, an in-place function and an out form; the latter resizes
// `out` where its shape differs, needs a dtype that the result can be cast to, and makes no history
// (an Error where one would be needed).
#pragma once
#include "autograd/tensor.h"

namespace ramet {

RAMET_API Tensor neg(const Tensor& self);     ///< -x, any type but bool
RAMET_API Tensor abs(const Tensor& self);     ///< |x|, any type but bool; derivative at 0 is 0
RAMET_API Tensor sign(const Tensor& self);    ///< -1, 0 or 1, any type; derivative 0
RAMET_API Tensor square(const Tensor& self);  ///< x^2, any type; int64 of bool
RAMET_API Tensor exp(const Tensor& self);
RAMET_API Tensor expm1(const Tensor& self);  ///< exp(x) - 1, accurate near 0
RAMET_API Tensor log(const Tensor& self);    ///< natural; -inf at 0, NaN below
RAMET_API Tensor log1p(const Tensor& self);  ///< log(1 + x), accurate near 0
RAMET_API Tensor log2(const Tensor& self);
RAMET_API Tensor log10(const Tensor& self);
RAMET_API Tensor sqrt(const Tensor& self);
RAMET_API Tensor rsqrt(const Tensor& self);       ///< 1 / sqrt(x)
RAMET_API Tensor reciprocal(const Tensor& self);  ///< 1 / x
RAMET_API Tensor sin(const Tensor& self);
RAMET_API Tensor cos(const Tensor& self);
RAMET_API Tensor tan(const Tensor& self);
RAMET_API Tensor tanh(const Tensor& self);
RAMET_API Tensor sigmoid(const Tensor& self);  ///< 1 / (1 + exp(-x))
RAMET_API Tensor erf(const Tensor& self);
///< max(0, x), any type but bool; a NaN stays; derivative at 0 is 0
RAMET_API Tensor relu(const Tensor& self);
///< integers unchanged, not for bool; derivative 0, as for the next three
RAMET_API Tensor floor(const Tensor& self);
RAMET_API Tensor ceil(const Tensor& self);
RAMET_API Tensor round(const Tensor& self);  ///< halves to even
RAMET_API Tensor trunc(const Tensor& self);

#define RAMET_UNARY_FORMS(name)            \
  RAMET_API Tensor& name##_(Tensor& self); \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self);
RAMET_UNARY_FORMS(neg)
RAMET_UNARY_FORMS(abs)
RAMET_UNARY_FORMS(square)
RAMET_UNARY_FORMS(exp)
RAMET_UNARY_FORMS(expm1)
RAMET_UNARY_FORMS(log)
RAMET_UNARY_FORMS(log1p)
RAMET_UNARY_FORMS(log2)
RAMET_UNARY_FORMS(log10)
RAMET_UNARY_FORMS(sqrt)
RAMET_UNARY_FORMS(rsqrt)
RAMET_UNARY_FORMS(reciprocal)
RAMET_UNARY_FORMS(sin)
RAMET_UNARY_FORMS(cos)
RAMET_UNARY_FORMS(tan)
RAMET_UNARY_FORMS(tanh)
RAMET_UNARY_FORMS(sigmoid)
RAMET_UNARY_FORMS(erf)
RAMET_UNARY_FORMS(relu)
RAMET_UNARY_FORMS(floor)
RAMET_UNARY_FORMS(ceil)
RAMET_UNARY_FORMS(round)
RAMET_UNARY_FORMS(trunc)
#undef RAMET_UNARY_FORMS
RAMET_API Tensor& sign_out(Tensor& out, const Tensor& self);

/// grad * (1 - y^2): the derivative of tanh at its result y. Differentiable in both.
RAMET_API Tensor tanh_backward(const Tensor& grad, const Tensor& output);
/// grad * y * (1 - y).
RAMET_API Tensor sigmoid_backward(const Tensor& grad, const Tensor& output);
/// grad where x > threshold, 0 elsewhere. Differentiable in grad.
RAMET_API Tensor threshold_backward(const Tensor& grad, const Tensor& self,
                                    const Scalar& threshold);

}  // namespace ramet
