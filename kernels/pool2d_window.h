// What of a window lies in the input, and what an average divides by, on CPUs and GPUs. Windows may
// be far larger than the input, with as much padding: nobody walks over what lies outside, and no
// sum of kernel and place is formed.
#pragma once
#include "kernels/pool2d.h"
#include "kernels/scalar_math.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// The least x >= 0 with x * b >= a.
RAMET_INLINE int64_t steps_to(int64_t a, int64_t b) { return a > 0 ? (a - 1) / b + 1 : 0; }

/// Taps from .. to of output i in one dimension lie in the input, tap r at origin + r * dilation.
struct Taps {
  int64_t from, to, origin;
  RAMET_INLINE Taps(int64_t i, int64_t stride, int64_t pad, int64_t dilation, int64_t k,
                    int64_t extent) {
    origin = i * stride - pad;
    from = steps_to(-origin, dilation);
    to = extent <= origin ? 0 : imin(k, (extent - origin - 1) / dilation + 1);
  }
};

/// Elements from .. to of an average's window in one dimension, and how many it has with those in
/// the padding.
struct Range {
  int64_t from, to, full;
  RAMET_INLINE Range(bool adaptive, int64_t i, int64_t out, int64_t stride, int64_t pad, int64_t k,
                     int64_t extent) {
    if (adaptive) {
      from = i * extent / out, to = ceil_div((i + 1) * extent, out), full = to - from;
      return;
    }
    const int64_t start = i * stride - pad;
    // May be more than an int64 holds as a signed number.
    const uint64_t room = static_cast<uint64_t>(extent + pad) - static_cast<uint64_t>(start);
    full = room < static_cast<uint64_t>(k) ? static_cast<int64_t>(room) : k;
    from = imax(start, 0), to = imin(start + full, extent);
  }
  RAMET_INLINE bool empty() const { return from >= to; }
};
RAMET_INLINE Range rows_of(const AvgPool2dArgs& a, int64_t i) {
  const Pool2dShape& s = a.shape;
  return {a.adaptive, i, s.oh, s.sh, s.ph, s.kh, s.h};
}
RAMET_INLINE Range columns_of(const AvgPool2dArgs& a, int64_t j) {
  const Pool2dShape& s = a.shape;
  return {a.adaptive, j, s.ow, s.sw, s.pw, s.kw, s.w};
}

/// rows * columns, rounded once where both are exact; of integers, whose quotient by it is 0
/// anyway, the largest where that is larger.
template <class T> RAMET_INLINE T area(int64_t rows, int64_t columns) {
  return static_cast<T>(rows) * static_cast<T>(columns);
}
template <> RAMET_INLINE int64_t area(int64_t rows, int64_t columns) {
  return columns > 0 && rows > INT64_MAX / columns ? INT64_MAX : rows * columns;
}
template <class T>
RAMET_INLINE T divisor_of(const AvgPool2dArgs& a, const Range& rows, const Range& columns) {
  if (a.divisor_override != 0) return static_cast<T>(a.divisor_override);
  return a.count_include_pad ? area<T>(rows.full, columns.full)
                             : area<T>(rows.to - rows.from, columns.to - columns.from);
}
RAMET_INLINE float divided(float x, float by) { return x / by; }
RAMET_INLINE double divided(double x, double by) { return x / by; }
RAMET_INLINE int64_t divided(int64_t x, int64_t by) { return quotient(x, by); }

}  // namespace ramet::kernels::RAMET_VARIANT
