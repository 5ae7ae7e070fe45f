#include "tools/see/pictures/legend.h"

namespace ramet::see {
namespace {

constexpr Picture::Font kFont{13};
constexpr double kSample = 24, kGap = 20, kRow = 20;

// Calls f(curve's number, its name as far as it has room, x, row); returns the number of rows.
template <class F>
double each_entry(const Picture& measure, const std::vector<Curve>& curves, double width, F&& f) {
  double x = 0, row = 0;
  bool any = false;
  for (size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].name.empty()) continue;
    const std::string name = measure.fitted(curves[i].name, width - kSample - 8, kFont);
    const double wide = kSample + 8 + measure.text_width(name, kFont);
    if (any && x + wide > width) x = 0, ++row;
    f(i, name, x, row);
    x += wide + kGap, any = true;
  }
  return any ? row + 1 : 0;
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

double legend_height(const Picture& measure, const std::vector<Curve>& curves, double width) {
  const double rows =
      each_entry(measure, curves, width, [](size_t, const std::string&, double, double) {});
  return rows > 0 ? rows * kRow + 10 : 0;
}

void draw_legend(Picture& picture, double left, double top, double width,
                 const std::vector<Curve>& curves, bool dark) {
  each_entry(picture, curves, width, [&](size_t i, const std::string& name, double at, double row) {
    const Color color = color_of_curve(curves, i, dark);
    const double x = left + at, y = top + row * kRow + 9;
    if (curves[i].style != Curve::Style::kPoints)
      picture.line({{x + 2, y}, {x + kSample - 2, y}}, 2.4, color, dash_of_curve(curves, i));
    if (curves[i].style != Curve::Style::kLine)
      picture.dot(x + kSample / 2, y, 4, {color.r, color.g, color.b});
    picture.text(x + kSample + 6, y + 4.5, name, theme(dark).ink, kFont);
  });
}

}  // namespace ramet::see
