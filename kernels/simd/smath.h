// The functions that a formula (pointwise/rows) may call for every compute type of the CPU. These
// are a vector of floats (vec.h, vmath.h), a double and an int64.
#pragma once
#include "kernels/simd/scalar_math.h"
#include "kernels/simd/vmath.h"

namespace ramet::kernels::RAMET_VARIANT {

template <> RAMET_INLINE vf cst<vf>(double x) { return set1(static_cast<float>(x)); }

RAMET_INLINE vf vadd(vf a, vf b) { return a + b; }
RAMET_INLINE vf vsub(vf a, vf b) { return a - b; }
RAMET_INLINE vf vmul(vf a, vf b) { return a * b; }

RAMET_INLINE vf vpow(vf a, vf b) {
  return each_lane(a, b, [](float x, float y) { return __builtin_powf(x, y); });
}
/// C's fmod: the sign of a.
RAMET_INLINE vf vfmod(vf a, vf b) {
  return each_lane(a, b, [](float x, float y) { return __builtin_fmodf(x, y); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
