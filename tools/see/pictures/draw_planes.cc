#include "tools/see/pictures/draw_planes.h"

#include <algorithm>
#include <cmath>

#include "tools/see/pictures/axis.h"
#include "tools/see/pictures/heading.h"

namespace ramet::see {
namespace {

using Align = Picture::Align;

constexpr double kNumber = 12;  // size of numbers at edges
constexpr int kBarGap = 22, kBarWidth = 16;

// Where everything stands, in pixels: rectangles of the same size in a grid.
struct Layout {
  int64_t rows, columns;  // of rectangles
  double cell_wide, cell_high, gap;
  double wide, high;  // of a rectangle

  double across() const { return static_cast<double>(columns) * (wide + gap) - gap; }
  double down() const { return static_cast<double>(rows) * (high + gap) - gap; }
};

int64_t side_of(int64_t count) {
  auto side = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  return std::max<int64_t>(side, 1);
}

// Cells as large as the picture allows, square unless the matrix is long and narrow.
Layout matrix_layout(const Cells& cells, double most_wide, double most_high) {
  const auto room = [](double most, int64_t n) {
    return std::clamp(std::floor(most / static_cast<double>(n)), 1.0, 48.0);
  };
  const double wide = room(most_wide, cells.columns), high = room(most_high, cells.rows),
               both = std::min(wide, high);
  Layout l{1, 1, 0, 0, 0, 0, 0};
  l.cell_wide = std::min(wide, std::max(both, room(120, cells.columns)));
  l.cell_high = std::min(high, std::max(both, room(120, cells.rows)));
  l.wide = l.cell_wide * static_cast<double>(cells.columns);
  l.high = l.cell_high * static_cast<double>(cells.rows);
  return l;
}

// `room`: the space of one rectangle and its gap.
Layout grid_layout(const Planes& p, int64_t columns, double room, double target) {
  const Cells& cells = p.first();
  const auto longest = static_cast<double>(std::max(cells.rows, cells.columns));
  Layout l;
  l.columns = std::min(columns, p.count);
  l.rows = (p.count + columns - 1) / columns;
  l.gap = p.kind == Kind::kImages || room > 40 ? 4 : 2;
  l.cell_wide = l.cell_high =
      std::max(1.0, std::min(std::floor(target / longest), std::floor((room - l.gap) / longest)));
  l.wide = l.cell_wide * static_cast<double>(cells.columns);
  l.high = l.cell_high * static_cast<double>(cells.rows);
  return l;
}

std::vector<uint8_t> colors_of(const Planes& p, int64_t plane, Color nan) {
  const Cells& cells = p.first();
  std::vector<uint8_t> rgb;
  for (int64_t r = 0; r < cells.rows; ++r) {
    for (int64_t c = 0; c < cells.columns; ++c) {
      const Color color = p.color(plane, r, c, nan);
      rgb.insert(rgb.end(), {color.r, color.g, color.b});
    }
  }
  return rgb;
}

// Writes the numbers themselves, where they fit into the cells.
void draw_numbers(Picture& picture, const Planes& p, const Layout& l, double left, double top,
                  Color nan) {
  const Cells& cells = p.first();
  if (l.cell_wide < 38 || l.cell_high < 18) return;
  for (int64_t r = 0; r < cells.rows; ++r) {
    for (int64_t c = 0; c < cells.columns; ++c) {
      const Color under = p.color(0, r, c, nan);
      const double light = 0.299 * under.r + 0.587 * under.g + 0.114 * under.b;
      const std::string text = short_number(cells.at(r, c), 3);
      double size = 12;  // smaller for long ones
      while (size > 8 && picture.text_width(text, {size}) > l.cell_wide - 4) size -= 0.5;
      picture.text(left + (static_cast<double>(c) + 0.5) * l.cell_wide,
                   top + (static_cast<double>(r) + 0.5) * l.cell_high + size * 0.36, text,
                   light > 140 ? Color{0, 0, 0} : Color{255, 255, 255},
                   {size, false, Align::kCenter});
    }
  }
}

// Draws numbers of rows, or of columns. There are `count` things with a distance of `pitch` pixels,
// and each stands for `each`.
void draw_indices(Picture& picture, double left, double top, bool rows, int64_t count, double pitch,
                  double size, int64_t each, bool dark) {
  const auto total = static_cast<double>(count * each);
  const Axis axis = axis_of(
      0, std::max(0.0, total - 1),
      std::clamp(static_cast<int>(static_cast<double>(count) * pitch / (rows ? 30 : 48)), 1, 12),
      Ticks::kWhole);
  for (size_t i = 0; i < axis.ticks.size(); ++i) {
    if (axis.ticks[i] < 0 || axis.ticks[i] > total - 1) continue;
    const double at = std::floor(axis.ticks[i] / static_cast<double>(each)) * pitch + size / 2;
    const Color color = theme(dark).soft, tick = theme(dark).axis;
    if (rows) {
      picture.rule(left - 4, top + at, left, top + at, tick);
      picture.text(left - 8, top + at + 4.5, axis.labels[i], color,
                   {kNumber, false, Align::kRight});
    } else {
      picture.rule(left + at, top, left + at, top + 4, tick);
      picture.text(left + at, top + 18, axis.labels[i], color, {kNumber, false, Align::kCenter});
    }
  }
}

// From the largest number, above, to the smallest. Both have their labels; ticks between them have
// labels where they fit.
void draw_bar(Picture& picture, const Scale& scale, double left, double top, double high, Color nan,
              bool dark) {
  const auto rows = static_cast<int>(high);
  std::vector<uint8_t> rgb;
  for (int r = 0; r < rows; ++r) {
    const double f = r / (high - 1);
    const Color color = scale.color(f < 1 ? scale.high * (1 - f) + scale.low * f : scale.low, nan);
    rgb.insert(rgb.end(), {color.r, color.g, color.b});
  }
  // A box around it, because white ends would vanish on white paper.
  picture.box(left - 1, top - 1, kBarWidth + 2, rows + 2, theme(dark).axis);
  picture.pixels(left, top, kBarWidth, rows, rgb, rows, 1);
  const Picture::Font font{kNumber};
  const auto label = [&](double at, const std::string& text, Color color) {
    picture.rule(left + kBarWidth, at, left + kBarWidth + 4, at, theme(dark).axis);
    picture.text(left + kBarWidth + 8, at + 4.5, text, color, font);
  };
  if (!(scale.high > scale.low)) {
    label(top + high / 2, short_number(scale.low), theme(dark).ink);
    return;
  }
  label(top, short_number(scale.high), theme(dark).ink);
  label(top + rows - 1, short_number(scale.low), theme(dark).ink);
  const Axis axis = axis_of(scale.low, scale.high, std::clamp(rows / 50, 1, 8));
  for (size_t i = 0; i < axis.ticks.size(); ++i) {
    const double at = (1 - axis.place(axis.ticks[i])) * (rows - 1);
    if (at > 18 && at < rows - 19) label(top + at, axis.labels[i], theme(dark).soft);
  }
}

double bar_labels(const Picture& measure, const Scale& scale) {
  double wide = std::max(measure.text_width(short_number(scale.low), {kNumber}),
                         measure.text_width(short_number(scale.high), {kNumber}));
  for (const std::string& text : axis_of(scale.low, scale.high, 8).labels)
    wide = std::max(wide, measure.text_width(text, {kNumber}));
  return wide;
}

}  // namespace

std::string draw_planes(const Tensor& x, Kind kind, const ShowOptions& options, Format format) {
  constexpr int64_t kMatrixWide = 720, kMatrixHigh = 560;
  constexpr double kGrid = 1000, kGivenGrid = 1600;
  const bool dark = options.dark(), bare = options.bare() && kind == Kind::kImages;
  const Theme& colors = theme(dark);

  // The number of rectangles in a row determines the pixels of each.
  Planes p = planes_of(x, kind, options);
  const int64_t in_row = p.in_row > 0 ? p.in_row : side_of(p.count),
                rows = (p.count + in_row - 1) / in_row;
  const double room = options.in_row() > 0
                          ? std::floor(kGivenGrid / static_cast<double>(in_row))
                          : std::floor(kGrid / static_cast<double>(std::max(in_row, rows)));
  const auto most = std::max<int64_t>(8, static_cast<int64_t>(room));
  const bool matrix = kind == Kind::kMatrix;
  read_planes(p, x, options, matrix ? kMatrixHigh : most, matrix ? kMatrixWide : most);
  const Layout l = matrix ? matrix_layout(p.first(), kMatrixWide, kMatrixHigh)
                          : grid_layout(p, in_row, room,
                                        p.count == 1            ? 480
                                        : kind == Kind::kImages ? 128
                                                                : 96);

  const Picture measure(1, 1, colors.paper, Format::kPng);
  const bool indices = matrix || p.indexed, bar = !bare && p.channels == 1;
  double left = bare ? l.gap : kMargin, top = bare ? l.gap : 0;
  const int64_t last_row = (matrix ? p.first().rows * p.first().high : l.rows) - 1;
  if (indices) left += measure.text_width(std::to_string(last_row), {kNumber}) + 8;
  double right = left + l.across() + (bare ? l.gap : kMargin),
         below = bare ? l.gap : kMargin + (indices ? 20 : 0);
  const double bar_high = std::max(std::round(l.down()), 120.0);
  if (bar) right += kBarGap + kBarWidth + 8 + bar_labels(measure, p.scale);
  const int width = static_cast<int>(std::ceil(bare ? right : std::max(right, 420.0)));
  Heading heading{{}, {}, 0};
  if (!bare)
    heading = heading_of(measure, options.title(), p.text(x), width), top = heading.height + 4;
  const int height =
      static_cast<int>(std::ceil(top + std::max(l.down(), bar ? bar_high : 0) + below));

  Picture picture(width, height, colors.paper, format);
  draw_heading(picture, heading, dark);
  left = std::round(left), top = std::round(top);
  for (int64_t i = 0; i < p.count; ++i) {
    picture.pixels(left + static_cast<double>(i % l.columns) * (l.wide + l.gap),
                   top + static_cast<double>(i / l.columns) * (l.high + l.gap), l.wide, l.high,
                   colors_of(p, i, colors.nan), static_cast<int>(p.first().rows),
                   static_cast<int>(p.first().columns));
  }
  if (matrix) {
    draw_numbers(picture, p, l, left, top, colors.nan);
    draw_indices(picture, left, top, true, p.first().rows, l.cell_high, l.cell_high, p.first().high,
                 dark);
    draw_indices(picture, left, top + l.high, false, p.first().columns, l.cell_wide, l.cell_wide,
                 p.first().wide, dark);
  } else if (indices) {
    draw_indices(picture, left, top, true, l.rows, l.high + l.gap, l.high, 1, dark);
    draw_indices(picture, left, top + l.down(), false, l.columns, l.wide + l.gap, l.wide, 1, dark);
  }
  if (bar) draw_bar(picture, p.scale, left + l.across() + kBarGap, top, bar_high, colors.nan, dark);
  return picture.bytes();
}

}  // namespace ramet::see
