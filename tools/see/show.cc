#include "tools/see/show.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/atomic_file.h"
#include "tools/see/pictures/axis.h"
#include "tools/see/pictures/draw_planes.h"
#include "tools/see/pictures/heading.h"
#include "tools/see/pictures/histogram.h"
#include "tools/see/pictures/panel.h"
#include "tools/see/plot.h"

namespace ramet::see {
namespace {

std::string draw_histogram(const Tensor& x, const ShowOptions& options, Format format) {
  const bool dark = options.dark();
  const Facts facts = facts_of(x);
  const Histogram h = histogram_of(x, facts, options.bins());
  Picture picture(720, 420, theme(dark).paper, format);
  const Heading heading =
      heading_of(picture, options.title(),
                 described(x) + ": " + text_of(facts) + ", deviation " +
                     short_number(facts.deviation) + ", " + std::to_string(facts.zeros) + " zeros",
                 picture.width());
  draw_heading(picture, heading, dark);
  // A curve through the counts, which is not drawn, determines the axes.
  std::vector<double> counts;
  for (int64_t n : h.counts) counts.push_back(static_cast<double>(n));
  double most = 1;
  for (double n : counts) most = std::max(most, n);
  Panel panel;
  panel.curves.emplace_back("", std::vector<double>{h.edges.front(), h.edges.back()},
                            std::vector<double>{0, most});
  panel.x = AxisOptions("value"), panel.y = AxisOptions("elements");
  const Area slot{kMargin, heading.height, picture.width() - 2 * kMargin,
                  picture.height() - heading.height - kMargin / 2};
  Axes axes;
  const Area area = draw_frame(picture, slot, 0, panel, axes, dark);
  const double bottom = area.top + area.height;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double from = std::round(area.left + axes.x.place(h.edges[i]) * area.width),
                 to = std::round(area.left + axes.x.place(h.edges[i + 1]) * area.width),
                 high = axes.y.place(counts[i]) * area.height;
    picture.box(from + 1, bottom - high, std::max(1.0, to - from - 1), high, series_color(0, dark));
  }
  return picture.bytes();
}

std::string drawn(const Tensor& x, Format format, const ShowOptions& options) {
  check_options(options);
  const Kind kind = kind_of(x, options);
  if (kind == Kind::kHistogram) return draw_histogram(x, options, format);
  if (kind != Kind::kCurve) return draw_planes(x, kind, options, format);
  const std::string text = described(x) + ": " + text_of(facts_of(x));
  return plot_bytes({{{Curve("", x)}, "", AxisOptions("index").whole(true), AxisOptions("value")}},
                    format == Format::kPng ? ".png" : ".svg",
                    PlotOptions().title(options.title()).subtitle(text).dark(options.dark()));
}

}  // namespace

void show(const Tensor& x, const std::string& path, const ShowOptions& options) {
  const Format format = format_of("show", path);
  write_file_atomically(path, drawn(x, format, options));
}

std::string show_bytes(const Tensor& x, const std::string& ending, const ShowOptions& options) {
  return drawn(x, format_of("show", "x" + ending), options);
}

}  // namespace ramet::see
