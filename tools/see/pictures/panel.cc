#include "tools/see/pictures/panel.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "tools/see/pictures/legend.h"

namespace ramet::see {
namespace {

using Align = Picture::Align;
using Font = Picture::Font;

constexpr double kTick = 12, kTitle = 26;

void check(const char* name, const AxisOptions& o) {
  for (const std::optional<double>& end : {o.low(), o.high()})
    RAMET_CHECK(!end || (std::isfinite(*end) && (!o.log() || *end > 0)), "plot", name,
                " axis: got ", *end, " as an end, expected a finite number",
                o.log() ? " above 0" : "");
  RAMET_CHECK(!o.low() || !o.high() || *o.low() < *o.high(), "plot", name, " axis: got ",
              o.low().value_or(0), " to ", o.high().value_or(0), ", expected low < high");
}

Axis axis_for(const AxisOptions& o, double low, double high, int ticks, bool widen) {
  const bool fixed = o.low() && o.high();
  if (o.low()) low = *o.low(), high = std::max(high, low);
  if (o.high()) high = *o.high(), low = std::min(low, high);
  Axis axis = axis_of(low, high, ticks,
                      o.log()     ? Ticks::kLog
                      : o.whole() ? Ticks::kWhole
                                  : Ticks::kAny,
                      widen && !fixed);
  if (o.label().empty() && !o.unit().empty())
    for (std::string& label : axis.labels) label += (o.unit() == "%" ? "" : " ") + o.unit();
  return axis;
}

// Is there space between the labels of a horizontal axis?
bool apart(const Picture& picture, const Axis& axis, double width) {
  double end = -1e9;
  for (size_t i = 0; i < axis.ticks.size(); ++i) {
    const double at = axis.place(axis.ticks[i]) * width,
                 half = picture.text_width(axis.labels[i], {kTick}) / 2;
    if (at - half < end + 10) return false;
    end = at + half;
  }
  return true;
}

}  // namespace

void check_panels(const std::vector<Panel>& panels) {
  RAMET_CHECK(!panels.empty(), "plot", "panels: got none, expected at least one");
  for (const Panel& panel : panels) {
    RAMET_CHECK(!panel.curves.empty(), "plot", "curves: got none, expected at least one");
    for (const Curve& c : panel.curves) {
      RAMET_CHECK(c.x.size() == c.y.size(), "plot", "curve \"", c.name, "\": got ", c.x.size(),
                  " x and ", c.y.size(), " y, expected as many");
      RAMET_CHECK(c.labels.empty() || c.labels.size() == c.y.size(), "plot", "curve \"", c.name,
                  "\": got ", c.labels.size(), " labels for ", c.y.size(),
                  " points, expected as many or none");
      RAMET_CHECK(c.width > 0 && c.width <= 100, "plot", "curve \"", c.name, "\": got width ",
                  c.width, ", expected above 0 to 100");
    }
    check("x", panel.x), check("y", panel.y);
  }
}

std::string with_unit(const AxisOptions& o) {
  return o.label().empty() || o.unit().empty() ? o.label() : o.label() + " (" + o.unit() + ")";
}

bool drawable(const Panel& panel, double x, double y) {
  return std::isfinite(x) && std::isfinite(y) && (!panel.x.log() || x > 0) &&
         (!panel.y.log() || y > 0);
}

Axes axes_of(const Panel& panel, int x_ticks, int y_ticks) {
  double x[2] = {0, 1}, y[2] = {0, 1};
  if (panel.x.log()) x[0] = 0.1;
  if (panel.y.log()) y[0] = 0.1;
  bool empty = true;
  for (const Curve& curve : panel.curves) {
    for (size_t i = 0; i < curve.y.size(); ++i) {
      const double px = curve.x[i], py = curve.y[i];
      if (!drawable(panel, px, py)) continue;
      x[0] = empty ? px : std::min(x[0], px), x[1] = empty ? px : std::max(x[1], px);
      y[0] = empty ? py : std::min(y[0], py), y[1] = empty ? py : std::max(y[1], py);
      empty = false;
    }
  }
  return {axis_for(panel.x, x[0], x[1], x_ticks, false),
          axis_for(panel.y, y[0], y[1], y_ticks, true), empty};
}

double head_height(const Picture& measure, const Panel& panel, double width, double most) {
  const double title = panel.title.empty() ? 0 : kTitle;
  return title + legend_height(measure, panel.curves, width, most - title);
}

Area draw_frame(Picture& picture, Area slot, double head, const Panel& panel, Axes& axes,
                bool dark) {
  const Theme& colors = theme(dark);
  double top = slot.top;
  if (!panel.title.empty()) {
    const Font font{15, true};
    picture.text(slot.left, top + 13, picture.fitted(panel.title, slot.width, font), colors.ink,
                 font);
    top += kTitle;
  }
  draw_legend(picture, {slot.left, top, slot.width, slot.top + head - top}, panel.curves, dark);
  top = slot.top + head;

  const std::string x_label = with_unit(panel.x), y_label = with_unit(panel.y);
  double numbers = 0;
  for (const std::string& label : axes_of(panel, 2, 6).y.labels)
    numbers = std::max(numbers, picture.text_width(label, {kTick}));
  Area area;
  area.left = slot.left + (y_label.empty() ? 0 : 24) + numbers + 8;
  area.top = top + 6;
  area.width = std::max(10.0, slot.left + slot.width - 10 - area.left);
  area.height = std::max(10.0, slot.top + slot.height - (x_label.empty() ? 26 : 50) - area.top);
  area = {std::round(area.left), std::round(area.top), std::round(area.width),
          std::round(area.height)};
  // As many ticks as fit, fewer until their labels do not touch.
  int across = std::clamp(static_cast<int>(area.width / 80), 1, 10),
      up = std::clamp(static_cast<int>(area.height / 50), 1, 10);
  for (axes = axes_of(panel, across, up); across > 1 && !apart(picture, axes.x, area.width);)
    axes.x = axes_of(panel, --across, up).x;
  while (up > 1 && axes.y.ticks.size() > area.height / 22 + 1) axes.y = axes_of(panel, 1, --up).y;

  const double right = area.left + area.width, bottom = area.top + area.height;
  for (const double v : axes.y.minor) {
    const double y = bottom - axes.y.place(v) * area.height;
    picture.rule(area.left, y, area.left + 5, y, colors.axis);
  }
  for (size_t i = 0; i < axes.y.ticks.size(); ++i) {
    const double y = bottom - axes.y.place(axes.y.ticks[i]) * area.height;
    picture.rule(area.left, y, right, y, colors.grid);
    picture.text(area.left - 8, y + 4.5, axes.y.labels[i], colors.soft,
                 {kTick, false, Align::kRight});
  }
  for (size_t i = 0; i < axes.x.ticks.size(); ++i) {
    const double x = area.left + axes.x.place(axes.x.ticks[i]) * area.width;
    picture.rule(x, area.top, x, bottom, colors.grid);
    picture.rule(x, bottom, x, bottom + 5, colors.axis);
    picture.text(x, bottom + 20, axes.x.labels[i], colors.soft, {kTick, false, Align::kCenter});
  }
  for (const double v : axes.x.minor) {
    const double x = area.left + axes.x.place(v) * area.width;
    picture.rule(x, bottom - 4, x, bottom, colors.axis);
  }
  picture.rule(area.left, bottom, right, bottom, colors.axis);
  picture.rule(area.left, area.top, area.left, bottom, colors.axis);
  if (!x_label.empty())
    picture.text(area.left + area.width / 2, bottom + 42,
                 picture.fitted(x_label, area.width + 20, {13}), colors.soft,
                 {13, false, Align::kCenter});
  if (!y_label.empty())
    picture.text(slot.left + 12, area.top + area.height / 2,
                 picture.fitted(y_label, area.height + 40, {13}), colors.soft,
                 {13, false, Align::kCenter, true});
  if (axes.empty)
    picture.text(area.left + area.width / 2, area.top + area.height / 2, "no points yet",
                 colors.soft, {14, false, Align::kCenter});
  return area;
}

}  // namespace ramet::see
