#include "tools/see/pictures/planes.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "tools/see/pictures/axis.h"

namespace ramet::see {
namespace {

constexpr int64_t kMostImages = 256, kMostFilters = 64;

bool channels(int64_t n) { return n == 1 || n == 3; }

// The smallest and largest drawn number; for images the usual ranges where all numbers are inside.
Scale scale_of(const Tensor& x, const Planes& p, const ShowOptions& options) {
  Scale scale{ColorMap::kViridis, 0, 1};
  bool any = false;
  for (const Cells& cells : p.cells) {
    for (double v : cells.values) {
      if (!std::isfinite(v)) continue;
      scale.low = any ? std::min(scale.low, v) : v, scale.high = any ? std::max(scale.high, v) : v;
      any = true;
    }
  }
  if (p.kind == Kind::kImages) {
    scale.map = ColorMap::kGray;
    const double white = x.scalar_type() == kByte ? 255 : 1;
    if (scale.low >= 0 && scale.high <= white) scale.low = 0, scale.high = white;
  } else if (scale.low < 0 && scale.high > 0) {
    scale.map = ColorMap::kBalance;
  }
  if (options.map()) scale.map = *options.map();
  if (options.range()) scale.low = options.range()->first, scale.high = options.range()->second;
  return scale;
}

}  // namespace

double Scale::place(double value) const {
  double from = low, to = high;
  if (map == ColorMap::kBalance) to = std::max(std::abs(low), std::abs(high)), from = -to;
  if (!(to > from)) return std::isinf(value) ? value > 0 : 0.5;
  const double t = (value / 2 - from / 2) / (to / 2 - from / 2);
  return t > 0 ? std::min(t, 1.0) : t <= 0 ? 0.0 : t;
}

Color Scale::color(double value, Color nan) const {
  return std::isnan(value) ? nan : color_of(map, place(value));
}

Color Planes::color(int64_t plane, int64_t row, int64_t column, Color nan) const {
  if (channels == 1) return scale.color(cells[static_cast<size_t>(plane)].at(row, column), nan);
  double rgb[3];
  for (int64_t c = 0; c < 3; ++c) {
    rgb[c] = cells[static_cast<size_t>(plane * 3 + c)].at(row, column);
    if (std::isnan(rgb[c])) return nan;
  }
  const auto byte = [&](double v) {
    return static_cast<uint8_t>(std::lround(255 * scale.place(v)));
  };
  return {byte(rgb[0]), byte(rgb[1]), byte(rgb[2])};
}

std::string Planes::text(const Tensor& x) const {
  std::string text = describe(x) + ": " + text_of(facts);
  if (first().high > 1 || first().wide > 1)
    text += "; means of " + std::to_string(first().high) + " x " + std::to_string(first().wide) +
            " elements";
  if (left_out > 0)
    text += "; the first " + std::to_string(count) + " of " + std::to_string(count + left_out);
  return text;
}

Planes planes_of(const Tensor& x, Kind kind, const ShowOptions& options) {
  Planes p;
  p.kind = kind;
  if (kind == Kind::kMatrix) return p;
  p.in_row = options.in_row();
  if (kind == Kind::kFilters && x.dim() == 4) {
    const int64_t rows = std::min(x.size(0), kMostFilters),
                  columns = std::min(x.size(1), kMostFilters);
    p.count = rows * columns;
    p.left_out = x.size(0) * x.size(1) - p.count;
    p.indexed = columns > 1 && p.in_row == 0;
    if (p.indexed) p.in_row = columns;
    return p;
  }
  const int64_t all = kind == Kind::kFilters || x.dim() == 4 ? x.size(0) : 1;
  p.count = std::min(all, kMostImages), p.left_out = all - p.count;
  if (kind == Kind::kImages) p.channels = x.size(-3);
  return p;
}

void read_planes(Planes& p, const Tensor& x, const ShowOptions& options, int64_t most_rows,
                 int64_t most_columns) {
  const NoGradGuard off;
  p.facts = facts_of(x);
  Tensor drawn = x.shallow();
  if (p.left_out > 0) {
    const bool filters = p.kind == Kind::kFilters && x.dim() == 4;
    drawn = drawn.slice(0, 0, filters ? kMostFilters : p.count);
    if (filters) drawn = drawn.slice(1, 0, kMostFilters);
  }
  const Tensor planes =
      drawn.reshape({p.count * p.channels, x.size(-2), x.size(-1)}).to(Device(kCPU, 0));
  for (int64_t i = 0; i < planes.size(0); ++i)
    p.cells.push_back(cells_of(planes.select(0, i), most_rows, most_columns));
  p.scale = scale_of(x, p, options);
}

Kind kind_of(const Tensor& x, const ShowOptions& options) {
  check_shown("show", x, 1, 64);
  const int64_t n = x.dim();
  Kind kind = options.kind();
  if (kind == Kind::kAuto) {
    RAMET_CHECK(n <= 4, "show", "x: got ", describe(x),
                ", expected 1 to 4 dimensions (a part, x[0], or Kind::kHistogram)");
    kind = n == 1                    ? Kind::kCurve
           : n == 2                  ? Kind::kMatrix
           : channels(x.size(n - 3)) ? Kind::kImages
                                     : Kind::kFilters;
  }
  const auto expect = [&](bool fits, const char* shape) {
    RAMET_CHECK(fits, "show", "x: got ", describe(x), ", expected ", shape);
  };
  if (kind == Kind::kCurve) expect(n == 1, "1 dimension for a curve");
  if (kind == Kind::kMatrix) expect(n == 2, "2 dimensions for a matrix");
  if (kind == Kind::kImages)
    expect((n == 3 || n == 4) && channels(x.size(n - 3)),
           "(N, 1 or 3, height, width) or (1 or 3, height, width) for images");
  if (kind == Kind::kFilters)
    expect(n == 3 || n == 4, "(N, height, width) or (N, C, height, width) for filters");
  return kind;
}

void check_options(const ShowOptions& options) {
  if (options.range()) {
    const auto [low, high] = *options.range();
    RAMET_CHECK(std::isfinite(low) && std::isfinite(high) && low < high, "show", "range: got ", low,
                " to ", high, ", expected finite numbers, the first smaller");
  }
  RAMET_CHECK(options.in_row() >= 0, "show", "in_row: got ", options.in_row(),
              ", expected 0 or more");
  RAMET_CHECK(options.bins() >= 0 && options.bins() <= 1000, "show", "bins: got ", options.bins(),
              ", expected 0 to 1000");
}

}  // namespace ramet::see
