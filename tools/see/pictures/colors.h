// Colours of pictures: maps from numbers, series that every reader can distinguish, light and dark.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/error.h"

namespace ramet {
namespace see {

/// A colour: red, green and blue from 0 to 255, and its opacity.
struct Color {
  /// Red, green and blue:
  uint8_t r, g, b;
  double alpha = 1;  // 0 is transparent, 1 opaque
};

/// How numbers become colours.
///   kViridis   dark blue over green to yellow; brighter means larger, to every eye and in grey
///              print.
///   kBalance   blue below the middle, white there, red above: for numbers of both signs.
///   kGray      black to white.
enum class ColorMap { kViridis, kBalance, kGray };

/// `t` from 0 to 1; what is outside, or NaN, counts as the nearer end, NaN as 0.
RAMET_API Color color_of(ColorMap map, double t);

/// Colours of a picture's parts: `paper` is the background, `ink` text, `soft` text of less
/// weight, `grid` and `axis` lines.
struct Theme {
  Color paper, ink, soft, grid, axis;
  Color nan;  // of a number that is none: in no map
};
/// The light theme, or the dark one.
RAMET_API const Theme& theme(bool dark);

/// Of the i-th series. There are kSeriesColors of them, then they start again.
RAMET_API Color series_color(size_t i, bool dark);
/// The number of colours of series.
inline constexpr size_t kSeriesColors = 7;

}  // namespace see
}  // namespace ramet
