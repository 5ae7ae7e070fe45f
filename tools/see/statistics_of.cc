#include "tools/see/statistics_of.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"

namespace ramet {
namespace see {
namespace {

template <class T> Statistics of(const T* x, int64_t n) {
  Statistics s;
  s.count = n;
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<double>(x[i]);
    if (!std::isfinite(v)) {
      ++(std::isnan(v) ? s.nans : s.infinities);
      continue;
    }
    s.zeros += v == 0;
    s.min = finite ? std::min(s.min, v) : v;
    s.max = finite ? std::max(s.max, v) : v;
    ++finite;
    sum += v / static_cast<double>(n);  // no sum of finite numbers is infinite
  }
  if (finite == 0) return s;
  s.mean = sum * (static_cast<double>(n) / static_cast<double>(finite));
  // Half the range: the whole one of doubles may be infinite.
  const double half = s.max / 2 - s.min / 2;
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<double>(x[i]);
    if (!std::isfinite(v)) continue;
    const double at = half > 0 ? (v / 2 - s.min / 2) / half : 0;
    ++s.histogram[static_cast<size_t>(std::clamp(at * 32, 0.0, 31.0))];
    const double off = half > 0 ? (v / 2 - s.mean / 2) / half : 0;
    squares += off * off;
  }
  s.deviation = std::sqrt(squares / static_cast<double>(finite)) * half * 2;
  return s;
}

}  // namespace

Statistics statistics_of(const Tensor& t) {
  const NoGradGuard off;
  const ScalarType type = t.scalar_type() == kFloat ? kFloat : kDouble;
  const Tensor host = t.detach().to(Device(kCPU, 0), type).contiguous();
  const int64_t n = host.numel();
  if (type == kFloat) return of(static_cast<const float*>(host.ptr()), n);
  return of(static_cast<const double*>(host.ptr()), n);
}

}  // namespace see
}  // namespace ramet
