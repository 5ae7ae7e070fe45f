#include "tools/training/made_images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tools/training/draw.h"

namespace ramet::training {

namespace {

constexpr double kPi = 3.14159265358979323846;

// Within the unit circle.
enum Kind { kDisk, kSquare, kTriangle, kRing, kFrame, kCross, kStar, kCrescent, kHalf, kBars };
constexpr int64_t kKinds = kBars + 1;

bool inside(int64_t kind, double x, double y) {
  const double r = std::hypot(x, y), across = std::max(std::abs(x), std::abs(y));
  switch (kind) {
    case kDisk: return r < 0.9;
    case kSquare: return across < 0.75;
    case kTriangle: return y > -0.5 && y + std::sqrt(3) * std::abs(x) < 1;
    case kRing: return r > 0.55 && r < 0.95;
    case kFrame: return across > 0.45 && across < 0.78;
    case kCross: return across < 0.95 && std::min(std::abs(x), std::abs(y)) < 0.28;
    case kStar: {
      const double turn = std::fmod(std::atan2(y, x) + 2 * kPi, 2 * kPi / 5) / (kPi / 5) - 1;
      return r < 0.35 + 0.65 * turn * turn;
    }
    case kCrescent: return r < 0.95 && std::hypot(x - 0.45, y) > 0.75;
    case kHalf: return r < 0.95 && x > 0;
    default: return across < 0.85 && std::fmod(x + 0.85, 0.68) < 0.34;
  }
}

using Colour = std::array<double, 3>;
struct Shape {
  int64_t kind;
  double x, y, size, sine, cosine;
  Colour colour;

  bool covers(double px, double py) const {
    const double dx = (px - x) / size, dy = (py - y) / size;
    return inside(kind, cosine * dx + sine * dy, cosine * dy - sine * dx);
  }
};

Colour draw_colour(Draw& draw) {
  return {draw.between(0, 255), draw.between(0, 255), draw.between(0, 255)};
}
double contrast(const Colour& a, const Colour& b) {
  return std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - b[2]);
}
Shape draw_shape(Draw& draw, int64_t kind, double side, double smallest, double largest,
                 const Colour& background) {
  const double size = side * draw.between(smallest, largest), turn = draw.between(0, 2 * kPi),
               x = draw.between(0.8 * size, side - 0.8 * size),
               y = draw.between(0.8 * size, side - 0.8 * size);
  Colour colour = draw_colour(draw);
  while (contrast(colour, background) < 120) colour = draw_colour(draw);
  return {kind, x, y, size, std::sin(turn), std::cos(turn), colour};
}

// The number of the shape in front, -1 for none.
int in_front(const std::vector<Shape>& shapes, double x, double y) {
  for (size_t k = shapes.size(); k-- > 0;)
    if (shapes[k].covers(x, y)) return static_cast<int>(k);
  return -1;
}

// Planes of red, green and blue; edges are smooth, the background gets lighter to one side.
void paint(Draw& draw, const std::vector<Shape>& shapes, const Colour& background, int64_t side,
           uint8_t* to) {
  const double slope_x = draw.between(-40, 40), slope_y = draw.between(-40, 40),
               noise = draw.between(5, 30);
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      Colour colour{};
      for (int part = 0; part < 4; ++part) {
        const double px = static_cast<double>(x) + 0.25 + 0.5 * (part % 2),
                     py = static_cast<double>(y) + 0.25 + 0.5 * static_cast<double>(part / 2);
        const int shape = in_front(shapes, px, py);
        for (size_t c = 0; c < 3; ++c)
          colour[c] += (shape >= 0 ? shapes[static_cast<size_t>(shape)].colour : background)[c] / 4;
      }
      const double light = (slope_x * static_cast<double>(x) + slope_y * static_cast<double>(y)) /
                           static_cast<double>(side);
      for (size_t c = 0; c < 3; ++c) {
        const double value = colour[c] + light + draw.between(-noise, noise);
        to[(static_cast<int64_t>(c) * side + y) * side + x] =
            static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
}

Tensor bytes(IntArrayRef sizes, ScalarType dtype = kByte) {
  return Tensor(TensorBase::empty(sizes, dtype, Device(kCPU, 0)));
}

}  // namespace

LabelledImages made_shapes(int64_t count, int64_t seed, int set) {
  constexpr int64_t side = 32;
  LabelledImages made{bytes({count, 3, side, side}), bytes({count}, kLong)};
  for (int64_t i = 0; i < count; ++i) {
    Draw draw(static_cast<uint64_t>(seed), static_cast<uint64_t>(set), static_cast<uint64_t>(i));
    const Colour background = draw_colour(draw);
    const int64_t kind = draw.below(kKinds);
    const Shape shape = draw_shape(draw, kind, side, 0.2, 0.4, background);
    made.labels.data_ptr<int64_t>()[i] = kind;
    paint(draw, {shape}, background, side, made.images.data_ptr<uint8_t>() + i * 3 * side * side);
  }
  return made;
}

LabelledImages made_scenes(int64_t count, int64_t seed, int set) {
  constexpr int64_t side = 64;
  LabelledImages made{bytes({count, 3, side, side}), bytes({count, side, side})};
  for (int64_t i = 0; i < count; ++i) {
    Draw draw(static_cast<uint64_t>(seed), static_cast<uint64_t>(set) + 2,
              static_cast<uint64_t>(i));
    const Colour background = draw_colour(draw);
    std::vector<Shape> shapes;
    for (int64_t n = 1 + draw.below(4); n > 0; --n) {
      const int64_t kind = draw.below(3);
      shapes.push_back(draw_shape(draw, kind, side, 0.1, 0.25, background));
    }
    paint(draw, shapes, background, side, made.images.data_ptr<uint8_t>() + i * 3 * side * side);
    uint8_t* label = made.labels.data_ptr<uint8_t>() + i * side * side;
    for (int64_t y = 0; y < side; ++y) {
      for (int64_t x = 0; x < side; ++x) {
        const int k = in_front(shapes, static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5);
        *label++ = k < 0 ? 0 : static_cast<uint8_t>(1 + shapes[static_cast<size_t>(k)].kind);
      }
    }
  }
  return made;
}

}  // namespace ramet::training
