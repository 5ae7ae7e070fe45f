#include "tools/see/plot.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/atomic_file.h"
#include "tools/see/pictures/curves.h"
#include "tools/see/pictures/heading.h"
#include "tools/see/pictures/panel.h"
#include "tools/see/pictures/values.h"

namespace ramet::see {
namespace {

std::vector<double> places(size_t n) {
  std::vector<double> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<double>(i);
  return x;
}

void check(const std::vector<Panel>& panels, const PlotOptions& options) {
  check_panels(panels);
  for (const int64_t size : {options.width(), options.height()})
    RAMET_CHECK(size >= 200 && size <= 8192, "plot", "width and height: got ", options.width(),
                " and ", options.height(), ", expected 200 to 8192");
}

std::string drawn(const std::vector<Panel>& panels, Format format, const PlotOptions& options) {
  check(panels, options);
  constexpr double kGap = 28;
  const bool dark = options.dark();
  Picture picture(static_cast<int>(options.width()), static_cast<int>(options.height()),
                  theme(dark).paper, format);
  const Heading heading = heading_of(picture, options.title(), options.subtitle(), picture.width(),
                                     0.35 * picture.height());
  draw_heading(picture, heading, dark);
  const double top = heading.height, count = static_cast<double>(panels.size()),
               width = (picture.width() - 2 * kMargin - (count - 1) * kGap) / count;
  double head = 0;  // of all panels, so that their axes stand side by side
  const double most = 0.4 * (picture.height() - top);
  for (const Panel& panel : panels) head = std::max(head, head_height(picture, panel, width, most));
  for (size_t i = 0; i < panels.size(); ++i) {
    const Area slot{kMargin + static_cast<double>(i) * (width + kGap), top, width,
                    picture.height() - top - kMargin / 2};
    Axes axes;
    const Area area = draw_frame(picture, slot, head, panels[i], axes, dark);
    draw_curves(picture, area, panels[i], axes, dark);
  }
  return picture.bytes();
}

}  // namespace

Curve::Curve(std::string n, const Tensor& values)
    : name(std::move(n)), y(vector_of("plot", "y", values)) {
  x = places(y.size());
}
Curve::Curve(std::string n, const Tensor& at, const Tensor& values)
    : name(std::move(n)), x(vector_of("plot", "x", at)), y(vector_of("plot", "y", values)) {}
Curve::Curve(std::string n, std::vector<double> values) : name(std::move(n)), y(std::move(values)) {
  x = places(y.size());
}
Curve::Curve(std::string n, std::vector<double> at, std::vector<double> values)
    : name(std::move(n)), x(std::move(at)), y(std::move(values)) {}

void plot(const std::vector<Panel>& panels, const std::string& path, const PlotOptions& options) {
  const Format format = format_of("plot", path);
  write_file_atomically(path, drawn(panels, format, options));
}
void plot(const std::vector<Curve>& curves, const std::string& path, const PlotOptions& options) {
  plot(std::vector<Panel>{{curves, "", options.x(), options.y()}}, path, options);
}
void plot(const Tensor& y, const std::string& path, const PlotOptions& options) {
  plot(std::vector<Curve>{Curve("", y)}, path, options);
}
std::string plot_bytes(const std::vector<Panel>& panels, const std::string& ending,
                       const PlotOptions& options) {
  return drawn(panels, format_of("plot", "x" + ending), options);
}

}  // namespace ramet::see
