// The part of a window that is inside the input, and the divisor of an average, on CPUs and GPUs.
// Windows may be far larger than the input, with as much padding. No code iterates over the part
// outside, and no sum of kernel and position is formed.
#pragma once
#include <type_traits>

#include "kernels/gpu/divisor.h"
#include "kernels/image/pool2d.h"
#include "kernels/simd/scalar_math.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

// Numbers are int64, or have fewer bits where a GPU's numbers fit them. Divisors are numbers, or on
// a GPU a Divisor.
RAMET_INLINE int64_t over(int64_t n, int64_t by) { return n / by; }
RAMET_INLINE int64_t over_up(int64_t n, int64_t by) { return ceil_div(n, by); }
template <class I> RAMET_INLINE I over(I n, const Divisor<I>& by) { return by(n); }
template <class I> RAMET_INLINE I over_up(I n, const Divisor<I>& by) {
  const I whole = by(n);
  return whole + (whole * by.by < n);
}
template <class I> RAMET_INLINE I least(I a, I b) { return a < b ? a : b; }

/// The least x >= 0 with x * b >= a.
template <class I, class By> RAMET_INLINE I steps_to(I a, const By& b) {
  return a > 0 ? over(static_cast<I>(a - 1), b) + 1 : 0;
}

/// Taps from .. to of output i in one dimension are inside the input, with tap r at origin + r *
/// dilation.
template <class I> struct TapsOf {
  I from, to, origin;
  template <class By> RAMET_INLINE TapsOf(I i, I stride, I pad, const By& dilation, I k, I extent) {
    origin = i * stride - pad;
    from = steps_to(static_cast<I>(-origin), dilation);
    to =
        extent <= origin ? 0 : least<I>(k, over(static_cast<I>(extent - origin - 1), dilation) + 1);
  }
};
using Taps = TapsOf<int64_t>;

/// Elements from .. to of an average's window in one dimension, and their number including the
/// padding.
template <class I> struct RangeOf {
  I from, to, full;
  RangeOf() = default;
  template <class By>
  RAMET_INLINE RangeOf(bool adaptive, I i, const By& out, I stride, I pad, I k, I extent) {
    using U = typename std::make_unsigned<I>::type;
    if (adaptive) {
      from = over(static_cast<I>(i * extent), out);
      to = over_up(static_cast<I>((i + 1) * extent), out), full = to - from;
      return;
    }
    const I start = i * stride - pad;
    // The difference may be too large for a signed int64.
    const U room = static_cast<U>(extent + pad) - static_cast<U>(start);
    full = room < static_cast<U>(k) ? static_cast<I>(room) : k;
    from = start > 0 ? start : 0, to = least<I>(start + full, extent);
  }
  RAMET_INLINE bool empty() const { return from >= to; }
};
using Range = RangeOf<int64_t>;
RAMET_INLINE Range rows_of(const AvgPool2dArgs& a, int64_t i) {
  const Pool2dShape& s = a.shape;
  return {a.adaptive, i, s.oh, s.sh, s.ph, s.kh, s.h};
}
RAMET_INLINE Range columns_of(const AvgPool2dArgs& a, int64_t j) {
  const Pool2dShape& s = a.shape;
  return {a.adaptive, j, s.ow, s.sw, s.pw, s.kw, s.w};
}

/// rows * columns, rounded once if both are exact. For integers at most the largest int64: a
/// quotient by such a number is 0 anyway.
template <class T> RAMET_INLINE T area(int64_t rows, int64_t columns) {
  return static_cast<T>(rows) * static_cast<T>(columns);
}
template <> RAMET_INLINE int64_t area(int64_t rows, int64_t columns) {
  return columns > 0 && rows > INT64_MAX / columns ? INT64_MAX : rows * columns;
}
template <class T, class I>
RAMET_INLINE T divisor_of(const AvgPool2dArgs& a, const RangeOf<I>& rows,
                          const RangeOf<I>& columns) {
  if (a.divisor_override != 0) return static_cast<T>(a.divisor_override);
  return a.count_include_pad ? area<T>(rows.full, columns.full)
                             : area<T>(rows.to - rows.from, columns.to - columns.from);
}
RAMET_INLINE float divided(float x, float by) { return x / by; }
RAMET_INLINE double divided(double x, double by) { return x / by; }
RAMET_INLINE int64_t divided(int64_t x, int64_t by) { return quotient(x, by); }

}  // namespace ramet::kernels::RAMET_VARIANT
