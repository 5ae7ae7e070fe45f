// Every pointwise operation: one struct with its formula, and a line in the list at the foot. The
// loops over memory are elsewhere (pointwise_loop.h on the CPU), so this file is what a reader of
// the mathematics wants to see.
//
// A formula takes values of one compute type V: a vector of floats, a double, an int64; on a GPU a
// float. a, b, c are the operands, s and t the scalars of the argument block. It is written in the
// vocabulary of smath.h (gpu_math.h on a GPU) and returns a V, or a truth value for the operations
// of the comparison list. Derivatives are noted as d/da, y is the result.
#pragma once
#if !defined(RAMET_GPU_MATH)
#include "kernels/simd/smath.h"
#endif

#define RAMET_FORMULA template <class V> static RAMET_INLINE auto

namespace ramet::kernels::RAMET_VARIANT {

// ---- arithmetic ----

// clang-format off: a formula is a line
/// a + s b.  d/da = 1, d/db = s
struct Add {
  RAMET_FORMULA f(V a, V b, V s, V) { return vadd(a, vmul(s, b)); }
};
/// a - s b.  d/da = 1, d/db = -s
struct Sub {
  RAMET_FORMULA f(V a, V b, V s, V) { return vsub(a, vmul(s, b)); }
};
/// a b.  d/da = b, d/db = a
struct Mul {
  RAMET_FORMULA f(V a, V b, V, V) { return vmul(a, b); }
};
/// a / b.  d/da = 1 / b, d/db = -y / b
struct Div {
  RAMET_FORMULA f(V a, V b, V, V) { return a / b; }
};
/// trunc(a / b).  Derivatives 0
struct DivTrunc {
  RAMET_FORMULA f(V a, V b, V, V) { return vtrunc(a / b); }
  static RAMET_INLINE int64_t f(int64_t a, int64_t b, int64_t, int64_t) { return quotient(a, b); }
};
/// Python's a // b: from the exact remainder, so that it fits `remainder`; a / b where b is 0.
/// Derivatives 0
struct DivFloor {
  RAMET_FORMULA f(V a, V b, V, V) {
    const V zero = cst<V>(0), one = cst<V>(1), m = vfmod(a, b);
    V q = (a - m) / b;
    q = pick(both(ne(m, zero), ne(keep(lt(m, zero), one), keep(lt(b, zero), one))), q - one, q);
    const V below = vfloor(q), near = pick(lt(cst<V>(0.5), q - below), below + one, below);
    const V signed_zero = zero * (a / b);  // a quotient of zero has the sign of a / b
    return pick(eq(b, zero), a / b, pick(eq(q, zero), signed_zero, near));
  }
  static RAMET_INLINE int64_t f(int64_t a, int64_t b, int64_t, int64_t) {
    const int64_t q = quotient(a, b), m = vfmod(a, b);
    return m != 0 && (m < 0) != (b < 0) ? q - 1 : q;
  }
};
/// C's fmod, the sign of a.  d/da = 1, d/db = -trunc(a / b)
struct Fmod {
  RAMET_FORMULA f(V a, V b, V, V) { return vfmod(a, b); }
};
/// Python's a % b, the sign of b.  d/da = 1, d/db = -floor(a / b)
struct Remainder {
  RAMET_FORMULA f(V a, V b, V, V) {
    const V zero = cst<V>(0), one = cst<V>(1), m = vfmod(a, b);
    return pick(both(ne(m, zero), ne(keep(lt(m, zero), one), keep(lt(b, zero), one))), vadd(m, b),
                m);
  }
};
/// a ^ b.  d/da = b a^(b-1), d/db = y log a
struct Pow {
  RAMET_FORMULA f(V a, V b, V, V) { return vpow(a, b); }
};
/// The larger; a NaN wins.  1 to the larger, halves where equal
struct Maximum {
  RAMET_FORMULA f(V a, V b, V, V) { return pick(ne(a, a), a, max(a, b)); }
};
/// The smaller; a NaN wins.
struct Minimum {
  RAMET_FORMULA f(V a, V b, V, V) { return pick(ne(a, a), a, min(a, b)); }
};
/// a + c (b - a), from the nearer end.  d/da = 1 - c, d/db = c, d/dc = b - a
struct Lerp {
  RAMET_FORMULA f(V a, V b, V c, V, V) {
    const V d = b - a;
    return pick(lt(vabs(c), cst<V>(0.5)), a + c * d, b - d * (cst<V>(1) - c));
  }
};
/// a + s b c.  d/da = 1, d/db = s c, d/dc = s b
struct Addcmul {
  RAMET_FORMULA f(V a, V b, V c, V s, V) { return vadd(a, vmul(vmul(s, b), c)); }
};
/// a + s b / c.  d/da = 1, d/db = s / c, d/dc = -s b / c^2
struct Addcdiv {
  RAMET_FORMULA f(V a, V b, V c, V s, V) { return a + s * b / c; }
};
/// (a - b)^2
struct SquaredDifference {
  RAMET_FORMULA f(V a, V b, V, V) {
    const V d = vsub(a, b);
    return vmul(d, d);
  }
};

/// a b s, the backward of dropout with b the mask.  d/da = b s
struct ScaledProduct {
  RAMET_FORMULA f(V a, V b, V s, V) { return a * (b * s); }
};

// ---- integers as bits ----

struct BitwiseAnd {
  static RAMET_INLINE int64_t f(int64_t a, int64_t b, int64_t, int64_t) { return a & b; }
};
struct BitwiseOr {
  static RAMET_INLINE int64_t f(int64_t a, int64_t b, int64_t, int64_t) { return a | b; }
};
struct BitwiseXor {
  static RAMET_INLINE int64_t f(int64_t a, int64_t b, int64_t, int64_t) { return a ^ b; }
};
struct BitwiseNot {
  static RAMET_INLINE int64_t f(int64_t a, int64_t, int64_t) { return ~a; }
};

// ---- functions of one operand ----

/// -a.  -1
struct Neg {
  RAMET_FORMULA f(V a, V, V) { return vmul(a, cst<V>(-1)); }
};
/// |a|.  sign(a)
struct Abs {
  RAMET_FORMULA f(V a, V, V) { return vabs(a); }
};
/// -1, 0 or 1; 0 for a NaN, as LibTorch.  0
struct Sign {
  RAMET_FORMULA f(V a, V, V) {
    return vsub(keep(lt(cst<V>(0), a), cst<V>(1)), keep(lt(a, cst<V>(0)), cst<V>(1)));
  }
};
/// a^2.  2 a
struct Square {
  RAMET_FORMULA f(V a, V, V) { return vmul(a, a); }
};
/// a^3.  3 a^2
struct Cube {
  RAMET_FORMULA f(V a, V, V) { return vmul(vmul(a, a), a); }
};
/// e^a.  y
struct Exp {
  RAMET_FORMULA f(V a, V, V) { return vexp(a); }
};
/// e^a - 1.  y + 1
struct Expm1 {
  RAMET_FORMULA f(V a, V, V) { return vexpm1(a); }
};
/// log a.  1 / a
struct Log {
  RAMET_FORMULA f(V a, V, V) { return vlog(a); }
};
/// log(1 + a).  1 / (1 + a)
struct Log1p {
  RAMET_FORMULA f(V a, V, V) { return vlog1p(a); }
};
/// log2 a.  1 / (a log 2)
struct Log2 {
  RAMET_FORMULA f(V a, V, V) { return vlog2(a); }
};
/// sqrt a.  1 / (2 y)
struct Sqrt {
  RAMET_FORMULA f(V a, V, V) { return sqrt(a); }
};
/// 1 / sqrt a.  -y^3 / 2
struct Rsqrt {
  RAMET_FORMULA f(V a, V, V) { return cst<V>(1) / sqrt(a); }
};
/// 1 / a.  -y^2
struct Reciprocal {
  RAMET_FORMULA f(V a, V, V) { return cst<V>(1) / a; }
};
/// sin a.  cos a
struct Sin {
  RAMET_FORMULA f(V a, V, V) { return vsin(a); }
};
/// cos a.  -sin a
struct Cos {
  RAMET_FORMULA f(V a, V, V) { return vcos(a); }
};
/// tanh a.  1 - y^2
struct Tanh {
  RAMET_FORMULA f(V a, V, V) { return vtanh(a); }
};
/// 1 / (1 + e^-a).  y (1 - y)
struct Sigmoid {
  RAMET_FORMULA f(V a, V, V) { return vsigmoid(a); }
};
/// erf a.  2 / sqrt(pi) e^(-a^2)
struct Erf {
  RAMET_FORMULA f(V a, V, V) { return verf(a); }
};
/// Rounding.  0
struct Floor {
  RAMET_FORMULA f(V a, V, V) { return vfloor(a); }
};
struct Ceil {
  RAMET_FORMULA f(V a, V, V) { return vceil(a); }
};
struct Round {
  RAMET_FORMULA f(V a, V, V) { return vround(a); }
};  // halves to even
struct Trunc {
  RAMET_FORMULA f(V a, V, V) { return vtrunc(a); }
};

// ---- activations ----

/// max(0, a), a NaN stays.  1 where a > 0
struct Relu {
  RAMET_FORMULA f(V a, V, V) { return max(cst<V>(0), a); }
};
/// a where a > 0, else s a.  1 or s
struct LeakyRelu {
  RAMET_FORMULA f(V a, V s, V) { return pick(lt(cst<V>(0), a), a, a * s); }
};
/// a Phi(a) with Phi(a) = (1 + erf(a / sqrt 2)) / 2 (Hendrycks and Gimpel 2016).  Phi(a) + a phi(a)
struct Gelu {
  RAMET_FORMULA f(V a, V, V) {
    const V h = a * cst<V>(0.5);
    return fma(h, verf(a * cst<V>(0.70710678118654752440)), h);
  }
};
/// a (1 + tanh(u)) / 2, u = sqrt(2 / pi) (a + 0.044715 a^3): the same paper's approximation.
struct GeluTanh {
  RAMET_FORMULA f(V a, V, V) {
    const V u = cst<V>(0.79788456080286535588) * (a + cst<V>(0.044715) * a * a * a),
            h = a * cst<V>(0.5);
    return fma(h, vtanh(u), h);
  }
};
/// log(1 + e^(s a)) / s; a itself where s a > t.  sigmoid(s a), 1 above t
struct Softplus {
  RAMET_FORMULA f(V a, V s, V t) { return pick(lt(t, a * s), a, vlog1p(vexp(a * s)) / s); }
};
/// a sigmoid(a).  sigmoid(a) (1 + a (1 - sigmoid(a)))
struct Silu {
  RAMET_FORMULA f(V a, V, V) { return a * vsigmoid(a); }
};

// ---- fused backwards: a is the gradient that comes in ----

/// a (1 - y^2), b = y = tanh(x)
struct TanhBackward {
  RAMET_FORMULA f(V a, V b, V, V) { return a * (cst<V>(1) - b * b); }
};
/// a y (1 - y), b = y = sigmoid(x)
struct SigmoidBackward {
  RAMET_FORMULA f(V a, V b, V, V) { return a * ((cst<V>(1) - b) * b); }
};
/// 0 where b <= s, else a (a NaN in b lets the gradient pass, as LibTorch).  b: input or, for relu,
/// output
struct ThresholdBackward {
  RAMET_FORMULA f(V a, V b, V s, V) { return pick(le(b, s), cst<V>(0), a); }
};
/// a where b > 0, else s a
struct LeakyReluBackward {
  RAMET_FORMULA f(V a, V b, V s, V) { return pick(lt(cst<V>(0), b), a, a * s); }
};
/// a (Phi(b) + b phi(b))
struct GeluBackward {
  RAMET_FORMULA f(V a, V b, V, V) {
    const V cdf = cst<V>(0.5) * (cst<V>(1) + verf(b * cst<V>(0.70710678118654752440)));
    const V pdf = cst<V>(0.39894228040143267794) * vexp(cst<V>(-0.5) * b * b);
    return a * (cdf + b * pdf);
  }
};
/// a ((1 + th) / 2 + b (1 - th^2) u' / 2), th = tanh(u(b))
struct GeluTanhBackward {
  RAMET_FORMULA f(V a, V b, V, V) {
    const V k = cst<V>(0.79788456080286535588), b2 = b * b;
    const V th = vtanh(k * (b + cst<V>(0.044715) * b2 * b)),
            slope = k * (cst<V>(1) + cst<V>(3 * 0.044715) * b2);
    return a * (cst<V>(0.5) * (cst<V>(1) + th) + cst<V>(0.5) * b * (cst<V>(1) - th * th) * slope);
  }
};
/// a sigmoid(s b); a where s b > t
struct SoftplusBackward {
  RAMET_FORMULA f(V a, V b, V s, V t) { return pick(lt(t, b * s), a, a * vsigmoid(b * s)); }
};
/// a sigmoid(b) (1 + b (1 - sigmoid(b)))
struct SiluBackward {
  RAMET_FORMULA f(V a, V b, V, V) {
    const V g = vsigmoid(b);
    return a * (g * (cst<V>(1) + b * (cst<V>(1) - g)));
  }
};
/// s a (b - c): the gradient of a squared difference, s = 2 or 2 / n
struct MseBackward {
  RAMET_FORMULA f(V a, V b, V c, V s, V) { return s * (b - c) * a; }
};

// ---- choice ----

/// b where a is not 0, else c.  The gradient goes where the value came from
struct Where {
  RAMET_FORMULA f(V a, V b, V c, V, V) { return pick(ne(a, cst<V>(0)), b, c); }
};
/// min(max(a, s), t): t where s > t; NaN in any of the three wins.  1 inside, bounds included
struct Clamp {
  RAMET_FORMULA f(V a, V s, V t) { return Minimum::f(Maximum::f(a, s, s, s), t, t, t); }
};
/// The same with bounds b and c.
struct ClampTensor {
  RAMET_FORMULA f(V a, V b, V c, V, V) { return Minimum::f(Maximum::f(a, b, b, b), c, c, c); }
};
/// a where s < b < t, else 0: the backward of clamp with scalar bounds (strict, as LibTorch 2.15).
/// An infinite bound is none
struct ClampBackward {
  RAMET_FORMULA f(V a, V b, V s, V t) {
    const V inf = cst<V>(__builtin_inf());
    return keep(both(either(lt(s, b), eq(s, cst<V>(0) - inf)), either(lt(b, t), eq(t, inf))), a);
  }
};

// ---- results that are truth values ----

struct Eq {
  RAMET_FORMULA f(V a, V b, V, V) { return eq(a, b); }
};
struct Ne {
  RAMET_FORMULA f(V a, V b, V, V) { return ne(a, b); }
};
struct Lt {
  RAMET_FORMULA f(V a, V b, V, V) { return lt(a, b); }
};
struct Le {
  RAMET_FORMULA f(V a, V b, V, V) { return le(a, b); }
};
struct Gt {
  RAMET_FORMULA f(V a, V b, V, V) { return lt(b, a); }
};
struct Ge {
  RAMET_FORMULA f(V a, V b, V, V) { return le(b, a); }
};
struct LogicalAnd {
  RAMET_FORMULA f(V a, V b, V, V) { return both(ne(a, cst<V>(0)), ne(b, cst<V>(0))); }
};
struct LogicalOr {
  RAMET_FORMULA f(V a, V b, V, V) { return either(ne(a, cst<V>(0)), ne(b, cst<V>(0))); }
};
struct LogicalXor {
  RAMET_FORMULA f(V a, V b, V, V) {
    return ne(keep(ne(a, cst<V>(0)), cst<V>(1)), keep(ne(b, cst<V>(0)), cst<V>(1)));
  }
};
struct LogicalNot {
  RAMET_FORMULA f(V a, V, V) { return eq(a, cst<V>(0)); }
};
struct IsNan {
  RAMET_FORMULA f(V a, V, V) { return ne(a, a); }
};
struct IsInf {
  RAMET_FORMULA f(V a, V, V) { return eq(vabs(a), cst<V>(__builtin_inf())); }
  static RAMET_INLINE bool f(int64_t, int64_t, int64_t) { return false; }
};
struct IsFinite {
  RAMET_FORMULA f(V a, V, V) { return lt(vabs(a), cst<V>(__builtin_inf())); }
  static RAMET_INLINE bool f(int64_t, int64_t, int64_t) { return true; }
};
// clang-format on

}  // namespace ramet::kernels::RAMET_VARIANT

#undef RAMET_FORMULA
