#include "tools/see/pictures/curves.h"

#include <algorithm>
#include <cmath>

#include "tools/see/pictures/legend.h"

namespace ramet::see {
namespace {

// For a line with more points than the picture has columns of pixels: in each column, where the
// line enters and leaves, and its extremes.
Points thinned(const Points& line, double width) {
  if (static_cast<double>(line.size()) <= 4 * width) return line;
  for (size_t i = 1; i < line.size(); ++i)
    if (line[i].first < line[i - 1].first) return line;
  Points out;
  for (size_t i = 0; i < line.size();) {
    size_t end = i, low = i, high = i;
    for (; end < line.size() && std::floor(line[end].first) == std::floor(line[i].first); ++end) {
      if (line[end].second < line[low].second) low = end;
      if (line[end].second > line[high].second) high = end;
    }
    for (size_t k : {i, std::min(low, high), std::max(low, high), end - 1})
      if (out.empty() || out.back() != line[k]) out.push_back(line[k]);
    i = end;
  }
  return out;
}

// The place of a text: it covers no other text and not the line itself.
struct Place {
  double left, top, wide;
  static constexpr double kHigh = 14;

  bool meets(const Place& other) const {
    return left < other.left + other.wide + 14 && other.left < left + wide + 14 &&
           top < other.top + kHigh && other.top < top + kHigh;
  }
  bool meets(const std::pair<double, double>& p) const {
    return p.first > left - 2 && p.first < left + wide + 2 && p.second > top &&
           p.second < top + kHigh;
  }
};

// Does the line to the neighbours of point i cross the place?
bool crossed(const Place& place, const Points& at, size_t i) {
  for (size_t k = i > 0 ? i - 1 : 0; k < i + 1 && k + 1 < at.size(); ++k) {
    for (int s = 0; s <= 32; ++s) {
      const double t = s / 32.0;
      if (place.meets(std::pair(at[k].first * (1 - t) + at[k + 1].first * t,
                                at[k].second * (1 - t) + at[k + 1].second * t)))
        return true;
    }
  }
  return false;
}

void draw_labels(Picture& picture, Area area, const Curve& curve, const std::vector<size_t>& shown,
                 const Points& at, bool dark) {
  std::vector<size_t> order(shown.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  size_t highest = 0;
  for (size_t i = 1; i < at.size(); ++i)
    if (at[i].second < at[highest].second) highest = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto rank = [&](size_t i) { return i + 1 == shown.size() ? 0 : i == highest ? 1 : 2; };
    return rank(a) < rank(b);
  });
  const bool lines = curve.style != Curve::Style::kPoints;
  std::vector<Place> taken;
  for (size_t i : order) {
    const std::string& text = curve.labels[shown[i]];
    if (text.empty()) continue;
    const Picture::Font font{12.5, i + 1 == shown.size()};
    const auto [x, y] = at[i];
    const double wide = picture.text_width(text, font);
    const Place places[] = {{x - wide / 2, y - 12 - Place::kHigh, wide},
                            {x - wide / 2, y + 11, wide},
                            {x - wide - 2, y - 10 - Place::kHigh, wide},
                            {x + 4, y + 9, wide}};
    for (Place place : places) {
      place.left = std::min(std::max(place.left, area.left), area.left + area.width + 8 - wide);
      const bool inside = place.top > area.top - Place::kHigh &&
                          place.top + Place::kHigh < area.top + area.height &&
                          place.left >= area.left;
      if (!inside || (lines && crossed(place, at, i)) ||
          std::any_of(taken.begin(), taken.end(), [&](const Place& t) { return place.meets(t); }))
        continue;
      taken.push_back(place);
      picture.text(place.left, place.top + 11, text, theme(dark).ink, font);
      break;
    }
  }
}

}  // namespace

void draw_curves(Picture& picture, Area area, const Panel& panel, const Axes& axes, bool dark) {
  const auto px = [&](double v) {  // far enough outside to be outside
    return area.left + std::clamp(axes.x.place(v), -100.0, 100.0) * area.width;
  };
  const auto py = [&](double v) {
    return area.top + area.height - std::clamp(axes.y.place(v), -100.0, 100.0) * area.height;
  };
  const auto inside = [&](const std::pair<double, double>& p) {
    return p.first > area.left - 1 && p.first < area.left + area.width + 1 &&
           p.second > area.top - 1 && p.second < area.top + area.height + 1;
  };
  for (size_t k = 0; k < panel.curves.size(); ++k) {
    const Curve& curve = panel.curves[k];
    const Color color = color_of_curve(panel.curves, k, dark);
    const bool lines = curve.style != Curve::Style::kPoints,
               dots = curve.style != Curve::Style::kLine;
    std::vector<size_t> shown;
    Points at, piece;
    picture.clip(area.left - 2, area.top - 2, area.width + 4, area.height + 4);
    const auto end_piece = [&] {
      if (lines && piece.size() == 1 && !dots && inside(piece[0]))  // a number between two gaps
        picture.dot(piece[0].first, piece[0].second, std::max(1.5, curve.width), color);
      if (lines && piece.size() > 1)
        picture.line(thinned(piece, area.width), curve.width, color,
                     dash_of_curve(panel.curves, k));
      piece.clear();
    };
    for (size_t i = 0; i < curve.y.size(); ++i) {
      if (!drawable(panel, curve.x[i], curve.y[i])) {
        end_piece();
        continue;
      }
      piece.emplace_back(px(curve.x[i]), py(curve.y[i]));
      if (inside(piece.back())) shown.push_back(i), at.push_back(piece.back());
    }
    end_piece();
    picture.unclip();
    if (dots) {
      const double radius = lines ? curve.width + 1.8 : curve.width;
      for (const auto& [x, y] : at) {
        if (lines) picture.dot(x, y, radius + 1.4, theme(dark).paper);
        picture.dot(x, y, radius, color);
      }
    }
    if (!curve.labels.empty() && !at.empty()) draw_labels(picture, area, curve, shown, at, dark);
  }
}

}  // namespace ramet::see
