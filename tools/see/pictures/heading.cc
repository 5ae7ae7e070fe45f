#include "tools/see/pictures/heading.h"

#include <algorithm>

#include "tools/see/pictures/wrap.h"

namespace ramet::see {
namespace {

constexpr Picture::Font kTitle{20, true}, kText{13};
constexpr double kTitleHeight = 30, kLineHeight = 19;

}  // namespace

Heading heading_of(const Picture& measure, const std::string& title, const std::string& text,
                   int width, double most) {
  const double room = width - 2 * kMargin;
  Heading heading{measure.fitted(title, room, kTitle), {}, kMargin};
  for (const std::string& line :
       wrap(text, [&](const std::string& l) { return measure.text_width(l, kText) <= room; }))
    heading.lines.push_back(measure.fitted(line, room, kText));
  if (!heading.title.empty()) heading.height += kTitleHeight;
  const auto fit = static_cast<size_t>(std::max(0.0, (most - heading.height) / kLineHeight));
  if (heading.lines.size() > fit) heading.lines.resize(fit);
  heading.height += kLineHeight * static_cast<double>(heading.lines.size());
  if (heading.height > kMargin) heading.height += 14;
  return heading;
}

void draw_heading(Picture& picture, const Heading& heading, bool dark) {
  double y = kMargin;
  if (!heading.title.empty()) {
    picture.text(kMargin, y + 17, heading.title, theme(dark).ink, kTitle);
    y += kTitleHeight;
  }
  for (const std::string& line : heading.lines) {
    picture.text(kMargin, y + 13, line, theme(dark).soft, kText);
    y += kLineHeight;
  }
}

}  // namespace ramet::see
