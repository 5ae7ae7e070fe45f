#include "tools/see/pictures/histogram.h"

#include <algorithm>
#include <cmath>

namespace ramet::see {

Histogram histogram_of(const Tensor& x, const Facts& facts, int64_t bins) {
  constexpr int64_t kMost = 60;
  const auto finite = static_cast<double>(facts.count - facts.nans - facts.infinities);
  Histogram h;
  double low = facts.min, width = 0;
  int64_t n =
      bins > 0 ? bins : std::clamp<int64_t>(static_cast<int64_t>(std::sqrt(finite)), 1, kMost);
  h.whole = !is_floating(x.scalar_type());
  if (h.whole) {
    const double numbers = facts.max - facts.min + 1;
    const auto most = static_cast<double>(bins > 0 ? bins : kMost);
    width = numbers <= most ? 1 : std::ceil(numbers / most);
    n = static_cast<int64_t>(std::ceil(numbers / width));
    low -= 0.5;
  } else if (facts.max > facts.min) {
    width = facts.max / static_cast<double>(n) - facts.min / static_cast<double>(n);
  }
  if (!(width > 0)) {  // one number, or none
    n = 1;
    width = std::max(1.0, std::abs(facts.min) * 0.2);
    low = facts.min - width / 2;
  }
  for (int64_t i = 0; i <= n; ++i) h.edges.push_back(low + static_cast<double>(i) * width);
  if (!h.whole && n > 1) h.edges.back() = facts.max;
  h.counts.assign(static_cast<size_t>(n), 0);
  each_value(x, [&](const double* v, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(v[i])) continue;
      const double place = std::floor(v[i] / width - low / width);
      auto bin = static_cast<size_t>(std::clamp(place, 0.0, static_cast<double>(n - 1)));
      // The edges decide, whatever the division was rounded to.
      while (bin > 0 && v[i] < h.edges[bin]) --bin;
      while (bin + 1 < h.counts.size() && v[i] >= h.edges[bin + 1]) ++bin;
      ++h.counts[bin];
    }
  });
  return h;
}

}  // namespace ramet::see
