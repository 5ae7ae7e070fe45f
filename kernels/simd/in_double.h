// Makes a function that is written once, for doubles, available to formulas of every compute type.
// in_double(f, x...) is f of each float, rounded once.
#pragma once
#if !defined(RAMET_GPU_MATH)
#include "kernels/simd/smath.h"
#endif

namespace ramet::kernels::RAMET_VARIANT {

template <class F, class... X> RAMET_INLINE double in_double(F f, double x, X... more) {
  return f(x, more...);
}
#if defined(RAMET_GPU_MATH)
template <class F, class... X> RAMET_INLINE float in_double(F f, float x, X... more) {
  return static_cast<float>(f(x, more...));
}
#else
template <class F> RAMET_INLINE vf in_double(F f, vf x) {
  return each_lane(x, [&](float v) { return static_cast<float>(f(v)); });
}
template <class F> RAMET_INLINE vf in_double(F f, vf x, vf y) {
  return each_lane(x, y, [&](float v, float w) { return static_cast<float>(f(v, w)); });
}
#endif

}  // namespace ramet::kernels::RAMET_VARIANT
