#include "tools/training/stroke_font.h"

#include <cmath>
#include <cstdlib>

namespace ramet::training {

namespace {

// A shape is a list of commands:
//   M x y x y ...        a new stroke through these points
//   L x y x y ...        the stroke goes on
//   O cx cy rx ry a b    a new stroke: the arc of an ellipse from angle a to angle b (degrees,
//                        anticlockwise)
//   A cx cy rx ry a b    the stroke goes on with an arc
struct Shape {
  char c;
  const char* commands;
};
constexpr Shape kShapes[] = {
    {'a', "O 2 2.5 2 2.5 0 360 M 4 5 4 0"},
    {'b', "O 2 2.5 2 2.5 0 360 M 0 7.4 0 0"},
    {'c', "O 2 2.5 2 2.5 48 312"},
    {'d', "O 2 2.5 2 2.5 0 360 M 4 7.4 4 0"},
    {'e', "M 0 2.6 4 2.6 A 2 2.5 2 2.5 2 318"},
    {'f', "M 1 0 1 5.7 A 2.5 5.7 1.5 1.7 180 75 M 0 5 2.5 5"},
    {'g', "O 2 2.5 2 2.5 0 360 M 4 5 4 -0.6 A 2 -0.6 2 1.6 0 -150"},
    {'h', "M 0 7.4 0 0 M 0 3 A 2 3 2 2 180 0 L 4 0"},
    {'i', "M 0.5 5 0.5 0 M 0.5 7 0.5 6.9"},
    {'j', "M 1.2 5 1.2 -0.6 A -0.1 -0.6 1.3 1.5 0 -90 M 1.2 7 1.2 6.9"},
    {'k', "M 0 7.4 0 0 M 3.6 5 0 1.8 M 1.4 3 3.8 0"},
    {'l', "M 0.5 7.4 0.5 0"},
    {'m',
     "M 0 5 0 0 M 0 3.4 A 1.6 3.4 1.6 1.6 180 0 L 3.2 0 M 3.2 3.4 A 4.8 3.4 1.6 1.6 180 0 L 6.4 0"},
    {'n', "M 0 5 0 0 M 0 3 A 2 3 2 2 180 0 L 4 0"},
    {'o', "O 2.1 2.5 2.1 2.5 0 360"},
    {'p', "O 2 2.5 2 2.5 0 360 M 0 5 0 -2.3"},
    {'q', "O 2 2.5 2 2.5 0 360 M 4 5 4 -2.3"},
    {'r', "M 0 5 0 0 M 0 3 A 2 3 2 2 180 75"},
    {'s', "O 1.7 3.75 1.6 1.25 40 270 A 1.7 1.25 1.7 1.25 90 -145"},
    {'t', "M 1 6.6 1 1.4 A 2.3 1.4 1.3 1.4 180 285 M 0 5 2.7 5"},
    {'u', "M 0 5 0 2 A 2 2 2 2 180 360 L 4 5 M 4 2 4 0"},
    {'v', "M 0 5 1.9 0 3.8 5"},
    {'w', "M 0 5 1.4 0 2.8 4.7 4.2 0 5.6 5"},
    {'x', "M 0 5 3.8 0 M 3.8 5 0 0"},
    {'y', "M 0 5 2 0 M 4 5 2 0 1.3 -1.6 0.3 -2.2"},
    {'z', "M 0.2 5 3.8 5 0.1 0 4 0"},
    {'A', "M 0 0 2.6 7 5.2 0 M 0.9 2.4 4.3 2.4"},
    {'B',
     "M 0 0 0 7 2.4 7 A 2.4 5.3 1.8 1.7 90 -90 L 0 3.6 M 2.4 3.6 A 2.4 1.8 2.1 1.8 90 -90 L 0 0"},
    {'C', "O 2.7 3.5 2.7 3.5 48 312"},
    {'D', "M 0 0 0 7 2 7 A 2 3.5 2.9 3.5 90 -90 L 0 0"},
    {'E', "M 4 7 0 7 0 0 4 0 M 0 3.7 3.4 3.7"},
    {'F', "M 4 7 0 7 0 0 M 0 3.6 3.3 3.6"},
    {'G', "O 2.7 3.5 2.7 3.5 48 358 L 3.1 3.4"},
    {'H', "M 0 0 0 7 M 4.5 0 4.5 7 M 0 3.6 4.5 3.6"},
    {'I', "M 0.5 0 0.5 7"},
    {'J', "M 3 7 3 2 A 1.5 2 1.5 2 0 -170"},
    {'K', "M 0 0 0 7 M 4.2 7 0 2.6 M 1.6 4.3 4.5 0"},
    {'L', "M 0 7 0 0 3.8 0"},
    {'M', "M 0 0 0 7 2.9 2 5.8 7 5.8 0"},
    {'N', "M 0 0 0 7 4.6 0 4.6 7"},
    {'O', "O 2.8 3.5 2.8 3.5 0 360"},
    {'P', "M 0 0 0 7 2.4 7 A 2.4 5.2 2 1.8 90 -90 L 0 3.4"},
    {'Q', "O 2.8 3.5 2.8 3.5 0 360 M 3.3 1.7 5.3 -0.4"},
    {'R', "M 0 0 0 7 2.4 7 A 2.4 5.2 2 1.8 90 -90 L 0 3.4 M 2.4 3.4 4.5 0"},
    {'S', "O 2.2 5.25 2 1.75 35 270 A 2.2 1.75 2.2 1.75 90 -150"},
    {'T', "M 0 7 4.8 7 M 2.4 7 2.4 0"},
    {'U', "M 0 7 0 2.3 A 2.3 2.3 2.3 2.3 180 360 L 4.6 7"},
    {'V', "M 0 7 2.5 0 5 7"},
    {'W', "M 0 7 1.7 0 3.5 6.5 5.3 0 7 7"},
    {'X', "M 0 7 4.6 0 M 4.6 7 0 0"},
    {'Y', "M 0 7 2.4 3.4 4.8 7 M 2.4 3.4 2.4 0"},
    {'Z', "M 0.1 7 4.5 7 0 0 4.6 0"},
    {'0', "O 2.2 3.5 2.2 3.5 0 360"},
    {'1', "M 0.6 5.6 2.3 7 2.3 0"},
    {'2', "O 2.1 5 2 2 165 -38 L 0.1 0 4.3 0"},
    {'3', "O 2.1 5.3 1.8 1.7 150 -90 M 2.1 3.6 A 2.1 1.8 2.1 1.8 90 -150"},
    {'4', "M 3.3 0 3.3 7 0 2.1 4.5 2.1"},
    {'5', "M 3.9 7 0.7 7 0.4 3.7 A 2.1 2.3 2.2 2.3 140 -150"},
    {'6', "O 2.2 2.2 2.1 2.2 0 360 M 0.1 2.2 A 3.6 2.2 3.5 4.8 180 95"},
    {'7', "M 0 7 4.3 7 1.5 0"},
    {'8', "O 2.2 5.3 1.8 1.7 0 360 O 2.2 1.8 2.1 1.8 0 360"},
    {'9', "O 2.2 4.8 2.1 2.2 0 360 M 4.3 4.8 A 0.8 4.8 3.5 4.8 0 -85"},
    {'.', "M 0.5 0.1 0.5 0"},
    {',', "M 0.7 0.2 0.2 -1.3"},
    {':', "M 0.5 0.1 0.5 0 M 0.5 4.2 0.5 4.1"},
    {'-', "M 0 2.8 2.6 2.8"},
    {'_', "M 0 -1 4 -1"},
    {'+', "M 0 2.8 4 2.8 M 2 0.8 2 4.8"},
    {'=', "M 0 2 4 2 M 0 3.8 4 3.8"},
    {'/', "M 0 -0.8 2.8 7.5"},
    {'%', "O 1.3 5.5 1.3 1.5 0 360 O 5 1.5 1.3 1.5 0 360 M 5.1 7 1.2 0"},
    {'(', "O 3.4 3.2 3.2 5.4 130 230"},
    {')', "O -2 3.2 3.2 5.4 50 -50"},
    {'?', "O 1.8 5.3 1.8 1.7 170 -70 L 2 2.2 M 2 0.1 2 0"},
};

const char* commands_of(char c) {
  const char* unknown = "";
  for (const Shape& s : kShapes) {
    if (s.c == c) return s.commands;
    if (s.c == '?') unknown = s.commands;
  }
  return unknown;
}

}  // namespace

Glyph glyph(char c) {
  if (c == ' ') return {{}, 3.2};
  Glyph g{{}, 0};
  char command = 0;
  const char* p = commands_of(c);
  const auto number = [&] {
    char* end;
    const double v = std::strtod(p, &end);
    p = end;
    return v;
  };
  double right = 0;
  const auto add = [&](double x, double y) {
    g.strokes.back().emplace_back(x, y);
    right = std::max(right, x);
  };
  for (;;) {
    while (*p == ' ') ++p;
    if (*p == 0) break;
    if (*p >= 'A' && *p <= 'Z') {
      command = *p++;
      if (command == 'M' || command == 'O') g.strokes.emplace_back();
      continue;
    }
    if (command == 'M' || command == 'L') {
      const double x = number(), y = number();
      add(x, y);
    } else {
      const double cx = number(), cy = number(), rx = number(), ry = number(), a = number(),
                   b = number();
      const int steps = 2 + static_cast<int>(std::abs(b - a) / 12);
      for (int i = 0; i <= steps; ++i) {
        const double angle = (a + (b - a) * i / steps) * 3.14159265358979323846 / 180;
        add(cx + rx * std::cos(angle), cy + ry * std::sin(angle));
      }
    }
  }
  g.advance = right + 1.7;
  if (c >= '0' && c <= '9') g.advance = 6.1;  // numbers stand in columns
  return g;
}

}  // namespace ramet::training
