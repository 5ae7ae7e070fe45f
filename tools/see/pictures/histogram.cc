#include "tools/see/pictures/histogram.h"

#include <algorithm>
#include <cmath>

namespace ramet::see {

Histogram histogram_of(const Tensor& x, const Facts& facts, int64_t bins) {
  constexpr int64_t kMost = 60;
  const auto finite = static_cast<double>(facts.count - facts.nans - facts.infinities);
  Histogram h;
  double low = facts.min, high = facts.max;
  int64_t n =
      bins > 0 ? bins : std::clamp<int64_t>(static_cast<int64_t>(std::sqrt(finite)), 1, kMost);
  h.whole = is_whole(x);
  if (h.whole) {
    const double numbers = high - low + 1;
    const auto most = static_cast<double>(bins > 0 ? bins : kMost);
    const double width = numbers <= most ? 1 : std::ceil(numbers / most);
    n = static_cast<int64_t>(std::ceil(numbers / width));
    low -= 0.5, high = low + static_cast<double>(n) * width;
  } else if (!(high > low)) {  // one number, or none
    n = 1;
    const double around = std::max(0.5, std::abs(low) * 0.1);
    low -= around, high += around;
  }
  for (int64_t i = 0; i <= n; ++i) {  // without high - low, which may be no double
    const double part = static_cast<double>(i) / static_cast<double>(n);
    h.edges.push_back(low * (1 - part) + high * part);
  }
  h.counts.assign(static_cast<size_t>(n), 0);
  each_value(x, [&](const double* v, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(v[i])) continue;
      const double place = (v[i] / 2 - low / 2) / (high / 2 - low / 2) * static_cast<double>(n);
      auto bin = static_cast<size_t>(std::clamp(place, 0.0, static_cast<double>(n - 1)));
      // The edges decide, not the rounded division.
      while (bin > 0 && v[i] < h.edges[bin]) --bin;
      while (bin + 1 < h.counts.size() && v[i] >= h.edges[bin + 1]) ++bin;
      ++h.counts[bin];
    }
  });
  return h;
}

}  // namespace ramet::see
