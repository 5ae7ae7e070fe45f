#include "tools/see/pictures/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/base/error.h"
#include "tools/see/pictures/wrap.h"

namespace ramet::see {
namespace {

constexpr int64_t kNarrow = 20, kWide = 500;

std::string ansi(int what, Color c) {
  return "\x1b[" + std::to_string(what) + ";2;" + std::to_string(c.r) + ";" + std::to_string(c.g) +
         ";" + std::to_string(c.b) + "m";
}

}  // namespace

int64_t terminal_columns(const char* op, int64_t columns) {
  RAMET_CHECK(columns == 0 || (columns >= kNarrow && columns <= kWide), op, "columns: got ",
              columns, ", expected 0 or ", kNarrow, " to ", kWide);
  if (columns != 0) return columns;
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    columns = size.ws_col;
  if (columns == 0)
    if (const char* given = std::getenv("COLUMNS")) columns = std::atoi(given);
  return columns <= 0 ? 80 : std::clamp(columns, kNarrow, kWide);
}

void check_lines(const char* op, int64_t lines) {
  RAMET_CHECK(lines >= 1 && lines <= 500, op, "lines: got ", lines, ", expected 1 to 500");
}

int64_t columns_of(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
}

std::string cut(const std::string& text, int64_t columns) {
  if (columns_of(text) <= columns) return text;
  std::string out;
  for (const char c : text) {
    const bool begins = (static_cast<uint8_t>(c) & 0xc0) != 0x80;
    if (begins && columns_of(out) + 1 >= columns) break;
    out += c;
  }
  return out + "…";
}

std::string wrapped(const std::string& text, int64_t columns) {
  std::string out;
  for (const std::string& line :
       wrap(text, [&](const std::string& l) { return columns_of(l) <= columns; }))
    out += cut(line, columns) + "\n";
  return out;
}

std::string right_aligned(const std::string& text, int64_t columns) {
  return std::string(static_cast<size_t>(std::max<int64_t>(0, columns - columns_of(text))), ' ') +
         text;
}

std::string without_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string foreground(Color color) { return ansi(38, color); }
std::string background(Color color) { return ansi(48, color); }

Dots::Dots(int64_t columns, int64_t rows)
    : columns_(columns),
      rows_(rows),
      dots_(static_cast<size_t>(columns * rows)),
      colors_(dots_.size()) {}

void Dots::set(int64_t x, int64_t y, std::optional<Color> color) {
  if (x < 0 || y < 0 || x >= width() || y >= height()) return;
  // The numbers of the dots: 1 to 3 and 7 at the left, 4 to 6 and 8 at the right.
  constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  const auto at = static_cast<size_t>(y / 4 * columns_ + x / 2);
  dots_[at] = static_cast<uint8_t>(dots_[at] | kBits[y % 4][x % 2]);
  if (color) colors_[at] = color;
}

void Dots::line(int64_t x0, int64_t y0, int64_t x1, int64_t y1, std::optional<Color> color) {
  const int64_t steps = std::max(std::abs(x1 - x0), std::abs(y1 - y0));
  // Halves are rounded up in both directions, so that a line is the same forth and back.
  const auto at = [steps](int64_t from, int64_t to, int64_t i) {
    return steps == 0 ? from : (2 * (from * (steps - i) + to * i) + steps) / (2 * steps);
  };
  for (int64_t i = 0; i <= steps; ++i) set(at(x0, x1, i), at(y0, y1, i), color);
}

std::string Dots::row(int64_t row) const {
  std::string text, color;
  for (int64_t i = 0; i < columns_; ++i) {
    const auto at = static_cast<size_t>(row * columns_ + i);
    const uint8_t dots = dots_[at];
    const std::string now = dots != 0 && colors_[at] ? foreground(*colors_[at]) : "";
    if (now != color && !color.empty()) text += kPlain;
    if (now != color) text += now;
    color = now;
    if (dots == 0) {
      text += ' ';
      continue;
    }
    // U+2800 and the dots, as UTF-8.
    text += '\xe2';
    text += static_cast<char>(0xa0 | dots >> 6);
    text += static_cast<char>(0x80 | (dots & 0x3f));
  }
  if (!color.empty()) text += kPlain;
  return without_end(text);
}

}  // namespace ramet::see
