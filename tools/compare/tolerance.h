// How far two results of one draw may differ.
#pragma once
#include <cmath>
#include <cstring>

namespace compare {

/// For each dtype, two tolerances. The first is for elements that depend on no other element,
/// relative to themselves. The second is for all others, relative to the largest number of the
/// draw. (A sum's error is an error of its largest term, not of the sum.)
struct Tolerance {
  const char* dtype;
  double own, largest;
};
constexpr Tolerance kTolerances[] = {
    // Vectorised functions of both libraries are good to some units in the last place (2.2e-16,
    // 1.2e-7); derivatives are products of several of them. Sums of up to some thousand terms in
    // different order.
    {"float64", 4e-15, 1e-12},
    {"float32", 2e-6, 1e-5},
    // Computed in float and rounded once by both: one unit in the last place (2^-10, 2^-7) where
    // the two round to different sides. Gradients pass several roundings.
    {"float16", 1.01 / 1024, 8. / 1024},
    {"bfloat16", 1.01 / 128, 8. / 128},
};
/// Gradients of gradients pass twice as many operations.
constexpr double kSecond = 4;

/// Of the less precise of two dtypes: a float64 gradient may come through float32 numbers.
inline const Tolerance& tolerance(const char* dtype, const char* coarsest) {
  const Tolerance* found = kTolerances;
  for (const Tolerance& t : kTolerances)
    if (!std::strcmp(t.dtype, dtype) || !std::strcmp(t.dtype, coarsest)) found = &t;
  return *found;
}
inline bool close(double a, double b, const Tolerance& t, bool strict, int stage, double scale) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  if (strict && stage == 0) return std::fabs(a - b) <= t.own * std::fabs(b) + 1e-300;
  return std::fabs(a - b) <= t.largest * scale * (stage == 2 ? kSecond : 1);
}

}  // namespace compare
