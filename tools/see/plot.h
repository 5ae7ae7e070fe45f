// Curves as pictures: a PNG, an SVG, or text for a terminal.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "nn/module/arg.h"
#include "tools/see/pictures/colors.h"

namespace ramet {
class Tensor;

namespace see {

/// Points in their order, and what connects them. These points leave a gap: NaN, infinite numbers,
/// and on a logarithmic axis numbers that are not above 0. A curve may have no points: it begins
/// later.
struct RAMET_API Curve {
  /// What is drawn: a line from point to point, the points, or both.
  enum class Style { kLine, kPoints, kLineAndPoints };

  /// x: 0, 1, 2 ... Tensors have one dimension, any dtype and device.
  Curve(std::string name, const Tensor& y);
  Curve(std::string name, const Tensor& x, const Tensor& y);
  Curve(std::string name, std::vector<double> y);
  Curve(std::string name, std::vector<double> x, std::vector<double> y);

  std::string name;  // in the legend, as far as it fits; empty: not there
  /// The points' coordinates:
  std::vector<double> x, y;

  Style style = Style::kLine;  // a line, points or both
  double width = 2;            // of the line, in pixels.
  std::optional<Color> color;  // else of a palette that colour-blind readers can distinguish.
  /// Texts at the points, as many as there are points, or none. Empty texts are left out, and those
  /// that do not fit. The last has priority, then the highest, then from the left.
  std::vector<std::string> labels;
};

/// An axis: `label` is the text at it. `log` makes it logarithmic, to base 10.
struct AxisOptions {
  AxisOptions(std::string label = "") : label_(std::move(label)) {}
  AxisOptions(const char* label) : label_(label) {}
  RAMET_ARG(std::string, label);
  /// "ms": after the label in brackets; without a label after each number.
  RAMET_ARG(std::string, unit);
  RAMET_ARG(bool, log) = false;
  /// Ticks at whole numbers only; not for a logarithmic axis.
  RAMET_ARG(bool, whole) = false;
  /// Ends of the axis, `low` and `high`; by default those of the numbers. Points outside are cut
  /// off:
  RAMET_ARG(std::optional<double>, low);
  RAMET_ARG(std::optional<double>, high);
};

/// A picture of curves: `title` stands above it in large type, `subtitle` under that. `dark` takes
/// light text on a dark background.
struct PlotOptions {
  RAMET_ARG(std::string, title);
  RAMET_ARG(std::string, subtitle);
  RAMET_ARG(AxisOptions, x);
  RAMET_ARG(AxisOptions, y);
  /// In pixels, of the whole picture; text of a terminal has `columns` instead.
  RAMET_ARG(int64_t, width) = 900;
  RAMET_ARG(int64_t, height) = 520;
  RAMET_ARG(bool, dark) = false;
  /// Of text: 0 means as wide as the terminal (80 where there is none).
  RAMET_ARG(int64_t, columns) = 0;
  /// Of text: the number of lines that the curves have.
  RAMET_ARG(int64_t, lines) = 16;
  /// Of text: each curve in its colour (ANSI, 24 bits).
  RAMET_ARG(bool, colors) = false;
};

/// The file is written whole or not at all, PNG or SVG by its ending. On one machine it has the
/// same bytes for the same curves. Errors: another ending, a folder that cannot be written to, no
/// curve, x and y of different lengths. Also errors: a tensor that is undefined or has not one
/// dimension, a width or height outside of 200 to 8192. An axis is an error if its ends are not
/// finite or in the wrong order.
RAMET_API void plot(const std::vector<Curve>& curves, const std::string& path,
                    const PlotOptions& options = {});
/// One curve of y over 0, 1, 2 ...
RAMET_API void plot(const Tensor& y, const std::string& path, const PlotOptions& options = {});

/// One of several plots in a picture: its `curves`, its `title`, and its axes `x` and `y`.
struct Panel {
  std::vector<Curve> curves;
  std::string title;
  AxisOptions x, y;
};
/// Draws panels next to each other. It uses the options title, subtitle, width, height and dark.
RAMET_API void plot(const std::vector<Panel>& panels, const std::string& path,
                    const PlotOptions& options = {});
/// The bytes of such a file; `ending`: ".png" or ".svg".
RAMET_API std::string plot_bytes(const std::vector<Panel>& panels, const std::string& ending,
                                 const PlotOptions& options = {});

/// Curves as text, in characters of 2 x 4 dots (Unicode's braille patterns), with axes around them.
/// Lines have `columns` characters at most, in UTF-8 whatever the locale is. Without `colors`
/// several curves have the same appearance.
RAMET_API std::string plot_text(const std::vector<Curve>& curves, const PlotOptions& options = {});
RAMET_API std::string plot_text(const Tensor& y, const PlotOptions& options = {});

}  // namespace see
}  // namespace ramet
