// The names of all pointwise operations: X(name, Row). Row is the struct of
// kernels/pointwise/rows/<family>.h with the formula and its derivative. There are only names here,
// because headers of tensor functions include this file.
//
// A name gives its two kernels (pointwise.h). A name in a list of functions also gives declarations
// and definitions in autograd. The operation table (tests/autograd/table) takes functions of one
// tensor, comparisons, logical and bit functions from these lists. The comparison with LibTorch
// (tools/compare) takes functions of one tensor and logical ones. All others, such as those of
// pairs, have rows and cases of their own there.
#pragma once

// Each name has its own line, and does not move other lines.
// clang-format off

// ---- unary.h: autograd/ops/pointwise/unary.h ----

/// Functions of one tensor: name(x), name_(x), name_out(out, x), x.name(), x.name_().
#define RAMET_UNARY_FUNCTIONS(X) \
  X(neg, Neg)                    \
  X(abs, Abs)                    \
  X(square, Square)              \
  X(exp, Exp)                    \
  X(exp2, Exp2)                  \
  X(expm1, Expm1)                \
  X(log, Log)                    \
  X(log1p, Log1P)                \
  X(log2, Log2)                  \
  X(sqrt, Sqrt)                  \
  X(rsqrt, Rsqrt)                \
  X(reciprocal, Reciprocal)      \
  X(sin, Sin)                    \
  X(cos, Cos)                    \
  X(asin, Asin)                  \
  X(acos, Acos)                  \
  X(atan, Atan)                  \
  X(sinh, Sinh)                  \
  X(cosh, Cosh)                  \
  X(tanh, Tanh)                  \
  X(asinh, Asinh)                \
  X(acosh, Acosh)                \
  X(atanh, Atanh)                \
  X(sigmoid, Sigmoid)            \
  X(erf, Erf)                    \
  X(erfc, Erfc)                  \
  X(lgamma, Lgamma)              \
  X(digamma, Digamma)            \
  X(deg2rad, Deg2Rad)            \
  X(rad2deg, Rad2Deg)            \
  X(relu, Relu)                  \
  X(floor, Floor)                \
  X(ceil, Ceil)                  \
  X(round, Round)                \
  X(trunc, Trunc)                \
  X(frac, Frac)                  \
  X(sinc, Sinc)
/// The same without name_(x), as in LibTorch.
#define RAMET_UNARY_METHODS(X)   \
  X(sign, Sign)                  \
  X(erfinv, Erfinv)
/// Like the first, without a kernel: compositions in autograd/ops/pointwise/unary.cc.
#define RAMET_UNARY_COMPOSED(X)                        \
  X(log10, Log10) /* to base 10; -inf at 0, NaN below */ \
  X(tan, Tan)     /* sin x / cos x */
/// Only kernels, which other operations use. Here and below.
#define RAMET_UNARY_PARTS(X)           \
  X(cube, Cube)                        \
  X(polygamma, Polygamma)              \
  X(sinc_derivative, SincDerivative)   \
  X(logit, Logit)                      \
  X(nan_to_num, NanToNum)              \
  X(frexp_exponent, FrexpExponent)
#define RAMET_UNARY_OPS(X) RAMET_UNARY_FUNCTIONS(X) RAMET_UNARY_METHODS(X) RAMET_UNARY_PARTS(X)

// ---- activation.h: autograd/ops/pointwise/activation.h ----

#define RAMET_ACTIVATION_OPS(X)             \
  X(leaky_relu, LeakyRelu)                  \
  X(leaky_relu_backward, LeakyReluBackward) \
  X(threshold_backward, ThresholdBackward)  \
  X(tanh_backward, TanhBackward)            \
  X(sigmoid_backward, SigmoidBackward)      \
  X(gelu, Gelu)                             \
  X(gelu_backward, GeluBackward)            \
  X(gelu_tanh, GeluTanh)                    \
  X(gelu_tanh_backward, GeluTanhBackward)   \
  X(softplus, Softplus)                     \
  X(softplus_backward, SoftplusBackward)    \
  X(silu, Silu)                             \
  X(silu_backward, SiluBackward)

// ---- choice.h: autograd/ops/pointwise/where.h ----

#define RAMET_CHOICE_OPS(X)    \
  X(maximum, Maximum)          \
  X(minimum, Minimum)          \
  X(where, Where)              \
  X(clamp, Clamp)              \
  X(clamp_tensor, ClampTensor) \
  X(clamp_backward, ClampBackward)

