// Rows of sums, products, quotients, powers and bits (kernels/pointwise/row.h).
#pragma once
#include "kernels/pointwise/row.h"

namespace RAMET_ROWS {

using kernels::kNoOperand, kernels::kA, kernels::kB, kernels::kC;

struct Binary : kernels::Row {
  static constexpr int kOperands = 2;
};
struct Ternary : kernels::Row {
  static constexpr int kOperands = 3;
};
/// For operations where the first operand's gradient is that of the result.
struct Passing : Binary {
  static constexpr int kReads[] = {kNoOperand, kNoOperand};
  template <class T, class... Others> static T gradient_a(const T& g, const Others&...) {
    return g;
  }
};
struct Bits : Binary {
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnInteger;
};
/// a + alpha b
struct Add : Passing {
  RAMET_FORMULA value(V a, V b, V alpha) { return vadd(a, vmul(alpha, b)); }
  template <class T, class S> static T gradient_b(const T& g, const T&, const T&, const S& alpha) {
    return times(g, alpha);
  }
};
/// a - alpha b
struct Sub : Passing {
  RAMET_FORMULA value(V a, V b, V alpha) { return vsub(a, vmul(alpha, b)); }
  template <class T, class S> static T gradient_b(const T& g, const T&, const T&, const S& alpha) {
    return neg(times(g, alpha));
  }
};
/// a b
struct Mul : Binary {
  RAMET_FORMULA value(V a, V b) { return vmul(a, b); }
  static constexpr int kReads[] = {kB, kA};
  template <class T, class B> static T gradient_a(const T& g, const T&, const B& b) {
    return mul(g, b);
  }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T&) { return mul(g, a); }
};
/// a / b
struct Div : Binary {
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnFloating;
  RAMET_FORMULA value(V a, V b) { return a / b; }
  static constexpr int kReads[] = {kB, kA | kB};
  template <class T, class B> static T gradient_a(const T& g, const T&, const B& b) {
    return div(g, b);
  }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) {
    return mul(neg(g), div(div(a, b), b));
  }
};
/// a / b without its fraction.
struct DivTrunc : Binary {
  RAMET_FORMULA value(V a, V b) {
    if constexpr (std::is_integral<V>::value) return quotient(a, b);
    else return vtrunc(a / b);
  }
};
/// Python's a // b: from the exact remainder, so that it agrees with `remainder`; a / b where b is
/// 0.
struct DivFloor : Binary {
  RAMET_FORMULA value(V a, V b) {
    if constexpr (std::is_integral<V>::value) {
      const V q = quotient(a, b), m = vfmod(a, b);
      return m != 0 && (m < 0) != (b < 0) ? q - 1 : q;
    } else {
      const V zero = cst<V>(0), one = cst<V>(1), m = vfmod(a, b);
      V q = (a - m) / b;
      q = pick(both(ne(m, zero), ne(keep(lt(m, zero), one), keep(lt(b, zero), one))), q - one, q);
      const V below = vfloor(q), near = pick(lt(cst<V>(0.5), q - below), below + one, below);
      const V signed_zero = zero * (a / b);  // a quotient of zero has the sign of a / b
      return pick(eq(b, zero), a / b, pick(eq(q, zero), signed_zero, near));
    }
  }
};
/// C's fmod: the remainder, with the sign of a.
struct Fmod : Passing {
  RAMET_FORMULA value(V a, V b) { return vfmod(a, b); }
  static constexpr int kReads[] = {kNoOperand, kA | kB};
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) {
    return neg(mul(g, div(a, b, "trunc")));
  }
};
/// Python's a % b: with the sign of b.
struct Remainder : Passing {
  RAMET_FORMULA value(V a, V b) {
    const V zero = cst<V>(0), one = cst<V>(1), m = vfmod(a, b);
    return pick(both(ne(m, zero), ne(keep(lt(m, zero), one), keep(lt(b, zero), one))), vadd(m, b),
                m);
  }
  static constexpr int kReads[] = {kNoOperand, kA | kB};
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) {
    return neg(mul(g, div(a, b, "floor")));
  }
};
/// a ^ b
struct Pow : Binary {
  RAMET_FORMULA value(V a, V b) { return vpow(a, b); }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    return where(eq(b, 0), 0, mul(g, mul(b, pow(a, sub(b, 1)))));
  }
  // g y log a; 0 where a is 0 and b is not negative. The logarithm of whole numbers has the
  // precision of y.
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b, const T& y) {
    return where(logical_and(eq(a, 0), ge(b, 0)), 0, mul(g, mul(y, log(a.to(y.scalar_type())))));
  }
};
/// a + weight (b - a), from the nearer end.
struct Lerp : Ternary {
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnFloating;
  RAMET_FORMULA value(V a, V b, V weight) {
    const V d = b - a;
    return pick(lt(vabs(weight), cst<V>(0.5)), a + weight * d, b - d * (cst<V>(1) - weight));
  }
  static constexpr int kReads[] = {kC, kC, kA | kB};
  template <class T, class W> static T gradient_a(const T& g, const T&, const T&, const W& weight) {
    return mul(g, one_minus(weight));
  }
  template <class T, class W> static T gradient_b(const T& g, const T&, const T&, const W& weight) {
    return mul(g, weight);
  }
  RAMET_GRADIENT gradient_c(const T& g, const T& a, const T& b, const T&) {
    return mul(g, sub(b, a));
  }
};
/// a + s b c
struct Addcmul : Ternary {
  RAMET_FORMULA value(V a, V b, V c, V s) { return vadd(a, vmul(vmul(s, b), c)); }
  static constexpr int kReads[] = {kNoOperand, kC, kB};
  template <class T, class S>
  static T gradient_a(const T& g, const T&, const T&, const T&, const S&) {
    return g;
  }
  template <class T, class S>
  static T gradient_b(const T& g, const T&, const T&, const T& c, const S& s) {
    return mul(g, times(c, s));
  }
  template <class T, class S>
  static T gradient_c(const T& g, const T&, const T& b, const T&, const S& s) {
    return mul(g, times(b, s));
  }
};
/// a + s b / c
struct Addcdiv : Ternary {
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnFloating;
  RAMET_FORMULA value(V a, V b, V c, V s) { return a + s * b / c; }
  static constexpr int kReads[] = {kNoOperand, kC, kB | kC};
  template <class T, class S>
  static T gradient_a(const T& g, const T&, const T&, const T&, const S&) {
    return g;
  }
  template <class T, class S>
  static T gradient_b(const T& g, const T&, const T&, const T& c, const S& s) {
    return times(div(g, c), s);
  }
  template <class T, class S>
  static T gradient_c(const T& g, const T&, const T& b, const T& c, const S& s) {
    return neg(times(mul(g, div(b, mul(c, c))), s));
  }
};
/// (a - b)^2
struct SquaredDifference : Binary {
  RAMET_FORMULA value(V a, V b) {
    const V d = vsub(a, b);
    return vmul(d, d);
  }
};
/// s g (a - b): the gradient of a squared difference, s = 2 or 2 / n.
struct MseBackward : Ternary {
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnFloating;
  RAMET_FORMULA value(V g, V a, V b, V s) { return s * (a - b) * g; }
};
/// a b s: the gradient of dropout with b the mask.
struct ScaledProduct : Binary {
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnFloating;
  RAMET_FORMULA value(V a, V b, V s) { return a * (b * s); }
};
/// a & b, of integers and bool.
struct BitwiseAnd : Bits {
  RAMET_FORMULA value(V a, V b) { return a & b; }
};
/// a | b, of integers and bool.
struct BitwiseOr : Bits {
  RAMET_FORMULA value(V a, V b) { return a | b; }
};
/// a ^ b, of integers and bool.
struct BitwiseXor : Bits {
  RAMET_FORMULA value(V a, V b) { return a ^ b; }
};
/// ~x, of integers and bool.
struct BitwiseNot : kernels::Row {
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnInteger;
  RAMET_FORMULA value(V x) { return ~x; }
};

}  // namespace RAMET_ROWS
