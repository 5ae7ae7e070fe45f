// What went wrong, as text, and whether the text is the expected one.
#pragma once
#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace ramet {

/// The message of what f() throws; "no error" where it throws nothing.
template <class F> std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& e) { return e.what(); }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_TRUE(contains(text, part)) << "got: " << text << "\nexpected a text with: " << part;
}

/// What the statement throws has this part in its text.
#define EXPECT_ERROR_TEXT(statement, part)                                \
  do {                                                                    \
    const std::string error_text = ::ramet::error_of([&] { statement; }); \
    EXPECT_TRUE(::ramet::contains(error_text, part)) << error_text;       \
  } while (false)
/// The same, and its text starts with this.
#define EXPECT_ERROR_START(statement, start)                              \
  do {                                                                    \
    const std::string error_text = ::ramet::error_of([&] { statement; }); \
    EXPECT_EQ(error_text.find(start), 0u) << error_text;                  \
  } while (false)

}  // namespace ramet
