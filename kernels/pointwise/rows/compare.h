// Rows of comparisons and logic, which give truth values (kernels/pointwise/row.h). They have no
// gradient.
#pragma once
#include "kernels/pointwise/row.h"

namespace RAMET_ROWS {

struct Test : kernels::Row {
  static constexpr kernels::PointwiseResult kResult = kernels::PointwiseResult::kTruth;
};
struct Comparison : Test {
  static constexpr int kOperands = 2;
};
/// a == b
struct Eq : Comparison {
  RAMET_FORMULA value(V a, V b) { return eq(a, b); }
};
/// a != b
struct Ne : Comparison {
  RAMET_FORMULA value(V a, V b) { return ne(a, b); }
};
/// a < b
struct Lt : Comparison {
  RAMET_FORMULA value(V a, V b) { return lt(a, b); }
};
/// a <= b
struct Le : Comparison {
  RAMET_FORMULA value(V a, V b) { return le(a, b); }
};
/// a > b
struct Gt : Comparison {
  RAMET_FORMULA value(V a, V b) { return lt(b, a); }
};
/// a >= b
struct Ge : Comparison {
  RAMET_FORMULA value(V a, V b) { return le(b, a); }
};
/// Neither is 0: anything but zero is true.
struct LogicalAnd : Comparison {
  RAMET_FORMULA value(V a, V b) { return both(ne(a, cst<V>(0)), ne(b, cst<V>(0))); }
};
/// Not both are 0.
struct LogicalOr : Comparison {
  RAMET_FORMULA value(V a, V b) { return either(ne(a, cst<V>(0)), ne(b, cst<V>(0))); }
};
/// One of them is 0.
struct LogicalXor : Comparison {
  RAMET_FORMULA value(V a, V b) {
    return ne(keep(ne(a, cst<V>(0)), cst<V>(1)), keep(ne(b, cst<V>(0)), cst<V>(1)));
  }
};
/// x == 0
struct LogicalNot : Test {
  RAMET_FORMULA value(V x) { return eq(x, cst<V>(0)); }
};
/// Is x a NaN?
struct IsNan : Test {
  RAMET_FORMULA value(V x) { return ne(x, x); }
};
/// Is x an infinity, of either sign?
struct IsInf : Test {
  RAMET_FORMULA value(V x) {
    if constexpr (std::is_integral<V>::value) return false;
    else return eq(vabs(x), cst<V>(__builtin_inf()));
  }
};
/// Neither an infinity nor a NaN.
struct IsFinite : Test {
  RAMET_FORMULA value(V x) {
    if constexpr (std::is_integral<V>::value) return true;
    else return lt(vabs(x), cst<V>(__builtin_inf()));
  }
};

}  // namespace RAMET_ROWS
