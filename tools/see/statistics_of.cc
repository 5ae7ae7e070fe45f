#include "tools/see/statistics_of.h"

#include <algorithm>
#include <cmath>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "autograd/grad_mode.h"

namespace ramet {
namespace see {
namespace {

// Two passes over values in double. Of large numbers everything is divided by 4 first, so that
// neither a range nor a square of it is infinite.
template <class T> Statistics of(const T* x, int64_t n) {
  Statistics s;
  s.count = n;
  const double each = 1 / static_cast<double>(n);
  double sum = 0, low = HUGE_VAL, high = -HUGE_VAL;
  int64_t finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<double>(x[i]);
    if (!std::isfinite(v)) {
      ++(std::isnan(v) ? s.nans : s.infinities);
      continue;
    }
    s.zeros += v == 0;
    low = std::min(low, v);
    high = std::max(high, v);
    ++finite;
    sum += v * each;  // no sum of finite numbers is infinite
  }
  if (finite == 0) return s;
  s.min = low, s.max = high;
  s.mean = sum * (static_cast<double>(n) / static_cast<double>(finite));
  const double unit = std::isfinite(high - low) ? 1 : 0.25;
  const double range = high * unit - low * unit, per_bin = range > 0 ? 32 / range : 0;
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<double>(x[i]) * unit;
    if (!std::isfinite(v)) continue;
    ++s.histogram[static_cast<size_t>(std::min((v - low * unit) * per_bin, 31.0))];
    const double off = range > 0 ? (v - s.mean * unit) / range : 0;
    squares += off * off;
  }
  s.deviation = std::sqrt(squares / static_cast<double>(finite)) * range / unit;
  return s;
}

}  // namespace

Statistics statistics_of(const Tensor& t) {
  const NoGradGuard off;
  const ScalarType type = t.scalar_type() == kFloat ? kFloat : kDouble;
  // A shallow one: what lies channels-last stays so, and the next operation's bits with it (Note
  // [Internal layout]).
  const Tensor host = t.shallow().to(Device(kCPU, 0), type).contiguous();
  const int64_t n = host.numel();
  Statistics s = type == kFloat ? of(static_cast<const float*>(host.ptr()), n)
                                : of(static_cast<const double*>(host.ptr()), n);
  // Of what the values are in float or double, which have all of narrower types.
  const size_t bytes = static_cast<size_t>(n) * (type == kFloat ? sizeof(float) : sizeof(double));
  s.digest = std::max<uint64_t>(XXH64(n ? host.ptr() : nullptr, bytes, 0), 1);
  return s;
}

}  // namespace see
}  // namespace ramet
