// Sums of squares that a double cannot hold: norms from 1e-300 to 1e300. For CPUs and GPUs.
#pragma once
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// The sum of (unit x)^2, where unit is 1, or a power of 2 that brings the largest x near 1.
struct Squares {
  double sum, unit;
};

/// The range in which sums of plain squares of T are neither too large nor too small. Outside it x
/// is multiplied by kUp or kDown.
template <class T> struct SquaresOf {
  static constexpr double kLeast = 0x1p-900, kMost = 0x1p900, kUp = 0x1p600, kDown = 0x1p-600;
};
template <> struct SquaresOf<float> {
  static constexpr double kLeast = 0x1p-100, kMost = 0x1p110, kUp = 0x1p90, kDown = 0x1p-80;
};
template <class T> RAMET_INLINE double unit_of(double plain_sum) {
  if (plain_sum >= SquaresOf<T>::kLeast && plain_sum <= SquaresOf<T>::kMost) return 1;
  return plain_sum < 1 ? SquaresOf<T>::kUp : SquaresOf<T>::kDown;
}
/// The squares of `unit` times elements of T. A double can hold those of every float.
template <class T> RAMET_INLINE Squares squares(double sum, double unit) {
  if (sizeof(T) < sizeof(double)) return {sum / (unit * unit), 1};
  return {sum, unit};
}

RAMET_INLINE Squares join(const Squares& a, const Squares& b) {
  if (b.sum == 0) return a;
  if (a.sum == 0) return b;
  if (a.unit == b.unit) return {a.sum + b.sum, a.unit};
  // Of two, the one with the larger elements has the smaller unit.
  const Squares &large = a.unit < b.unit ? a : b, &small = a.unit < b.unit ? b : a;
  const double ratio = large.unit / small.unit;
  return {large.sum + small.sum * ratio * ratio, large.unit};
}

}  // namespace ramet::kernels::RAMET_VARIANT
