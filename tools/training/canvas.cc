#include "tools/training/canvas.h"

#include <algorithm>
#include <cmath>

#include "nn/formats/png_internal.h"
#include "tools/training/stroke_font.h"

namespace ramet::training {

Canvas::Canvas(int width, int height, Color background)
    : width_(width), height_(height), pixels_(static_cast<size_t>(3 * width * height)) {
  box(0, 0, width, height, background);
}

void Canvas::blend(int x, int y, Color color, double coverage) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_ || coverage <= 0) return;
  const auto a = static_cast<float>(std::min(1.0, coverage) * color.alpha);
  float* p = &pixels_[static_cast<size_t>(3 * (y * width_ + x))];
  const float rgb[] = {color.r / 255.0f, color.g / 255.0f, color.b / 255.0f};
  for (int i = 0; i < 3; ++i) p[i] += a * (rgb[i] - p[i]);
}

namespace {

uint8_t to_byte(float v) {
  return static_cast<uint8_t>(std::lround(std::clamp(v, 0.0f, 1.0f) * 255));
}

double distance(double px, double py, double x0, double y0, double x1, double y1) {
  const double dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
  const double t =
      length > 0 ? std::clamp(((px - x0) * dx + (py - y0) * dy) / length, 0.0, 1.0) : 0.0;
  return std::hypot(px - x0 - t * dx, py - y0 - t * dy);
}

}  // namespace

// The distance to the nearest of all strokes decides, so that joins and crossings are not painted
// twice.
void Canvas::strokes(const std::vector<Points>& lines, double line_width, Color color) {
  double x0 = 1e9, y0 = 1e9, x1 = -1e9, y1 = -1e9;
  for (const Points& p : lines) {
    for (const auto& [x, y] : p)
      x0 = std::min(x0, x), y0 = std::min(y0, y), x1 = std::max(x1, x), y1 = std::max(y1, y);
  }
  const double reach = line_width / 2 + 1;
  const int left = std::max(0, static_cast<int>(x0 - reach)),
            right = std::min(width_ - 1, static_cast<int>(x1 + reach));
  const int top = std::max(0, static_cast<int>(y0 - reach)),
            bottom = std::min(height_ - 1, static_cast<int>(y1 + reach));
  if (left > right || top > bottom) return;
  const int w = right - left + 1;
  std::vector<double> nearest(static_cast<size_t>(w * (bottom - top + 1)), 1e9);
  const auto segment = [&](double ax, double ay, double bx, double by) {
    const int sx0 = std::max(left, static_cast<int>(std::min(ax, bx) - reach)),
              sx1 = std::min(right, static_cast<int>(std::max(ax, bx) + reach));
    const int sy0 = std::max(top, static_cast<int>(std::min(ay, by) - reach)),
              sy1 = std::min(bottom, static_cast<int>(std::max(ay, by) + reach));
    for (int y = sy0; y <= sy1; ++y) {
      for (int x = sx0; x <= sx1; ++x) {
        double& d = nearest[static_cast<size_t>((y - top) * w + x - left)];
        d = std::min(d, distance(x + 0.5, y + 0.5, ax, ay, bx, by));
      }
    }
  };
  for (const Points& p : lines) {
    for (size_t i = 0; i + 1 < p.size(); ++i)
      segment(p[i].first, p[i].second, p[i + 1].first, p[i + 1].second);
    if (p.size() == 1) segment(p[0].first, p[0].second, p[0].first, p[0].second);
  }
  for (int y = top; y <= bottom; ++y) {
    for (int x = left; x <= right; ++x) {
      const double d = nearest[static_cast<size_t>((y - top) * w + x - left)];
      if (d < reach) blend(x, y, color, std::min(line_width, line_width / 2 + 0.5 - d));
    }
  }
}

void Canvas::polyline(const Points& points, double line_width, Color color) {
  strokes({points}, line_width, color);
}

void Canvas::box(double x, double y, double w, double h, Color color) {
  const auto overlap = [](double a, double b, int cell) {
    return std::min(b, cell + 1.0) - std::max(a, static_cast<double>(cell));
  };
  for (int py = std::max(0, static_cast<int>(y)); py < std::min<double>(height_, y + h); ++py)
    for (int px = std::max(0, static_cast<int>(x)); px < std::min<double>(width_, x + w); ++px)
      blend(px, py, color, overlap(x, x + w, px) * overlap(y, y + h, py));
}

void Canvas::dot(double x, double y, double radius, Color color) {
  strokes({{{x, y}}}, 2 * radius, color);
}

double Canvas::text_width(double size, const std::string& s) {
  double width = 0;
  for (char c : s) width += glyph(c).advance;
  return std::max(0.0, width - 1.7) * size / 7;
}

void Canvas::text(double x, double y, double size, const std::string& s, Color color, Align align,
                  bool bold) {
  if (align != Align::kLeft) x -= text_width(size, s) * (align == Align::kCenter ? 0.5 : 1.0);
  const double scale = size / 7;
  std::vector<Points> lines;
  for (char c : s) {
    const Glyph g = glyph(c);
    for (const Points& stroke : g.strokes) {
      lines.emplace_back();
      for (const auto& [gx, gy] : stroke) lines.back().emplace_back(x + gx * scale, y - gy * scale);
    }
    x += g.advance * scale;
  }
  strokes(lines, size * (bold ? 0.19 : 0.125), color);
}

Color Canvas::at(int x, int y) const {
  const float* p = &pixels_[static_cast<size_t>(3 * (y * width_ + x))];
  return {to_byte(p[0]), to_byte(p[1]), to_byte(p[2])};
}

std::string Canvas::png() const {
  std::vector<uint8_t> bytes(pixels_.size());
  std::transform(pixels_.begin(), pixels_.end(), bytes.begin(), to_byte);
  return formats::png(bytes.data(), height_, width_, 3);
}

}  // namespace ramet::training
