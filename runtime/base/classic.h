// Text in the classic locale. What the library prints and parses does not depend on the program's
// locale: std::locale::global, setlocale or a stream's own.
//
// classic<Stream>() makes streams. ClassicScope switches a stream of the program. formatted()
// prints real numbers, and read_double() reads them. tools/check_layers.py finds code that does not
// use these.
#pragma once
#include <ios>
#include <ostream>
#include <string>
#include <utility>

namespace ramet {
namespace detail {

/// A standard stream (std::ostringstream, std::ifstream, ...) made of `arguments`.
template <class Stream, class... Arguments> Stream classic(Arguments&&... arguments) {
  Stream stream(std::forward<Arguments>(arguments)...);
  stream.imbue(std::locale::classic());
  return stream;
}

/// Switches a stream to the classic locale until the end of the scope.
class __attribute__((visibility("default"))) ClassicScope {  // RAMET_API, which comes after this
 public:
  explicit ClassicScope(std::ostream& stream);
  ~ClassicScope();
  ClassicScope(const ClassicScope&) = delete;
  ClassicScope& operator=(const ClassicScope&) = delete;

 private:
  std::ostream& stream_;
  const std::locale before_;
  const bool switches_;
};

/// The text that std::printf would print.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);
/// std::strtod.
double read_double(const char* text, char** end);
/// A letter of ASCII in lower case; any other character as it is.
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
/// Is it a letter or a digit of ASCII?
constexpr bool is_letter_or_digit(char c) {
  return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace detail
}  // namespace ramet
