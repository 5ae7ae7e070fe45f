#include "tools/see/pictures/legend.h"

namespace ramet::see {
namespace {

constexpr Picture::Font kFont{13};
constexpr double kSample = 24, kGap = 20, kRow = 20, kBelow = 10;

// Calls f(curve's number, its name cut to fit, x, y) for each entry that fits; returns the height.
template <class F>
double each_entry(const Picture& measure, const std::vector<Curve>& curves, double width,
                  double most, F&& f) {
  double x = 0, y = 0;
  bool any = false;
  for (size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].name.empty()) continue;
    const std::string name = measure.fitted(curves[i].name, width - kSample - 8, kFont);
    const double wide = kSample + 8 + measure.text_width(name, kFont);
    const bool next = any && x + wide > width;
    if (y + (next ? 2 : 1) * kRow + kBelow > most) break;
    if (next) x = 0, y += kRow;
    f(i, name, x, y);
    x += wide + kGap, any = true;
  }
  return any ? y + kRow + kBelow : 0;
}

size_t number_in_palette(const std::vector<Curve>& curves, size_t i) {
  size_t number = 0;
  for (size_t k = 0; k < i; ++k) number += !curves[k].color;
  return number;
}

}  // namespace

Color color_of_curve(const std::vector<Curve>& curves, size_t i, bool dark) {
  return curves[i].color ? *curves[i].color : series_color(number_in_palette(curves, i), dark);
}

double dash_of_curve(const std::vector<Curve>& curves, size_t i) {
  return curves[i].color ? 0
                         : 5.0 * static_cast<double>(number_in_palette(curves, i) / kSeriesColors);
}

double legend_height(const Picture& measure, const std::vector<Curve>& curves, double width,
                     double most) {
  return each_entry(measure, curves, width, most,
                    [](size_t, const std::string&, double, double) {});
}

void draw_legend(Picture& picture, Area area, const std::vector<Curve>& curves, bool dark) {
  const auto draw = [&](size_t i, const std::string& name, double across, double down) {
    const Color color = color_of_curve(curves, i, dark);
    const double x = area.left + across, y = area.top + down + 9;
    if (curves[i].style != Curve::Style::kPoints)
      picture.line({{x + 2, y}, {x + kSample - 2, y}}, 2.4, color, dash_of_curve(curves, i));
    if (curves[i].style != Curve::Style::kLine)
      picture.dot(x + kSample / 2, y, 4, {color.r, color.g, color.b});
    picture.text(x + kSample + 6, y + 4.5, name, theme(dark).ink, kFont);
  };
  each_entry(picture, curves, area.width, area.height, draw);
}

}  // namespace ramet::see
