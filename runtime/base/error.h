// Errors. Every message reads `[op] what is wrong: got X, expected Y`.
//
// Checks are RAMET_CHECK(condition, op, parts...). The failing side is out of line and cold. So a
// check costs its caller one compare and one branch. `Error` can be caught across shared-library
// borders.
#pragma once
// clang-format off
#include "runtime/base/supported.h"  // first, so that its error comes first
// clang-format on
#include <cstdint>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/base/classic.h"

/// For functions that programs may call: the shared library exports the name.
#define RAMET_API __attribute__((visibility("default")))
/// Hints to the compiler which way a condition mostly goes:
#define RAMET_LIKELY(x) __builtin_expect(!!(x), 1)
#define RAMET_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace ramet {

/// A line of source code, as in LibTorch's errors and warnings.
struct SourceLocation {
  /// Name of the function.
  const char* function;
  /// Path of the source.
  const char* file;
  /// Line in it, from 1.
  uint32_t line;

  /// The place of the call.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          const char* function = __builtin_FUNCTION(),
                                          uint32_t line = __builtin_LINE()) noexcept {
    return {function, file, line};
  }
};
/// "main at net.cc:12"
RAMET_API std::ostream& operator<<(std::ostream& out, const SourceLocation& where);

/// Base of all errors that the library throws for wrong use. `what()` is the whole message.
class RAMET_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message), text_(message) {}
  /// what() ends in a line with the location; what_without_backtrace() and msg() leave it out.
  Error(const SourceLocation& where, const std::string& message);
  /// LibTorch's older form: what() continues with the backtrace.
  Error(const std::string& message, const std::string& backtrace);
  ~Error() override;
  /// The message with its contexts and, if given, location or backtrace.
  const char* what() const noexcept override {
    return whole_.empty() ? std::runtime_error::what() : whole_.c_str();
  }
  /// As LibTorch's c10::Error: the message with its contexts, without location or backtrace.
  virtual const char* what_without_backtrace() const noexcept {
    return without_.empty() ? text_.c_str() : without_.c_str();
  }
  /// The message as it was thrown.
  const std::string& msg() const { return text_; }

  /// Adds context about the error, for a caller that catches it and throws it again: "msg
  /// (context)". From the second one on, each context has a line of its own.
  void add_context(const std::string& context);
  /// The texts given to add_context().
  const std::vector<std::string>& context() const { return context_; }
  /// Adds `text` to the message, unchanged.
  void append(const std::string& text);

 private:
  void write();
  std::string text_, place_;
  std::vector<std::string> context_;
  std::string without_, whole_;  // empty: text_ alone
};

/// An index outside its range (LibTorch throws the same type from `select`, `index` and friends).
class RAMET_API IndexError : public Error {
 public:
  using Error::Error;
  ~IndexError() override;
};

/// A request for memory that could not be met. The message names device, request and statistics.
class RAMET_API OutOfMemoryError : public Error {
 public:
  using Error::Error;
  ~OutOfMemoryError() override;
};

/// A feature that exists in LibTorch and is absent here, or has no derivative.
class RAMET_API NotImplementedError : public Error {
 public:
  using Error::Error;
  ~NotImplementedError() override;
};

/// A matrix without such a factorisation: singular, not positive definite, not finite.
class RAMET_API LinAlgError : public Error {
 public:
  using Error::Error;
  ~LinAlgError() override;
};

namespace detail {

/// One part of a text: a value, and the function that writes it to a stream. The functions for
/// common types stand in error.cc. So an error message adds little code to its caller.
struct Part {
  const void* value;
  void (*write)(std::ostream& text, const void* value);
};
RAMET_API void write_characters(std::ostream& text, const void* value);
RAMET_API void write_bool(std::ostream& text, const void* value);
RAMET_API void write_int(std::ostream& text, const void* value);
RAMET_API void write_int64(std::ostream& text, const void* value);
RAMET_API void write_size(std::ostream& text, const void* value);
RAMET_API void write_double(std::ostream& text, const void* value);
RAMET_API void write_string(std::ostream& text, const void* value);
template <class T> void write_value(std::ostream& text, const void* value) {
  text << *static_cast<const T*>(value);
}

/// Refers to `value`, or to the characters to which it points.
template <class T> constexpr Part part_of(const T& value) {
  using Decayed = std::decay_t<T>;
  if constexpr (std::is_same_v<Decayed, const char*> || std::is_same_v<Decayed, char*>)
    return {value, write_characters};
  else if constexpr (std::is_same_v<T, bool>) return {&value, write_bool};
  else if constexpr (std::is_same_v<T, int>) return {&value, write_int};
  else if constexpr (std::is_same_v<T, int64_t>) return {&value, write_int64};
  else if constexpr (std::is_same_v<T, size_t>) return {&value, write_size};
  else if constexpr (std::is_same_v<T, double>) return {&value, write_double};
  else if constexpr (std::is_same_v<T, std::string>) return {&value, write_string};
  else return {std::addressof(value), write_value<T>};
}

/// The parts one after the other, as a stream in the classic locale writes them.
RAMET_API std::string join_parts(const Part* parts, size_t count);
template <class... Parts> std::string join(const Parts&... parts) {
  const Part all[] = {part_of(parts)...};
  return join_parts(all, sizeof...(Parts));
}

[[noreturn, gnu::cold]] RAMET_API void throw_error(const char* op, const Part* parts, size_t count);

}  // namespace detail

/// Throws `Error("[op] parts...")`.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const char* op, const Parts&... parts) {
  const detail::Part all[] = {detail::part_of(parts)...};
  detail::throw_error(op, all, sizeof...(Parts));
}

}  // namespace ramet

/// Throws `Error("[op] ...")` unless `condition` holds. The remaining arguments are streamed.
#define RAMET_CHECK(condition, op, ...)                               \
  do {                                                                \
    if (RAMET_UNLIKELY(!(condition))) ::ramet::fail(op, __VA_ARGS__); \
  } while (false)