// ---- arithmetic.h: autograd/ops/pointwise/arithmetic.h, power.h ----

/// For integers, with the forms of comparisons and name(number, y), name_out(out, number, y).
#define RAMET_BITS_FUNCTIONS(X)                                                               \
  X(bitwise_and, BitwiseAnd)                                                                  \
  X(bitwise_or, BitwiseOr)                                                                    \
  X(bitwise_xor, BitwiseXor)
#define RAMET_ARITHMETIC_OPS(X)            \
  X(add, Add)                              \
  X(sub, Sub)                              \
  X(mul, Mul)                              \
  X(div, Div)                              \
  X(div_trunc, DivTrunc)                   \
  X(div_floor, DivFloor)                   \
  X(fmod, Fmod)                            \
  X(remainder, Remainder)                  \
  X(pow, Pow)                              \
  X(lerp, Lerp)                            \
  X(addcmul, Addcmul)                      \
  X(addcdiv, Addcdiv)                      \
  X(squared_difference, SquaredDifference) \
  X(mse_backward, MseBackward)             \
  X(scaled_product, ScaledProduct)         \
  RAMET_BITS_FUNCTIONS(X)                                                                     \
  X(bitwise_not, BitwiseNot)

// ---- pair.h: autograd/ops/pointwise/pair.h ----

/// Functions of two tensors: name(x, y), name_out(out, x, y), x.name(y), x.name_(y).
#define RAMET_PAIR_FUNCTIONS(X)    \
  X(atan2, Atan2)                  \
  X(hypot, Hypot)                  \
  X(copysign, Copysign)            \
  X(xlogy, Xlogy)                  \
  X(ldexp, Ldexp)                  \
  X(gcd, Gcd)                      \
  X(lcm, Lcm)                      \
  X(bitwise_left_shift, LeftShift) \
  X(bitwise_right_shift, RightShift)
/// The same without x.name_(y), as in LibTorch.
#define RAMET_PAIR_METHODS(X) \
  X(logaddexp, Logaddexp)     \
  X(logaddexp2, Logaddexp2)   \
  X(fmax, Fmax)               \
  X(fmin, Fmin)
#define RAMET_PAIR_OPS(X) RAMET_PAIR_FUNCTIONS(X) RAMET_PAIR_METHODS(X) X(heaviside, Heaviside)

// ---- fused.h: autograd/ops/loss/loss.h, activation_composed.h ----

#define RAMET_FUSED_OPS(X)         \
  X(glu, Glu)                      \
  X(glu_backward, GluBackward)     \
  X(huber, Huber)                  \
  X(huber_backward, HuberBackward) \
  X(bce_logits, BceLogits)         \
  X(bce_logits_backward, BceLogitsBackward)

// ---- compare.h: autograd/ops/pointwise/comparison.h ----

/// For two tensors, or tensor and number: name(x, y), name_out(out, x, y), x.name(y), x.name_(y).
#define RAMET_COMPARE_FUNCTIONS(X)                                                            \
  X(eq, Eq)                                                                                   \
  X(ne, Ne)                                                                                   \
  X(lt, Lt)                                                                                   \
  X(le, Le)                                                                                   \
  X(gt, Gt)                                                                                   \
  X(ge, Ge)
/// The same for two tensors: anything but zero is true.
#define RAMET_LOGIC_FUNCTIONS(X)                                                              \
  X(logical_and, LogicalAnd)                                                                  \
  X(logical_or, LogicalOr)                                                                    \
  X(logical_xor, LogicalXor)
/// For one tensor: name(x), x.name().
#define RAMET_TEST_FUNCTIONS(X)                                                               \
  X(logical_not, LogicalNot)                                                                  \
  X(isnan, IsNan)                                                                             \
  X(isinf, IsInf)                                                                             \
  X(isfinite, IsFinite)
#define RAMET_COMPARISON_OPS(X)                                                                  \
  RAMET_COMPARE_FUNCTIONS(X) RAMET_LOGIC_FUNCTIONS(X) RAMET_TEST_FUNCTIONS(X)

#define RAMET_POINTWISE_OPS(X) \
  RAMET_UNARY_OPS(X)           \
  RAMET_ACTIVATION_OPS(X) RAMET_CHOICE_OPS(X) RAMET_ARITHMETIC_OPS(X) RAMET_PAIR_OPS(X) RAMET_FUSED_OPS(X) \
  RAMET_COMPARISON_OPS(X)
// clang-format on
