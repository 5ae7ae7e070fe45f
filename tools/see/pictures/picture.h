// A drawing surface over Cairo: lines, boxes, dots, text in the machine's fonts, blocks of pixels;
// PNG or SVG.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/see/pictures/colors.h"

namespace ramet {
namespace see {

using Points = std::vector<std::pair<double, double>>;

/// A rectangle in a picture.
struct Area {
  double left, top, width, height;
};

/// The format of a file, by the ending of its name.
enum class Format { kPng, kSvg };
/// An Error of `op` unless `path` ends in ".png" or ".svg".
Format format_of(const char* op, const std::string& path);

/// The origin is top left; what lies outside is clipped. Calls with the same arguments give the
/// same bytes on one machine; letters are those of its fonts, outlines in an SVG. Belongs to one
/// thread.
///
/// The font is whatever the machine has for "sans-serif" (fontconfig). Where no font is installed
/// Cairo draws the letters of ASCII itself, in strokes.
class Picture {
 public:
  Picture(int width, int height, Color paper, Format format);
  ~Picture();
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;
  int width() const { return width_; }
  int height() const { return height_; }

  /// Round ends and joins; `dash` pixels drawn, as many not, 0: all.
  void line(const Points& points, double line_width, Color color, double dash = 0);
  /// A horizontal or vertical line one pixel wide, on whole pixels.
  void rule(double x0, double y0, double x1, double y1, Color color);
  void box(double x, double y, double w, double h, Color color);
  void dot(double x, double y, double radius, Color color);

  enum class Align { kLeft, kCenter, kRight };
  struct Font {
    double size;  // of the em, in pixels
    bool bold = false;
    Align align = Align::kLeft;
    bool upwards = false;  // turned by a quarter to the left
  };
  /// `y`: the baseline. UTF-8; what is none shows as U+FFFD, line ends and tabs as blanks.
  void text(double x, double y, const std::string& s, Color color, Font font);
  double text_width(const std::string& s, Font font) const;
  /// `s`, or as much of its beginning as fits, followed by "…".
  std::string fitted(const std::string& s, double room, Font font) const;

  /// rows * columns colours, three bytes each, over the area: sharp edges, nothing in between.
  void pixels(double x, double y, double w, double h, const std::vector<uint8_t>& rgb, int rows,
              int columns);

  /// Until unclip() nothing is drawn outside.
  void clip(double x, double y, double w, double h);
  void unclip();

  /// The file's bytes. Nothing can be drawn afterwards.
  std::string bytes();

 private:
  struct Surface;
  std::unique_ptr<Surface> surface_;
  int width_, height_;
};

}  // namespace see
}  // namespace ramet
