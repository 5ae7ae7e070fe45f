// Functions of the C library (on a GPU, CUDA's functions of the same name), for doubles. Floats are
// computed in double (in_double): the error is at most half a unit of their last place and a
// thousandth.
#pragma once
#include "kernels/simd/in_double.h"

namespace ramet::kernels::RAMET_VARIANT {

#define RAMET_FROM_LIBRARY(name)                                       \
  template <class V> RAMET_INLINE V v##name(V x) {                     \
    return in_double([](double v) { return RAMET_LIBM(name)(v); }, x); \
  }
RAMET_FROM_LIBRARY(asin)
RAMET_FROM_LIBRARY(acos)
RAMET_FROM_LIBRARY(atan)
RAMET_FROM_LIBRARY(sinh)
RAMET_FROM_LIBRARY(cosh)
RAMET_FROM_LIBRARY(asinh)
RAMET_FROM_LIBRARY(acosh)
RAMET_FROM_LIBRARY(exp2)
RAMET_FROM_LIBRARY(erfc)
#undef RAMET_FROM_LIBRARY

#define RAMET_FROM_LIBRARY(name)                                                       \
  template <class V> RAMET_INLINE V v##name(V x, V y) {                                \
    return in_double([](double v, double w) { return RAMET_LIBM(name)(v, w); }, x, y); \
  }
RAMET_FROM_LIBRARY(atan2)
RAMET_FROM_LIBRARY(copysign)
RAMET_FROM_LIBRARY(hypot)
#undef RAMET_FROM_LIBRARY

}  // namespace ramet::kernels::RAMET_VARIANT
