// Rows of functions of two tensors (kernels/pointwise/row.h).
#pragma once
#include "kernels/pointwise/rows/choice.h"

namespace RAMET_ROWS {

using kernels::kA, kernels::kB, kernels::Integers;

/// Of floating-point values, both of which the gradients read.
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

/// The angle of the point (b, a), in [-pi, pi]. The derivative at the origin is 0.
struct Atan2 : OfTwo {
  RAMET_FORMULA value(V a, V b) { return vatan2(a, b); }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    // Squares of small integers would wrap around.
    const T squares = add(square(a.to(g.scalar_type())), square(b.to(g.scalar_type())));
    return mul(mul(g, b), where(eq(squares, 0), 0, reciprocal(squares)));
  }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) { return gradient_a(neg(g), b, a); }
};
/// sqrt(a^2 + b^2), which does not overflow in between.
struct Hypot : OfTwoNumbers {
  RAMET_FORMULA value(V a, V b) { return vhypot(a, b); }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    return mul(g, div(a, hypot(a, b)));
  }
  RAMET_GRADIENT gradient_b(const T& g, const T& a, const T& b) { return gradient_a(g, b, a); }
};
/// |a| with the sign of b, of a zero or NaN too.
struct Copysign : OfTwo {
  RAMET_FORMULA value(V a, V b) { return vcopysign(a, b); }
  RAMET_GRADIENT gradient_a(const T& g, const T& a, const T& b) {
    return mul(g, where(eq(a, 0), 0, div(copysign(a, b), a)));
  }
  RAMET_GRADIENT gradient_b(const T& g, const T&, const T&) { return zeros_like(g); }
};
/// log(e^a + e^b), which does not overflow in between.
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

/// The larger of two; of a number and a NaN the number. The one that is taken gets the gradient; of
/// equal ones each gets half.
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
/// The smaller of two, likewise.
struct Fmin : Fmax {
  RAMET_FORMULA value(V a, V b) { return pick(ne(b, b), a, pick(ne(a, a), b, min(a, b))); }
  template <class T, class Needs>
  static std::array<T, 2> gradients(const Needs& needs, const T& g, const T& a, const T& b) {
    return shares(needs, g, logical_or(lt(a, b), isnan(b)), eq(a, b));
  }
};

}  // namespace RAMET_ROWS
