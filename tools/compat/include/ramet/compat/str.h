// LibTorch's small functions on text: c10::str, Join, split, demangle, ... As there they are seen
// in `c10`, `at` and `torch`.
#pragma once
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "ramet/compat/macros.h"

namespace ramet {
namespace compat {

template <class T, class = void> struct IsStreamed : std::false_type {};
template <class T>
struct IsStreamed<T,
                  std::void_t<decltype(std::declval<std::ostream&>() << std::declval<const T&>())>>
    : std::true_type {};

/// An enumeration without an operator<< prints as its number, an optional as what is in it.
template <class T> void stream_one(std::ostream& out, const T& value) {
  if constexpr (std::is_enum<T>::value && !IsStreamed<T>::value)
    out << static_cast<std::underlying_type_t<T>>(value);
  else out << value;
}
template <class T> void stream_one(std::ostream& out, const std::optional<T>& value) {
  if (value) stream_one(out, *value);
  else out << "std::nullopt";
}

}  // namespace compat
}  // namespace ramet

namespace c10 {

using std::stod;
using std::stoi;
using std::stoll;
using std::stoull;
using std::string_view;
using std::to_string;

/// The parts, one after the other, as operator<< prints them.
template <class... Parts> [[nodiscard]] inline std::string str(const Parts&... parts) {
  auto text = ::ramet::detail::classic<std::ostringstream>();
  (::ramet::compat::stream_one(text, parts), ...);
  return text.str();
}
[[nodiscard]] inline std::string str() { return {}; }
[[nodiscard]] inline std::string str(const std::string& text) { return text; }
[[nodiscard]] inline std::string str(const char* text) { return text; }

/// The elements of `list` with `delimiter` between them.
template <class Container>
[[nodiscard]] std::string Join(const std::string& delimiter, const Container& list) {
  auto text = ::ramet::detail::classic<std::ostringstream>();
  bool first = true;
  for (const auto& element : list) {
    if (!first) text << delimiter;
    first = false;
    text << element;
  }
  return text.str();
}

/// Replaces every `from` in `text`, from left to right; returns how many there were.
inline size_t ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return 0;
  size_t count = 0;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    ++count;
  }
  return count;
}

/// The pieces between delimiters, the empty ones too.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char delimiter) {
  std::vector<std::string_view> pieces;
  for (size_t begin = 0;;) {
    const size_t end = text.find(delimiter, begin);
    pieces.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return pieces;
    begin = end + 1;
  }
}

/// The name that a program's text has for what the compiler calls `name`.
inline std::string demangle(const char* name) { return ::ramet::detail::demangled(name); }
template <class T> inline const char* demangle_type() {
  static const std::string& name = *new std::string(demangle(typeid(T).name()));
  return name.c_str();
}

/// "std::runtime_error: text"
inline std::string GetExceptionString(const std::exception& e) {
  return demangle(typeid(e).name()) + ": " + e.what();
}

}  // namespace c10
