// Letters as strokes, so that text can be drawn at any size without a font file.
#pragma once
#include <string>
#include <vector>

#include "tools/training/canvas.h"

namespace ramet::training {

/// The strokes of one character on a grid whose capital letters are 7 high, the baseline at 0, y
/// upwards; and how far the next character is away. Characters without a shape look like '?'.
struct Glyph {
  std::vector<Points> strokes;
  double advance;
};
Glyph glyph(char c);

}  // namespace ramet::training
