// The text above a picture: a title, and lines below it.
#pragma once
#include <string>
#include <vector>

#include "tools/see/pictures/picture.h"

namespace ramet {
namespace see {

/// Around everything.
inline constexpr double kMargin = 24;

struct Heading {
  std::string title;               // cut where it does not fit
  std::vector<std::string> lines;  // of the text, broken between words
  double height;                   // with the margins: where the rest may begin
};
/// Lays the text out for a picture `width` wide; `measure` measures letters. Lines beyond the
/// height `most` are left out, but never the title.
Heading heading_of(const Picture& measure, const std::string& title, const std::string& text,
                   int width, double most = 1e9);
void draw_heading(Picture& picture, const Heading& heading, bool dark);

}  // namespace see
}  // namespace ramet
