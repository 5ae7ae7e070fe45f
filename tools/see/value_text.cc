#include "tools/see/value_text.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"

namespace ramet {
namespace see {
namespace {

std::string number(double x) {
  if (std::isnan(x)) return "nan";  // of either sign
  return ramet::detail::formatted("%.4g", x);
}

}  // namespace

std::string value_text(const Tensor& t) {
  if (!t.defined()) return "none";
  const NoGradGuard off;
  std::string text = short_name_of(t.scalar_type());
  text += ramet::detail::join(t.sizes());
  if (t.device() != Device(kCPU, 0)) text += " " + t.device().str();
  const Tensor values = t.shallow().to(Device(kCPU, 0), kDouble).contiguous();
  // Not data_ptr(), which refuses memory of cpu:0 to code that runs for cpu:1: a replica's
  // observer.
  const auto* const v = static_cast<const double*>(values.ptr());
  const auto n = static_cast<size_t>(values.numel());
  if (n <= 8) {
    text += " {";
    for (size_t i = 0; i < n; ++i) text += (i ? ", " : "") + number(v[i]);
    return text + "}";
  }
  size_t zeros = 0, nans = 0, infinite = 0;
  double low = HUGE_VAL, high = -HUGE_VAL, sum = 0;
  for (size_t i = 0; i < n; ++i) {
    if (std::isnan(v[i])) ++nans;
    else if (std::isinf(v[i])) ++infinite;
    else low = std::min(low, v[i]), high = std::max(high, v[i]), sum += v[i], zeros += v[i] == 0;
  }
  if (const size_t finite = n - nans - infinite; finite > 0)
    text += " from " + number(low) + " to " + number(high) + ", mean " +
            number(sum / static_cast<double>(finite));
  if (zeros > 0)
    text += ", " + number(std::round(100 * static_cast<double>(zeros) / static_cast<double>(n))) +
            " % zeros";
  if (nans > 0) text += ", " + std::to_string(nans) + " NaN";
  if (infinite > 0) text += ", " + std::to_string(infinite) + " infinite";
  return text;
}

}  // namespace see
}  // namespace ramet
