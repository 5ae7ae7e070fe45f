#include "tools/see/pictures/axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace ramet::see {
namespace {

constexpr double kSmallest = 1e-290, kLargest = 1e300;

// "2.50e-5"
std::string scientific(double value, int decimals) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, decimals);
  std::string text(buffer, end.ptr);
  const size_t e = text.find('e');
  return text.substr(0, e) + "e" + std::to_string(std::stoi(text.substr(e + 1)));
}

// Without zeros that end a fraction.
std::string trimmed(std::string digits) {
  if (digits.find('.') == std::string::npos) return digits;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

int exponent_of(double value) {
  return value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
}

// 1, 2 or 5 times a power of ten, about `raw`.
double nice_step(double raw) {
  const double power = std::pow(10.0, std::floor(std::log10(raw))), rest = raw / power;
  return (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10) * power;
}

// Labels of ticks with distance `step`: all with the same decimals, none with needless digits.
void label(Axis& axis, double step) {
  double largest = 0;
  for (double v : axis.ticks) largest = std::max(largest, std::abs(v));
  const int top = exponent_of(largest), last = exponent_of(step);
  for (double v : axis.ticks) {
    if (v == 0)
      axis.labels.push_back(fixed_number(0, std::max(0, top < -4 || top > 5 ? 0 : -last)));
    else if ((top > 5 && top - last < 6) || top < -4)
      axis.labels.push_back(scientific(v, std::max(0, exponent_of(v) - last)));
    else axis.labels.push_back(fixed_number(v, std::max(0, -last)));
  }
}

void linear_ticks(Axis& axis, double step, bool widen) {
  // Numbers that differ by less than this step would have one label.
  step = std::max(step, 1e-14 * std::max(std::abs(axis.low), std::abs(axis.high)));
  double first = std::ceil(axis.low / step - 1e-6), last = std::floor(axis.high / step + 1e-6);
  if (widen) {
    first = std::floor(axis.low / step + 1e-6), last = std::ceil(axis.high / step - 1e-6);
    axis.low = first * step, axis.high = last * step;
  }
  for (double i = first; i <= last && axis.ticks.size() < 100; ++i) axis.ticks.push_back(i * step);
  label(axis, step);
}

void log_ticks(Axis& axis, int wanted, bool widen) {
  const auto power = [](int e) { return std::pow(10.0, e); };
  const double decades = std::log10(axis.high) - std::log10(axis.low);
  int from = static_cast<int>(std::floor(std::log10(axis.low) + 1e-9)),
      to = static_cast<int>(std::ceil(std::log10(axis.high) - 1e-9));
  const bool parts = decades < 2.5;  // 2 and 5 have labels too
  if (widen && !parts) axis.low = power(from), axis.high = power(to);
  if (widen && parts) {  // to the nearest of those
    const double low = axis.low * (1 + 1e-9), high = axis.high * (1 - 1e-9);
    for (int e = from; e <= to; ++e)
      for (const double m : {1, 2, 5})
        if (m * power(e) <= low) axis.low = m * power(e);
    for (int e = to; e >= from; --e)
      for (const double m : {10, 5, 2, 1})
        if (m * power(e) >= high) axis.high = m * power(e);
  }
  const int every = std::max(1, static_cast<int>(std::ceil((to - from + 1) / (wanted + 1.0))));
  for (int e = from; e <= to; ++e) {
    for (int m = 1; m < 10; ++m) {
      const double v = m * power(e);
      if (v < axis.low * (1 - 1e-9) || v > axis.high * (1 + 1e-9)) continue;
      const bool labelled = parts ? m == 1 || m == 2 || m == 5 : m == 1 && (e - from) % every == 0;
      if (labelled) axis.ticks.push_back(v), axis.labels.push_back(short_number(v, 3));
      else if (m == 1 || (every == 1 && decades < 8)) axis.minor.push_back(v);
    }
  }
  if (axis.ticks.size() >= 2) return;
  axis.ticks.clear(), axis.labels.clear(), axis.minor.clear();
  linear_ticks(axis, nice_step((axis.high - axis.low) / wanted), false);
}

// The range as it can be drawn.
Axis range_of(double low, double high, bool log) {
  low = std::clamp(low, -kLargest, kLargest), high = std::clamp(high, -kLargest, kLargest);
  if (low > high) std::swap(low, high);
  const double size = std::max(std::abs(low), std::abs(high));
  if (log) {
    low = std::max(low, kSmallest), high = std::max(high, low);
    if (high / low < 1 + 1e-9) low /= 2, high *= 2;
  } else if (!(high - low > std::max(1e-12 * size, kSmallest))) {
    const double more = size > kSmallest ? 0.1 * size : 0.5;
    low -= more, high += more;
  }
  return {low, high, log, {}, {}, {}};
}

}  // namespace

std::string fixed_number(double value, int decimals) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  char buffer[512];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, decimals);
  std::string text(buffer, end.ptr);
  if (text[0] == '-' && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

std::string short_number(double value, int digits) {
  if (!std::isfinite(value)) return fixed_number(value, 0);
  if (value == 0) return "0";
  const std::string text = scientific(value, digits - 1);  // rounded: 9.9999 is 1e1
  const size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent > 5) return trimmed(text.substr(0, e)) + text.substr(e);
  return trimmed(fixed_number(value, std::max(0, digits - 1 - exponent)));
}

double Axis::place(double value) const {
  if (log) {
    if (!(value > 0)) return std::numeric_limits<double>::quiet_NaN();
    return (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  }
  return (value / 2 - low / 2) / (high / 2 - low / 2);  // the whole range may be no double
}

Axis axis_of(double low, double high, int wanted, Ticks ticks, bool widen) {
  Axis axis = range_of(low, high, ticks == Ticks::kLog);
  if (axis.log) {
    log_ticks(axis, wanted, widen);
    return axis;
  }
  const double step = nice_step(axis.high / wanted - axis.low / wanted);
  linear_ticks(axis, ticks == Ticks::kWhole ? std::max(1.0, step) : step, widen);
  return axis;
}

}  // namespace ramet::see
