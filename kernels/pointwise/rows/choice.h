// Rows that choose between values (kernels/pointwise/row.h).
#pragma once
#include "kernels/pointwise/row.h"

namespace RAMET_ROWS {

/// The larger of two; a NaN wins.
struct Maximum : kernels::Row {
  static constexpr int kOperands = 2;
  RAMET_FORMULA value(V a, V b) { return pick(ne(a, a), a, max(a, b)); }
};
/// The smaller of two; a NaN wins.
struct Minimum : kernels::Row {
  static constexpr int kOperands = 2;
  RAMET_FORMULA value(V a, V b) { return pick(ne(a, a), a, min(a, b)); }
};
/// a where c is not 0, else b.
struct Where : kernels::Row {
  static constexpr int kOperands = 3;
  RAMET_FORMULA value(V c, V a, V b) { return pick(ne(c, cst<V>(0)), a, b); }
};
/// min(max(x, low), high): high where low > high; a NaN in any of the three wins.
struct Clamp : kernels::Row {
  RAMET_FORMULA value(V x, V low, V high) { return Minimum::value(Maximum::value(x, low), high); }
};
/// The same with bounds that are tensors.
struct ClampTensor : kernels::Row {
  static constexpr int kOperands = 3;
  RAMET_FORMULA value(V x, V low, V high) { return Clamp::value(x, low, high); }
};
/// g where low < x < high, else 0 (strict, as LibTorch 2.15). An infinite bound is none.
struct ClampBackward : kernels::Backward {
  RAMET_FORMULA value(V g, V x, V low, V high) {
    const V inf = cst<V>(__builtin_inf());
    return keep(
        both(either(lt(low, x), eq(low, cst<V>(0) - inf)), either(lt(x, high), eq(high, inf))), g);
  }
};

}  // namespace RAMET_ROWS
