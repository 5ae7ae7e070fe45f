// A tensor as small rectangles of numbers next to each other: a matrix, images, filters.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tools/see/pictures/values.h"
#include "tools/see/show.h"

namespace ramet {
namespace see {

/// From numbers to colours.
struct Scale {
  ColorMap map;
  double low, high;

  /// From 0 to 1: where a number stands in the map. Of kBalance 0 is the middle.
  double place(double value) const;
  Color color(double value, Color nan) const;
};

struct Planes {
  Kind kind;             // kMatrix, kImages or kFilters.
  int64_t count = 1;     // of rectangles that are drawn.
  int64_t left_out = 0;  // and of those that are not
  int64_t in_row = 0;    // 0: as one likes
  bool indexed = false;  // rows and columns of rectangles are numbers of the shape
  int64_t channels = 1;  // 3: red, green and blue follow each other in `cells`

  // What read_planes() adds.
  std::vector<Cells> cells;  // count * channels, all of one size
  Scale scale{};
  Facts facts;  // of all elements of the tensor

  const Cells& first() const { return cells[0]; }
  Color color(int64_t plane, int64_t row, int64_t column, Color nan) const;
  /// The text under the title: shape, facts, what was left out.
  std::string text(const Tensor& x) const;
};

/// How many rectangles, by the shape.
Planes planes_of(const Tensor& x, Kind kind, const ShowOptions& options);
/// Reads them: means of blocks where one has more than so many rows or columns.
void read_planes(Planes& p, const Tensor& x, const ShowOptions& options, int64_t most_rows,
                 int64_t most_columns);

/// kAuto by the shape; an Error of `show` where the kind cannot draw it.
Kind kind_of(const Tensor& x, const ShowOptions& options);
/// Numbers of options.
void check_options(const ShowOptions& options);

}  // namespace see
}  // namespace ramet
