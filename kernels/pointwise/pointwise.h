// Pointwise kernels: two for each operation, `name` over dense operands and `name_strided` over
// any.
//
// The operations are listed here once; each list is compiled in a file of its own
// (pointwise_<list>.cc), their formulas are in pointwise_ops.h. An entry is X(kernel, struct,
// operands, compute types, result).
#pragma once
#include <cstdint>

#include "kernels/copy/view.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Compute types an operation exists for.
enum PointwiseTypes : uint8_t { kOnFloating = 1, kOnInteger = 2, kOnAny = 3 };
/// What it gives: values of the compute type, or truth values.
enum class PointwiseResult : uint8_t { kValue, kTruth };

#define RAMET_ARITHMETIC_OPS(X)                               \
  X(add, Add, 2, kOnAny, kValue)                              \
  X(sub, Sub, 2, kOnAny, kValue)                              \
  X(mul, Mul, 2, kOnAny, kValue)                              \
  X(div, Div, 2, kOnFloating, kValue)                         \
  X(div_trunc, DivTrunc, 2, kOnAny, kValue)                   \
  X(div_floor, DivFloor, 2, kOnAny, kValue)                   \
  X(fmod, Fmod, 2, kOnAny, kValue)                            \
  X(remainder, Remainder, 2, kOnAny, kValue)                  \
  X(pow, Pow, 2, kOnAny, kValue)                              \
  X(maximum, Maximum, 2, kOnAny, kValue)                      \
  X(minimum, Minimum, 2, kOnAny, kValue)                      \
  X(squared_difference, SquaredDifference, 2, kOnAny, kValue) \
  X(scaled_product, ScaledProduct, 2, kOnFloating, kValue)    \
  X(bitwise_and, BitwiseAnd, 2, kOnInteger, kValue)           \
  X(bitwise_or, BitwiseOr, 2, kOnInteger, kValue)             \
  X(bitwise_xor, BitwiseXor, 2, kOnInteger, kValue)           \
  X(bitwise_not, BitwiseNot, 1, kOnInteger, kValue)

#define RAMET_UNARY_OPS(X)                          \
  X(neg, Neg, 1, kOnAny, kValue)                    \
  X(abs, Abs, 1, kOnAny, kValue)                    \
  X(sign, Sign, 1, kOnAny, kValue)                  \
  X(square, Square, 1, kOnAny, kValue)              \
  X(cube, Cube, 1, kOnAny, kValue)                  \
  X(exp, Exp, 1, kOnFloating, kValue)               \
  X(expm1, Expm1, 1, kOnFloating, kValue)           \
  X(log, Log, 1, kOnFloating, kValue)               \
  X(log1p, Log1p, 1, kOnFloating, kValue)           \
  X(log2, Log2, 1, kOnFloating, kValue)             \
  X(sqrt, Sqrt, 1, kOnFloating, kValue)             \
  X(rsqrt, Rsqrt, 1, kOnFloating, kValue)           \
  X(reciprocal, Reciprocal, 1, kOnFloating, kValue) \
  X(sin, Sin, 1, kOnFloating, kValue)               \
  X(cos, Cos, 1, kOnFloating, kValue)               \
  X(tanh, Tanh, 1, kOnFloating, kValue)             \
  X(sigmoid, Sigmoid, 1, kOnFloating, kValue)       \
  X(erf, Erf, 1, kOnFloating, kValue)               \
  X(floor, Floor, 1, kOnFloating, kValue)           \
  X(ceil, Ceil, 1, kOnFloating, kValue)             \
  X(round, Round, 1, kOnFloating, kValue)           \
  X(trunc, Trunc, 1, kOnFloating, kValue)

