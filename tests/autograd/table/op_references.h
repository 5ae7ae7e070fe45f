// The formulas of tests/kernels/pointwise/references.h as points of rows.
#pragma once
#include "tests/autograd/table/op_table.h"
#include "tests/kernels/pointwise/references.h"

namespace ramet {
namespace op_table {

/// The formula of this name, of one, two or three inputs and the numbers s and t.
inline Point point_of(int inputs, const char* name, double s = 1, double t = 0) {
  return [&of = references::reference(name), inputs, s, t](D x) {
    return static_cast<double>(of.f(x[0], inputs > 1 ? x[1] : 0, inputs > 2 ? x[2] : 0, s, t));
  };
}
/// Of one or two inputs and a number in place of the next.
inline Point point_with(double number, const char* name, int inputs = 1) {
  return [&of = references::reference(name), number, inputs](D x) {
    return static_cast<double>(of.f(x[0], inputs > 1 ? x[1] : number, number, 1, 0));
  };
}
/// Of a number and one input.
inline Point point_after(double number, const char* name) {
  return [&of = references::reference(name), number](D x) {
    return static_cast<double>(of.f(number, x[0], 0, 1, 0));
  };
}

}  // namespace op_table
}  // namespace ramet
