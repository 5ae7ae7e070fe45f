// Tensors in characters.
#include <algorithm>
#include <cmath>

#include "tools/see/pictures/axis.h"
#include "tools/see/pictures/histogram.h"
#include "tools/see/pictures/planes.h"
#include "tools/see/pictures/terminal.h"
#include "tools/see/plot.h"

namespace ramet::see {
namespace {

// The darker the shade the smaller the number, as on a screen.
constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};
constexpr const char* kNan = "×";

const char* shade(double t) { return kShades[std::clamp(static_cast<int>(t * 5), 0, 4)]; }

// Rectangles in rows, as many as fit, a blank between. Each number takes `wide` characters, or with
// colours half of one.
class Rectangles {
 public:
  Rectangles(const Planes& p, const ShowOptions& options, int64_t columns)
      : p_(p), colors_(options.colors()), nan_(theme(options.dark()).nan) {
    const Cells& cells = p.first();
    wide_ = !colors_ && 2 * cells.columns <= columns ? 2 : 1;
    in_row_ = std::max<int64_t>(1, (columns + 1) / (wide_ * cells.columns + 1));
    if (p.in_row > 0) in_row_ = std::min(in_row_, p.in_row);
    in_row_ = std::min(in_row_, p.count);
  }

  // Of the rectangles that begin a row at `first`; a line of characters for one row of numbers,
  // with colours for two.
  std::string line(int64_t first, int64_t row) const {
    std::string text;
    const int64_t last = std::min(first + in_row_, p_.count);
    for (int64_t i = first; i < last; ++i) {
      if (i > first) text += ' ';
      for (int64_t c = 0; c < p_.first().columns; ++c) text += character(i, row, c);
      if (colors_) text += kPlain;
    }
    return text;
  }
  int64_t in_row() const { return in_row_; }
  int64_t step() const { return colors_ ? 2 : 1; }

 private:
  std::string character(int64_t i, int64_t row, int64_t c) const {
    if (colors_) {
      const Color upper = p_.color(i, row, c, nan_);
      if (row + 1 == p_.first().rows) return kPlain + foreground(upper) + "▀";
      return foreground(upper) + background(p_.color(i, row + 1, c, nan_)) + "▀";
    }
    double t = 0;
    if (p_.channels == 1) {
      const double v = p_.cells[static_cast<size_t>(i)].at(row, c);
      t = std::isnan(v) ? v : p_.scale.place(v);
    } else {  // how light the colour is (ITU-R BT.601)
      constexpr double kLight[] = {0.299, 0.587, 0.114};
      for (int64_t k = 0; k < 3; ++k) {
        const double v = p_.cells[static_cast<size_t>(3 * i + k)].at(row, c);
        t += kLight[k] * (std::isnan(v) ? v : p_.scale.place(v));
      }
    }
    const std::string one = std::isnan(t) ? kNan : shade(t);
    return wide_ == 2 ? one + one : one;
  }

  const Planes& p_;
  bool colors_;
  Color nan_;
  int64_t wide_, in_row_;
};

std::string legend(const Planes& p, const ShowOptions& options) {
  std::string bar;
  for (int i = 0; i < 5; ++i) {
    const double v = p.scale.low + (p.scale.high - p.scale.low) * i / 4;
    bar += options.colors() ? foreground(p.scale.color(v, theme(options.dark()).nan)) + "█"
                            : shade(p.scale.place(v));
  }
  if (options.colors()) bar += kPlain;
  return short_number(p.scale.low) + " " + bar + " " + short_number(p.scale.high) +
         (p.facts.nans > 0 && !options.colors() ? std::string("  ") + kNan + " NaN" : "");
}

std::string histogram_text(const Tensor& x, const ShowOptions& options, int64_t columns) {
  const Facts facts = facts_of(x);
  const Histogram h = histogram_of(
      x, facts, options.bins() > 0 ? options.bins() : std::min<int64_t>(options.lines(), 20));
  std::vector<std::string> names, counts;
  int64_t name = 0, count = 0, most = 1;
  for (size_t i = 0; i < h.counts.size(); ++i) {
    const double from = h.edges[i], to = h.edges[i + 1];
    if (!h.whole) names.push_back(short_number(from) + " to " + short_number(to));
    else if (to - from <= 1) names.push_back(short_number(from + 0.5));
    else names.push_back(short_number(from + 0.5) + " to " + short_number(to - 0.5));
    counts.push_back(std::to_string(h.counts[i]));
    name = std::max(name, columns_of(names.back()));
    count = std::max(count, columns_of(counts.back()));
    most = std::max(most, h.counts[i]);
  }
  const int64_t room = std::max<int64_t>(1, columns - name - count - 3);
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  std::string text = wrapped(described(x) + ": " + text_of(facts), columns);
  for (size_t i = 0; i < names.size(); ++i) {
    auto eighths = static_cast<int64_t>(
        std::lround(8.0 * static_cast<double>(room) * static_cast<double>(h.counts[i]) /
                    static_cast<double>(most)));
    if (h.counts[i] > 0) eighths = std::max<int64_t>(eighths, 1);
    std::string bar;
    for (int64_t k = 0; k < eighths / 8; ++k) bar += "█";
    bar += kEighths[eighths % 8];
    text += without_end(right_aligned(names[i], name) + " " + right_aligned(counts[i], count) +
                        " " + bar) +
            "\n";
  }
  return text;
}

}  // namespace

std::string show_text(const Tensor& x, const ShowOptions& options) {
  check_options(options);
  const int64_t columns = terminal_columns("show", options.columns());
  check_lines("show", options.lines());
  const Kind kind = kind_of(x, options);
  std::string text;
  if (!options.title().empty()) text = cut(options.title(), columns) + "\n";
  if (kind == Kind::kHistogram) return text + histogram_text(x, options, columns);
  if (kind == Kind::kCurve) {
    text += wrapped(described(x) + ": " + text_of(facts_of(x)), columns);
    return text + plot_text(x, PlotOptions().columns(columns).lines(options.lines()));
  }
  Planes p = planes_of(x, kind, options);
  const int64_t in_row = p.in_row > 0 ? p.in_row : p.count;
  // A single rectangle may take everything; one of several takes a few columns at least.
  const int64_t most_columns =
      p.count == 1 ? columns : std::max<int64_t>(8, (columns + 1) / in_row - 1);
  const int64_t most_rows = options.lines() * (options.colors() ? 2 : 1);
  read_planes(p, x, options, most_rows, most_columns);
  text += wrapped(p.text(x), columns);
  const Rectangles rectangles(p, options, columns);
  int64_t printed = 0;
  for (int64_t first = 0; first < p.count; first += rectangles.in_row()) {
    if (printed > 0 && printed + p.first().rows > 4 * most_rows) {
      text += "(" + std::to_string(p.count - first) + " more)\n";
      break;
    }
    if (first > 0) text += '\n';
    for (int64_t r = 0; r < p.first().rows; r += rectangles.step())
      text += without_end(rectangles.line(first, r)) + "\n";
    printed += p.first().rows;
  }
  if (p.channels == 1) text += legend(p, options) + "\n";
  return text;
}

}  // namespace ramet::see
