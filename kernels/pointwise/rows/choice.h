// Rows that choose between values (kernels/pointwise/row.h).
#pragma once
#include <array>

#include "kernels/pointwise/row.h"

namespace RAMET_ROWS {

/// One of two. The chosen one gets the gradient; of equal ones each gets half.
struct Extremum : kernels::Row {
  static constexpr int kOperands = 2;

 protected:
  // The part of g for an operand: 0 where it is not chosen, half where both are equal.
  RAMET_GRADIENT share(const T& g, const T& loses, const T& equal) {
    return where(loses, 0, where(equal, div(g, 2), g));
  }
};
/// The larger of two; a NaN wins.
struct Maximum : Extremum {
  RAMET_FORMULA value(V a, V b) { return pick(ne(a, a), a, max(a, b)); }
  template <class T, class Needs>
  static std::array<T, 2> gradients(const Needs& needs, const T& g, const T& a, const T& b) {
    const T equal = eq(a, b);
    return {needs(0) ? share(g, lt(a, b), equal) : T(), needs(1) ? share(g, gt(a, b), equal) : T()};
  }
};
/// The smaller of two; a NaN wins.
struct Minimum : Extremum {
  RAMET_FORMULA value(V a, V b) { return pick(ne(a, a), a, min(a, b)); }
  template <class T, class Needs>
  static std::array<T, 2> gradients(const Needs& needs, const T& g, const T& a, const T& b) {
    return Maximum::gradients(needs, g, b, a);
  }
};
/// a where c is not 0, else b.
struct Where : kernels::Row {
  static constexpr int kOperands = 3;
  RAMET_FORMULA value(V c, V a, V b) { return pick(ne(c, cst<V>(0)), a, b); }
  RAMET_GRADIENT gradient_a(const T& g, const T& c) { return where(c, g, 0); }
  RAMET_GRADIENT gradient_b(const T& g, const T& c) { return where(c, 0, g); }
};
/// min(max(x, low), high): high where low > high; a NaN in any of the three wins.
struct Clamp : kernels::Row {
  RAMET_FORMULA value(V x, V low, V high) { return Minimum::value(Maximum::value(x, low), high); }
};
/// The same with bounds that are tensors.
struct ClampTensor : kernels::Row {
  static constexpr int kOperands = 3;
  RAMET_FORMULA value(V x, V low, V high) { return Clamp::value(x, low, high); }
  template <class T, class Needs>
  static std::array<T, 3> gradients(const Needs& needs, const T& g, const T& x, const T& low,
                                    const T& high) {
    // The part of the gradient for each bound; x gets the rest. Equal values share it, unless both
    // bounds equal x.
    const T crossed = lt(high, low), apart = ne(low, high);
    const T one = constant(g, 1), half = constant(g, 0.5), none = constant(g, 0);
    const auto part = [&](const T& beyond, const T& tie) {
      return where(beyond, one, where(logical_and(tie, apart), half, none));
    };
    const T to_low = where(crossed, none, part(lt(x, low), eq(x, low))).to(g.scalar_type());
    // For a NaN in x the gradient goes to x, even between crossed bounds.
    const T beyond = logical_or(logical_and(crossed, eq(x, x)), gt(x, high));
    const T to_high = part(beyond, eq(x, high)).to(g.scalar_type());
    return {needs(0) ? mul(g, sub(rsub(to_low, 1), to_high)) : T(), needs(1) ? mul(g, to_low) : T(),
            needs(2) ? mul(g, to_high) : T()};
  }
};
/// g where low < x < high, else 0 (strict, as LibTorch 2.15). An infinite bound has no effect.
struct ClampBackward : kernels::Backward {
  RAMET_FORMULA value(V g, V x, V low, V high) {
    const V inf = cst<V>(__builtin_inf());
    return keep(
        both(either(lt(low, x), eq(low, cst<V>(0) - inf)), either(lt(x, high), eq(high, inf))), g);
  }
};

}  // namespace RAMET_ROWS
