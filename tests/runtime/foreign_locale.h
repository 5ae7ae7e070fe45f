// A program's locale in which no number is written as in C++: made here, so that none has to be
// installed.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <locale>
#include <sstream>
#include <string>

namespace ramet {

/// While it lives, streams that are made write "1.234.567,5", "wahr" and "falsch", and printf and
/// strtod of the C library have a comma.
class ForeignLocale {
 public:
  ForeignLocale() : before_(std::locale::global({std::locale::classic(), new Numbers})) {
    // LC_NUMERIC as the C library reads it. First a number for its kind, how many items there are
    // and where they begin. Then the items: point, separator, groups, the first two as wide
    // characters, name of the encoding.
    const std::string file = ::testing::TempDir() + "/foreign";
    mkdir(file.c_str(), 0700);
    const std::string numeric(
        "\x14\x11\x03\x20\x06\0\0\0\x20\0\0\0\x22\0\0\0\x24\0\0\0\x28\0\0\0\x2c\0\0\0\x30\0\0\0"
        ",\0.\0\3\3\0\0,\0\0\0.\0\0\0UTF-8\0",
        54);
    std::ofstream(file + "/LC_NUMERIC", std::ios::binary) << numeric;
    setenv("LOCPATH", ::testing::TempDir().c_str(), 1);
    EXPECT_TRUE(std::setlocale(LC_NUMERIC, "foreign")) << "the C library does not take " << file;
    char text[16];
    std::snprintf(text, sizeof text, "%.1f", 1.5);
    EXPECT_STREQ(text, "1,5");
    std::ostringstream stream;
    stream << 1234567.5 << std::boolalpha << true;
    EXPECT_EQ(stream.str(), "1,23457e+06wahr");
  }
  ~ForeignLocale() {
    std::setlocale(LC_NUMERIC, "C");
    std::locale::global(before_);
  }
  ForeignLocale(const ForeignLocale&) = delete;
  ForeignLocale& operator=(const ForeignLocale&) = delete;

 private:
  struct Numbers : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
    std::string do_truename() const override { return "wahr"; }
    std::string do_falsename() const override { return "falsch"; }
  };
  const std::locale before_;
};

}  // namespace ramet
