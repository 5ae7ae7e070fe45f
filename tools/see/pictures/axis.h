// Ranges of numbers, the positions of their ticks, and numbers as short text.
#pragma once
#include <string>
#include <vector>

namespace ramet {
namespace see {

/// `value` with that many significant digits at most: "0.25", "1200", "1.5e7", "-2e-5", "nan". Does
/// not depend on the locale. Powers of ten from 1e6 on and below 1e-4.
std::string short_number(double value, int digits = 4);
/// With exactly that many decimals; "nan" of either sign. Does not depend on the locale.
std::string fixed_number(double value, int decimals);

/// A range and its ticks. The ticks are multiples of 1, 2 or 5 times a power of ten (Heckbert 1990,
/// "Nice numbers for graph labels"). On a logarithmic axis they are powers of ten, or these
/// multiples of powers of ten.
struct Axis {
  double low = 0, high = 1;
  bool log = false;
  std::vector<double> ticks, minor;
  std::vector<std::string> labels;  // of the ticks

  /// The position of `value`: 0 at `low`, 1 at `high`; beyond that outside of the range. NaN where
  /// there is no position.
  double place(double value) const;
};

/// Where ticks may stand: anywhere, at whole numbers, on a logarithmic axis.
enum class Ticks { kAny, kWhole, kLog };
/// The axis of a range of finite numbers, for kLog above 0. A range of one number is made wider.
/// About `wanted` ticks. With `widen` the range ends at ticks.
Axis axis_of(double low, double high, int wanted, Ticks ticks = Ticks::kAny, bool widen = false);

}  // namespace see
}  // namespace ramet
