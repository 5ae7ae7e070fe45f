// Curves in characters.
#include <algorithm>
#include <cmath>

#include "tools/see/pictures/legend.h"
#include "tools/see/pictures/panel.h"
#include "tools/see/pictures/terminal.h"
#include "tools/see/plot.h"

namespace ramet::see {

std::string plot_text(const std::vector<Curve>& curves, const PlotOptions& options) {
  const int64_t columns = terminal_columns("plot", options.columns()), lines = options.lines();
  check_lines("plot", lines);
  const Panel panel{curves, "", options.x(), options.y()};
  check_panels({panel});
  std::string text;
  const auto add = [&](const std::string& line) { text += without_end(line) + "\n"; };
  if (!options.title().empty()) add(cut(options.title(), columns));
  if (!options.subtitle().empty()) add(cut(options.subtitle(), columns));

  const auto color = [&](size_t i) -> std::optional<Color> {
    if (!options.colors()) return {};
    return color_of_curve(curves, i, options.dark());
  };
  std::string legend, shown;
  for (size_t i = 0; i < curves.size(); ++i) {
    const std::string& name = curves[i].name;
    if (name.empty() || columns_of(legend + ", " + name) > columns) continue;
    if (!legend.empty()) legend += ", ", shown += ", ";
    legend += name;
    shown += color(i) ? foreground(*color(i)) + name + kPlain : name;
  }
  if (!legend.empty()) add(shown);
  const std::string y_label = with_unit(panel.y), x_label = with_unit(panel.x);
  if (!y_label.empty()) add(cut(y_label, columns));

  Axes axes = axes_of(panel, 4, static_cast<int>(std::clamp<int64_t>(lines / 3, 1, 10)));
  int64_t numbers = 0;
  for (const std::string& label : axes.y.labels) numbers = std::max(numbers, columns_of(label));
  const int64_t wide = std::max<int64_t>(4, columns - numbers - 2);
  for (int ticks = 8; ticks > 1; --ticks) {  // as many as leave two blanks between labels
    axes.x = axes_of(panel, ticks, 1).x;
    int64_t all = 0;
    for (const std::string& label : axes.x.labels) all = std::max(all, columns_of(label) + 3);
    if (all * static_cast<int64_t>(axes.x.ticks.size()) <= wide) break;
  }

  Dots dots(wide, lines);
  const auto column = [&](double v) {
    return static_cast<int64_t>(std::lround(std::clamp(axes.x.place(v), -9.0, 9.0) *
                                            static_cast<double>(dots.width() - 1)));
  };
  const auto row = [&](double v) {
    return static_cast<int64_t>(std::lround((1 - std::clamp(axes.y.place(v), -9.0, 9.0)) *
                                            static_cast<double>(dots.height() - 1)));
  };
  for (size_t k = 0; k < curves.size(); ++k) {
    const Curve& curve = curves[k];
    bool joined = false;
    for (size_t i = 0; i < curve.y.size(); ++i) {
      const bool is_there = drawable(panel, curve.x[i], curve.y[i]);
      if (is_there && joined && curve.style != Curve::Style::kPoints)
        dots.line(column(curve.x[i - 1]), row(curve.y[i - 1]), column(curve.x[i]), row(curve.y[i]),
                  color(k));
      else if (is_there) dots.set(column(curve.x[i]), row(curve.y[i]), color(k));
      joined = is_there;
    }
  }
  for (int64_t r = 0; r < lines; ++r) {
    std::string label;
    for (size_t i = 0; i < axes.y.ticks.size(); ++i)
      if (row(axes.y.ticks[i]) / 4 == r) label = axes.y.labels[i];
    add(right_aligned(label, numbers) + (label.empty() ? " │" : " ┤") + dots.row(r));
  }
  const std::string margin(static_cast<size_t>(numbers + 1), ' ');
  std::vector<std::string> rule(static_cast<size_t>(wide), "─");
  std::string labels = margin;
  for (size_t i = 0; i < axes.x.ticks.size(); ++i) {
    const int64_t at = std::clamp<int64_t>(column(axes.x.ticks[i]) / 2, 0, wide - 1);
    rule[static_cast<size_t>(at)] = "┬";
    // In the middle below its tick, as far as the line goes.
    const int64_t size = columns_of(axes.x.labels[i]),
                  from = std::clamp<int64_t>(numbers + 2 + at - size / 2, 0, columns - size);
    if (from < columns_of(labels) + (i > 0)) continue;
    labels.resize(static_cast<size_t>(from), ' ');
    labels += axes.x.labels[i];
  }
  std::string line = margin + "└";
  for (const std::string& part : rule) line += part;
  add(line);
  add(labels);
  if (!x_label.empty()) add(margin + " " + cut(x_label, wide));
  return text;
}

std::string plot_text(const Tensor& y, const PlotOptions& options) {
  return plot_text(std::vector<Curve>{Curve("", y)}, options);
}

}  // namespace ramet::see
