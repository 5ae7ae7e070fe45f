#include "tools/see/pictures/colors.h"

#include <algorithm>
#include <cmath>

namespace ramet::see {
namespace {

constexpr Color rgb(uint32_t hex) {
  return {static_cast<uint8_t>(hex >> 16), static_cast<uint8_t>(hex >> 8),
          static_cast<uint8_t>(hex)};
}

// Sixteen of viridis' colours at equal distances (Stefan van der Walt, Nathaniel Smith, Eric Firing
// 2015, CC0); lines between.
constexpr uint32_t kViridisColors[] = {0x440154, 0x481a6c, 0x472f7d, 0x414487, 0x39568c, 0x31688e,
                                       0x2a788e, 0x23888e, 0x1f988b, 0x22a884, 0x35b779, 0x54c568,
                                       0x7ad151, 0xa5db36, 0xd2e21b, 0xfde725};

// ColorBrewer's RdBu of eleven classes, backwards, which it marks as safe for colour-blind readers
// (Cynthia Brewer, Mark Harrower, The Pennsylvania State University).
constexpr uint32_t kBalanceColors[] = {0x053061, 0x2166ac, 0x4393c3, 0x92c5de, 0xd1e5f0, 0xf7f7f7,
                                       0xfddbc7, 0xf4a582, 0xd6604d, 0xb2182b, 0x67001f};

constexpr uint32_t kGrayColors[] = {0x000000, 0xffffff};

template <size_t n> Color between(const uint32_t (&colors)[n], double t) {
  const double place = (t > 0 ? std::min(t, 1.0) : 0.0) * (n - 1);
  const size_t i = std::min(static_cast<size_t>(place), n - 2);
  const Color a = rgb(colors[i]), b = rgb(colors[i + 1]);
  const double rest = place - static_cast<double>(i);
  const auto mix = [rest](uint8_t from, uint8_t to) {
    return static_cast<uint8_t>(std::lround(from + rest * (to - from)));
  };
  return {mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b)};
}

// Okabe and Ito 2008, "Color universal design": eight colours that people with any kind of colour
// blindness can distinguish. Black is the theme's ink; colours with too little contrast stand last.
constexpr uint32_t kOnLight[kSeriesColors] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                              0xe69f00, 0x56b4e9, 0x000000};
constexpr uint32_t kOnDark[kSeriesColors] = {0x56b4e9, 0xe69f00, 0x009e73, 0xcc79a7,
                                             0xf0e442, 0xd55e00, 0xffffff};

}  // namespace

Color color_of(ColorMap map, double t) {
  switch (map) {
    case ColorMap::kBalance: return between(kBalanceColors, t);
    case ColorMap::kGray: return between(kGrayColors, t);
    default: return between(kViridisColors, t);
  }
}

const Theme& theme(bool dark) {
  static constexpr Theme kLight{rgb(0xffffff), rgb(0x1f2430), rgb(0x5b6472),
                                rgb(0xe4e7ec), rgb(0x8b93a0), rgb(0x808080)};
  static constexpr Theme kDark{rgb(0x14171c), rgb(0xe8eaee), rgb(0xa9b1bd),
                               rgb(0x2c323b), rgb(0x737d8b), rgb(0x808080)};
  return dark ? kDark : kLight;
}

Color series_color(size_t i, bool dark) {
  // By a pointer: with g++ 12's -fsanitize=undefined (a ? x : y)[i] of arrays is another element.
  const uint32_t* const colors = dark ? kOnDark : kOnLight;
  return rgb(colors[i % kSeriesColors]);
}

}  // namespace ramet::see
