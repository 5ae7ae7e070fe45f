// Colours of pictures: maps from numbers, series that every reader can distinguish, light and dark.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/error.h"

namespace ramet {
namespace see {

struct Color {
  uint8_t r, g, b;
  double alpha = 1;
};

/// How numbers become colours.
///   kViridis   dark blue over green to yellow; brighter means larger, to every eye and in grey
///              print.
///   kBalance   blue below the middle, white there, red above: for numbers of both signs.
///   kGray      black to white.
enum class ColorMap { kViridis, kBalance, kGray };

/// `t` from 0 to 1; what is outside, or NaN, counts as the nearer end, NaN as 0.
RAMET_API Color color_of(ColorMap map, double t);

/// Of whatever is neither a series nor a number.
struct Theme {
  Color paper, ink, soft, grid, axis;
  Color nan;  // of a number that is none: in no map
};
RAMET_API const Theme& theme(bool dark);

/// Of the i-th series, and with it the number of colours before they start again.
RAMET_API Color series_color(size_t i, bool dark);
inline constexpr size_t kSeriesColors = 7;

}  // namespace see
}  // namespace ramet
