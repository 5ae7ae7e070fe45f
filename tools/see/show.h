// A tensor as a picture: a PNG, an SVG, or text for a terminal.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "nn/module/arg.h"
#include "tools/see/pictures/colors.h"

namespace ramet {
class Tensor;

namespace see {

/// What is drawn.
/// - kAuto: by the number of dimensions. 1 is kCurve, 2 is kMatrix. 3 and 4 are kImages where 1 or
///   3 channels stand before height and width, else kFilters.
/// - kCurve: 1 dimension. The numbers over 0, 1, 2 ...
/// - kMatrix: 2 dimensions. A coloured cell for each number, with a colour bar; the numbers too
///   where they fit into the cells.
/// - kImages: (1 or 3, height, width) or (N, 1 or 3, height, width). Pictures in rows.
/// - kFilters: (N, height, width) or (N, C, height, width). A small matrix each, those of one N in
///   a row, with one colour bar for all.
/// - kHistogram: any number of dimensions. How often each range of numbers occurs.
enum class Kind { kAuto, kCurve, kMatrix, kImages, kFilters, kHistogram };

struct ShowOptions {
  RAMET_ARG(Kind, kind) = Kind::kAuto;
  RAMET_ARG(std::string, title);
  /// By default kBalance for numbers of both signs, kGray for images of one channel, else kViridis.
  RAMET_ARG(std::optional<ColorMap>, map);
  /// The numbers at the ends of the colours. By default these are the smallest and largest number.
  /// For kBalance they make the colours equally strong on both sides of 0. For images they are 0
  /// and 1, or 0 and 255 of bytes, where all numbers lie between. Numbers outside have the colour
  /// of their end.
  using Range = std::optional<std::pair<double, double>>;
  RAMET_ARG(Range, range);
  /// Images or filters in a row; 0: as many as make the picture about as high as wide.
  RAMET_ARG(int64_t, in_row) = 0;
  /// Of a histogram; 0: by the number of elements (whole numbers: at most one for each).
  RAMET_ARG(int64_t, bins) = 0;
  /// Images with nothing around them: no text, no colour bar.
  RAMET_ARG(bool, bare) = false;
  /// Light text on a dark background.
  RAMET_ARG(bool, dark) = false;
  /// Of text: 0 means as wide as the terminal (80 where there is none).
  RAMET_ARG(int64_t, columns) = 0;
  /// Of text: the most lines that the values have.
  RAMET_ARG(int64_t, lines) = 24;
  /// Of text: two pixels a character in 24-bit colours (ANSI), else shades.
  RAMET_ARG(bool, colors) = false;
};

/// The file is written whole or not at all, PNG or SVG by its ending. On one machine it has the
/// same bytes for the same tensor and options. Any dtype; GPU tensors are copied to the host. NaN
/// is grey. Infinite numbers have the colour of the end. The picture says how many there are of
/// both.
///
/// A matrix or image with more elements than fit into the picture is drawn by means of blocks (a
/// block with a NaN is one). Of more than 256 images or 64 x 64 filters the first are drawn. The
/// text under the title says so.
///
/// Errors: another ending, a folder that cannot be written to, a tensor that is undefined, empty or
/// without dimensions. Also errors: a shape that the kind cannot draw, a range that is not finite
/// or not rising, and negative numbers of columns or bins.
RAMET_API void show(const Tensor& x, const std::string& path, const ShowOptions& options = {});
/// The bytes of such a file; `ending`: ".png" or ".svg".
RAMET_API std::string show_bytes(const Tensor& x, const std::string& ending,
                                 const ShowOptions& options = {});

/// The same in characters, UTF-8 whatever the locale is. Matrices and images are shades ░▒▓█ or
/// colours, histograms are bars, curves are dots. Lines have `columns` characters at most.
RAMET_API std::string show_text(const Tensor& x, const ShowOptions& options = {});

}  // namespace see
}  // namespace ramet
