// The inputs of one output of a resampled axis, and their weights; on CPUs and GPUs. T is float or
// double. LibTorch's formulas, in the same type: the exact position of an output between two inputs
// decides which one is nearest.
#pragma once
#include "kernels/image/resample.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// Inputs per output.
template <class T> RAMET_INLINE T resample_step(const ResampleAxis& a) {
  if (a.align_corners)
    return a.out > 1 ? static_cast<T>(a.in - 1) / static_cast<T>(a.out - 1) : T(0);
  return a.scale > 0 ? static_cast<T>(1.0 / a.scale) : static_cast<T>(a.in) / static_cast<T>(a.out);
}

// floor(x), at most in - 1, for an x that is above -2 or NaN.
template <class T> RAMET_INLINE int64_t floor_within(T x, int64_t in) {
  if (!(x < static_cast<T>(in))) return in - 1;
  const auto i = static_cast<int64_t>(x);
  return imin(static_cast<T>(i) > x ? i - 1 : i, in - 1);
}
// x without its fraction, in 0 .. in.
template <class T> RAMET_INLINE int64_t whole_within(T x, int64_t in) {
  if (!(x > T(0))) return 0;
  return x < static_cast<T>(in) ? imin(static_cast<int64_t>(x), in) : in;
}
template <class T> RAMET_INLINE T fraction_of(T x, int64_t i) {
  const T l = x - static_cast<T>(i);
  return l < T(0) ? T(0) : l > T(1) ? T(1) : l;
}

// Keys' cubic at distances up to 1, and from there to 2.
template <class T> RAMET_INLINE T cubic_near(T x, T a) {
  return ((a + T(2)) * x - (a + T(3))) * x * x + T(1);
}
template <class T> RAMET_INLINE T cubic_far(T x, T a) {
  return ((a * x - T(5) * a) * x + T(8) * a) * x - T(4) * a;
}

template <class T>
RAMET_INLINE int64_t wide_row(const ResampleAxis& a, int64_t taps, int64_t o, int64_t* first,
                              T* w) {
  const bool cubic = a.how == Resampling::kCubicWide;
  const T step = resample_step<T>(a), half = cubic ? T(2) : T(1),
          support = step >= T(1) ? half * step : half, shrink = step >= T(1) ? T(1) / step : T(1),
          center = step * (static_cast<T>(o) + T(0.5));
  const int64_t from = whole_within(center - support + T(0.5), a.in),
                to = whole_within(center + support + T(0.5), a.in),
                count = imin(imax(to - from, 0), taps);
  T total = T(0);
  for (int64_t j = 0; j < count; ++j) {
    T x = (static_cast<T>(from + j) - center + T(0.5)) * shrink;
    x = x < T(0) ? -x : x;
    const T far = cubic ? cubic_far(x, T(-0.5)) : T(0),
            near = cubic ? cubic_near(x, T(-0.5)) : T(1) - x;
    w[j] = x < T(1) ? near : cubic && x < T(2) ? far : T(0);
    total += w[j];
  }
  for (int64_t j = 0; j < count && total != T(0); ++j) w[j] /= total;
  *first = from;
  return count;
}

/// Output o is the sum of w[j] times input first + j, for j < the result. The result is at most
/// `taps` (resample_taps, which a kernel cannot call). `first` and the last input never fall as o
/// grows.
template <class T>
RAMET_INLINE int64_t resample_row(const ResampleAxis& a, int64_t taps, int64_t o, int64_t* first,
                                  T* w) {
  if (a.how == Resampling::kLinearWide || a.how == Resampling::kCubicWide)
    return wide_row(a, taps, o, first, w);
  const T step = resample_step<T>(a), place = static_cast<T>(o);
  w[0] = T(1);
  if (a.how == Resampling::kNone || (a.how == Resampling::kLinear && a.in == a.out)) {
    *first = o;
    return 1;
  }
  if (a.how == Resampling::kNearest || a.how == Resampling::kNearestExact) {
    *first = floor_within(step * (a.how == Resampling::kNearest ? place : place + T(0.5)), a.in);
    return 1;
  }
  T x = a.align_corners ? step * place : step * (place + T(0.5)) - T(0.5);
  if (a.how == Resampling::kLinear && x < T(0)) x = T(0);
  const int64_t i = floor_within(x, a.in);
  const T l = fraction_of(x, i);
  if (a.how == Resampling::kLinear) {
    *first = i;
    if (i == a.in - 1) return 1;
    w[0] = T(1) - l, w[1] = l;
    return 2;
  }
  const T rest = T(1) - l;
  const T c[4] = {cubic_far(l + T(1), T(-0.75)), cubic_near(l, T(-0.75)),
                  cubic_near(rest, T(-0.75)), cubic_far(rest + T(1), T(-0.75))};
  const int64_t from = imax(i - 1, 0), to = imin(i + 2, a.in - 1);
  for (int64_t j = 0; j <= to - from; ++j) w[j] = T(0);
  for (int64_t j = 0; j < 4; ++j) w[imin(imax(i - 1 + j, from), to) - from] += c[j];
  *first = from;
  return to - from + 1;
}

}  // namespace ramet::kernels::RAMET_VARIANT
