// A small anti-aliased drawing surface: lines, boxes, dots, text in strokes, PNG.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ramet::training {

struct Color {
  uint8_t r, g, b;
  double alpha = 1;
};
using Points = std::vector<std::pair<double, double>>;

/// Pixels, the origin top left. What lies outside is clipped.
class Canvas {
 public:
  Canvas(int width, int height, Color background);
  int width() const { return width_; }
  int height() const { return height_; }

  /// Round ends and joins.
  void polyline(const Points& points, double line_width, Color color);
  void line(double x0, double y0, double x1, double y1, double line_width, Color color) {
    polyline({{x0, y0}, {x1, y1}}, line_width, color);
  }
  void box(double x, double y, double w, double h, Color color);
  void dot(double x, double y, double radius, Color color);
  enum class Align { kLeft, kCenter, kRight };
  /// `size`: height of a capital letter in pixels; `y`: the baseline.
  void text(double x, double y, double size, const std::string& s, Color color,
            Align align = Align::kLeft, bool bold = false);
  static double text_width(double size, const std::string& s);

  /// The picture as PNG bytes.
  std::string png() const;
  Color at(int x, int y) const;

 private:
  void strokes(const std::vector<Points>& lines, double line_width, Color color);
  void blend(int x, int y, Color color, double coverage);

  int width_, height_;
  std::vector<float> pixels_;  // RGB, 0 to 1
};

}  // namespace ramet::training