#define RAMET_ACTIVATION_OPS(X)                                     \
  X(relu, Relu, 1, kOnAny, kValue)                                  \
  X(leaky_relu, LeakyRelu, 1, kOnFloating, kValue)                  \
  X(gelu, Gelu, 1, kOnFloating, kValue)                             \
  X(gelu_tanh, GeluTanh, 1, kOnFloating, kValue)                    \
  X(softplus, Softplus, 1, kOnFloating, kValue)                     \
  X(silu, Silu, 1, kOnFloating, kValue)                             \
  X(tanh_backward, TanhBackward, 2, kOnFloating, kValue)            \
  X(sigmoid_backward, SigmoidBackward, 2, kOnFloating, kValue)      \
  X(threshold_backward, ThresholdBackward, 2, kOnFloating, kValue)  \
  X(leaky_relu_backward, LeakyReluBackward, 2, kOnFloating, kValue) \
  X(gelu_backward, GeluBackward, 2, kOnFloating, kValue)            \
  X(gelu_tanh_backward, GeluTanhBackward, 2, kOnFloating, kValue)   \
  X(softplus_backward, SoftplusBackward, 2, kOnFloating, kValue)    \
  X(silu_backward, SiluBackward, 2, kOnFloating, kValue)            \
  X(clamp, Clamp, 1, kOnAny, kValue)                                \
  X(clamp_backward, ClampBackward, 2, kOnFloating, kValue)          \
  X(lerp, Lerp, 3, kOnFloating, kValue)                             \
  X(addcmul, Addcmul, 3, kOnAny, kValue)                            \
  X(addcdiv, Addcdiv, 3, kOnFloating, kValue)                       \
  X(mse_backward, MseBackward, 3, kOnFloating, kValue)              \
  X(where, Where, 3, kOnAny, kValue)                                \
  X(clamp_tensor, ClampTensor, 3, kOnAny, kValue)

#define RAMET_COMPARE_OPS(X)                    \
  X(eq, Eq, 2, kOnAny, kTruth)                  \
  X(ne, Ne, 2, kOnAny, kTruth)                  \
  X(lt, Lt, 2, kOnAny, kTruth)                  \
  X(le, Le, 2, kOnAny, kTruth)                  \
  X(gt, Gt, 2, kOnAny, kTruth)                  \
  X(ge, Ge, 2, kOnAny, kTruth)                  \
  X(logical_and, LogicalAnd, 2, kOnAny, kTruth) \
  X(logical_or, LogicalOr, 2, kOnAny, kTruth)   \
  X(logical_xor, LogicalXor, 2, kOnAny, kTruth) \
  X(logical_not, LogicalNot, 1, kOnAny, kTruth) \
  X(isnan, IsNan, 1, kOnAny, kTruth)            \
  X(isinf, IsInf, 1, kOnAny, kTruth)            \
  X(isfinite, IsFinite, 1, kOnAny, kTruth)

#define RAMET_POINTWISE_OPS(X) \
  RAMET_ARITHMETIC_OPS(X) RAMET_UNARY_OPS(X) RAMET_ACTIVATION_OPS(X) RAMET_COMPARE_OPS(X)

/// A scalar of the compute type: `d` for float and double, `i` for int64.
union Number {
  double d;
  int64_t i;
};

/// out[i] = f(a[i], b[i], c[i]; s, t) for i < n. All operands are dense, in memory order alike.
/// One of the operands an operation takes may be null: then it is the number `t` for every i (so a
/// binary operation takes a scalar on either side). Operands it does not take are ignored.
/// REQUIRES: the operation exists for `compute` (Float, Double or Long); out overlaps an operand
/// entirely or not at all. Operands of other types are converted to the compute type, the result to
/// the type of `out`, a chunk at a time.
struct PointwiseArgs {
  const void *a, *b, *c;
  void* out;
  int64_t n;
  Number s, t;
  ScalarType a_type, b_type, c_type, out_type, compute;
};

/// The same over `rank` dimensions with strides in elements (0 where an operand is broadcast);
/// order: out, a, b, c. Fastest after coalesce(). REQUIRES: out's elements are distinct.
struct PointwiseStridedArgs {
  void* data[4];
  ScalarType type[4];
  ScalarType compute;
  int32_t rank;
  Number s, t;
  int64_t sizes[kMaxKernelRank];
  int64_t strides[4][kMaxKernelRank];
};

#define RAMET_X(name, Struct, operands, types, result) \
  RAMET_KERNEL(name, PointwiseArgs);                   \
  RAMET_KERNEL(name##_strided, PointwiseStridedArgs);
RAMET_POINTWISE_OPS(RAMET_X)
#undef RAMET_X

}  // namespace kernels
}  // namespace ramet
