// The state of a running operation (kernels/index/running.h) after the previous elements, on CPUs
// and GPUs. T: the compute type.
#pragma once
#include <type_traits>

#include "kernels/simd/inline.h"

namespace ramet::kernels::RAMET_VARIANT {

template <class T> struct RunningProduct {
  using S = typename std::conditional<std::is_integral<T>::value, uint64_t, double>::type;
  static constexpr bool kPlaces = false;
  S product = 1;
  RAMET_INLINE T take(T v, int64_t) { return static_cast<T>(product *= static_cast<S>(v)); }
};

/// A value for which no comparison is true is a NaN.
template <class T, bool kLargest> struct RunningExtremum {
  static constexpr bool kPlaces = true;
  T best = T(0);
  int64_t place = -1;
  RAMET_INLINE T take(T v, int64_t at) {
    const bool no_less = kLargest ? v >= best : v <= best;
    if (place < 0 || v != v || (best == best && no_less)) best = v, place = at;
    return best;
  }
};
template <class T> struct RunningMax : RunningExtremum<T, true> {};
template <class T> struct RunningMin : RunningExtremum<T, false> {};

/// The sum of exp(v - most), where `most` is the largest so far.
template <class T> struct RunningLogSumExp {
  static constexpr bool kPlaces = false;
  double most = -__builtin_inf(), sum = 0;
  RAMET_INLINE T take(T value, int64_t) {
    const double v = static_cast<double>(value);
    if (v == most) sum += 1;  // infinities too
    else if (v < most) sum += ::exp(v - most);
    else sum = sum * ::exp(most - v) + 1, most = v;
    return static_cast<T>(most + ::log(sum));
  }
};

}  // namespace ramet::kernels::RAMET_VARIANT
