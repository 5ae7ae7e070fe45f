// What terminals can show: characters of dots and shades, in colours where they are wanted. UTF-8,
// whatever the locale is.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/see/pictures/colors.h"

namespace ramet {
namespace see {

/// The width in columns: `columns`, or where it is 0, the width of the terminal at the standard
/// output. Without a terminal it is COLUMNS, else 80. It is within 20 to 500. An Error of `op`
/// where `columns` is neither 0 nor in that range.
int64_t terminal_columns(const char* op, int64_t columns);
/// An Error of `op` unless it is 1 to 500.
void check_lines(const char* op, int64_t lines);

/// Columns that a text takes. It is UTF-8 without wide characters.
int64_t columns_of(const std::string& text);
/// As much as fits, with "…" at the end of a text that is cut.
std::string cut(const std::string& text, int64_t columns);
/// In lines, broken between words; each ends with a line end.
std::string wrapped(const std::string& text, int64_t columns);
/// Blanks in front.
std::string right_aligned(const std::string& text, int64_t columns);
/// Without blanks at the end.
std::string without_end(std::string line);

/// "\x1b[38;2;1;2;3m" and the same of the background (ANSI, ISO 8613-6).
std::string foreground(Color color);
std::string background(Color color);
inline constexpr const char* kPlain = "\x1b[0m";

/// Dots in characters of 2 x 4 (Unicode's braille patterns, U+2800 to U+28FF).
class Dots {
 public:
  Dots(int64_t columns, int64_t rows);
  int64_t width() const { return 2 * columns_; }
  int64_t height() const { return 4 * rows_; }
  /// The origin is top left; what is outside is left out. The last colour of a character counts.
  void set(int64_t x, int64_t y, std::optional<Color> color = {});
  /// Ends included.
  void line(int64_t x0, int64_t y0, int64_t x1, int64_t y1, std::optional<Color> color = {});
  /// A row of characters; a blank where no dot is.
  std::string row(int64_t row) const;

 private:
  int64_t columns_, rows_;
  std::vector<uint8_t> dots_;
  std::vector<std::optional<Color>> colors_;
};

}  // namespace see
}  // namespace ramet
