// Rows of functions of two tensors (kernels/pointwise/row.h). Contracts call the operands self and
// other, as the functions do; formulas call them a and b.
#pragma once
#include "kernels/pointwise/rows/choice.h"

namespace RAMET_ROWS {

using kernels::kA, kernels::kB, kernels::Integers;

/// For floating-point values; the gradients read both operands.
struct OfTwo : kernels::Row {
  static constexpr int kOperands = 2;
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnFloating;
  static constexpr Integers kIntegers = Integers::kPromoted;
  static constexpr int kReads[] = {kA | kB, kA | kB};
};
/// The same where integers are refused.
struct OfTwoNumbers : OfTwo {
  static constexpr Integers kIntegers = Integers::kRefused;
};

/// The angle of the point (other, self), in [-pi, pi]. At the origin the derivative is 0. Integers
/// give the default floating type.
struct Atan2 : OfTwo {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kWidest;
  RAMET_FORMULA value(V a, V b) { return vatan2(a, b); }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    // Squares of small integers would wrap around.
    const T squares = add(square(a.to(g.scalar_type())), square(b.to(g.scalar_type())));
    return mul(mul(g, b), where(eq(squares, 0), 0, reciprocal(squares)));
  }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) { return gradient_a(neg(g), b, a); }
};
/// sqrt(self^2 + other^2), without overflow on the way. Not for integers.
struct Hypot : OfTwoNumbers {
  RAMET_FORMULA value(V a, V b) { return vhypot(a, b); }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    return mul(g, div(a, hypot(a, b)));
  }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) { return gradient_a(g, b, a); }
};
/// |self| with the sign of `other`, also where `other` is a zero or NaN. Integers give the default
/// floating type.
struct Copysign : OfTwo {
  RAMET_FORMULA value(V a, V b) { return vcopysign(a, b); }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    return mul(g, where(eq(a, 0), 0, div(copysign(a, b), a)));
  }
  RAMET_GRADIENT gradient_b(const T& g, const T&, const T&) { return zeros_like(g); }
};
/// log(e^self + e^other), without overflow on the way. Not for integers.
struct Logaddexp : OfTwoNumbers {
  RAMET_FORMULA value(V a, V b) {
    const V smaller = vexp(cst<V>(0) - vabs(a - b));
    return max(a, b) + pick(eq(a, b), cst<V>(0.6931471805599453), vlog1p(smaller));
  }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    return div(g, add(exp(sub(b, a)), 1));
  }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) { return gradient_a(g, b, a); }
};
/// The same to base 2.
struct Logaddexp2 : OfTwoNumbers {
  RAMET_FORMULA value(V a, V b) {
    const V smaller = vexp2(cst<V>(0) - vabs(a - b));
    return max(a, b) + pick(eq(a, b), cst<V>(1), vlog1p(smaller) * cst<V>(1.4426950408889634));
  }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    return div(g, add(exp2(sub(b, a)), 1));
  }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) { return gradient_a(g, b, a); }
};

/// self log(other); where self is 0 it is 0, unless `other` is a NaN. Integers give the default
/// floating type.
struct Xlogy : OfTwo {
  RAMET_FORMULA value(V a, V b) {
    return pick(ne(b, b), b, pick(eq(a, cst<V>(0)), cst<V>(0), a * vlog(b)));
  }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    const T at = corner(a, b);
    return where(at, 0, mul(g, log(elsewhere(at, g, b))));
  }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) {
    const T at = corner(a, b);
    return where(at, 0, mul(g, div(a, elsewhere(at, g, b))));
  }

 private:
  RAMET_GRADIENT corner(const T& a, const T& b) { return logical_and(eq(a, 0), le(b, 0)); }
  // b, replaced by 1 where it may not be a divisor.
  RAMET_GRADIENT elsewhere(const T& at, const T& g, const T& b) {
    return where(at, 1, b.to(g.scalar_type()));
  }
};
/// 0 where self is below 0, 1 where it is above, `values` where it is 0; 0 for a NaN. `values` has
/// a gradient where self is 0.
struct Heaviside : kernels::Row {
  static constexpr int kOperands = 2;
  RAMET_FORMULA value(V a, V b) {
    return pick(eq(a, cst<V>(0)), b, keep(lt(cst<V>(0), a), cst<V>(1)));
  }
  static constexpr int kReads[] = {kernels::kNoOperand, kA};
  RAMET_GRADIENT gradient_a(const T& g, const T&, const T&) { return zeros_like(g); }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T&) { return where(eq(a, 0), g, 0); }
};
/// self 2^other, exact where `other` is whole; nothing overflows on the way. Integers give the
/// default floating type.
struct Ldexp : OfTwo {
  RAMET_FORMULA value(V a, V b) { return vldexp(a, b); }
  static constexpr int kReads[] = {kB, kA | kB};
  RAMET_GRADIENT gradient_a(const T& g, const T&, const T& b) { return ldexp(g, b); }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) {
    return mul(mul(g, ldexp(a, b)), 0.6931471805599453);
  }
};

/// For whole numbers, not for bool.
struct OfTwoWhole : kernels::Row {
  static constexpr int kOperands = 2;
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnInteger;
  static constexpr Integers kIntegers = Integers::kNumbers;
};
/// The greatest common divisor; 0 for two zeros. It is not negative, except that |least int64|
/// wraps around (and likewise for other integers). Integers, not bool.
struct Gcd : OfTwoWhole {
  RAMET_FORMULA value(V a, V b) { return vgcd(a, b); }
};
/// The least common multiple above 0; 0 where one of them is 0. It wraps around.
struct Lcm : OfTwoWhole {
  RAMET_FORMULA value(V a, V b) { return vlcm(a, b); }
};
/// self 2^other, which wraps around; 0 where `other` is negative or at least the number of bits.
/// Integers, not bool.
struct LeftShift : OfTwoWhole {
  RAMET_FORMULA value(V a, V b) {
    return b < 0 || b > 63 ? 0 : static_cast<V>(static_cast<uint64_t>(a) << b);
  }
};
/// self 2^-other, rounded down. Where `other` is negative or at least the number of bits, it is 0,
/// or -1 for a negative self.
struct RightShift : OfTwoWhole {
  RAMET_FORMULA value(V a, V b) { return a >> (b < 0 || b > 63 ? 63 : b); }
};

/// The larger of two; where one is a NaN, the other. Equal ones share the gradient.
struct Fmax : Extremum {
  RAMET_FORMULA value(V a, V b) { return pick(ne(b, b), a, pick(ne(a, a), b, max(a, b))); }
  template <class T, class Needs>
  static std::array<T, 2> gradients(const Needs& needs, const T& g, const T& a, const T& b) {
    return shares(needs, g, logical_or(gt(a, b), isnan(b)), eq(a, b));
  }

 protected:
  template <class T, class Needs>
  static std::array<T, 2> shares(const Needs& needs, const T& g, const T& takes_a, const T& equal) {
    return {needs(0) ? share(g, logical_not(logical_or(takes_a, equal)), equal) : T(),
            needs(1) ? share(g, takes_a, equal) : T()};
  }
};
/// The smaller of two; otherwise as fmax().
struct Fmin : Fmax {
  RAMET_FORMULA value(V a, V b) { return pick(ne(b, b), a, pick(ne(a, a), b, min(a, b))); }
  template <class T, class Needs>
  static std::array<T, 2> gradients(const Needs& needs, const T& g, const T& a, const T& b) {
    return shares(needs, g, logical_or(lt(a, b), isnan(b)), eq(a, b));
  }
};

}  // namespace RAMET_ROWS
