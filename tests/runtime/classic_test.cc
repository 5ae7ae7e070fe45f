#include "runtime/base/classic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "runtime/base/config.h"
#include "runtime/base/scalar.h"
#include "runtime/tensor/options.h"
#include "runtime/tensor/print.h"
#include "tests/runtime/foreign_locale.h"

namespace ramet {
namespace {

template <class T> std::string printed(const T& value) {
  std::ostringstream stream;  // the program's: in its locale
  stream << value;
  return stream.str();
}

TEST(Classic, ErrorsAreWrittenAsEver) {
  const ForeignLocale locale;
  try {
    fail("op", "got ", 1234567, ", ", 0.25, ", ", IntArrayRef({1234, 5678}), ", ", Scalar(2.5));
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "[op] got 1234567, 0.25, [1234, 5678], 2.5"); }
  const Error placed(SourceLocation{"f", "net.cc", 12345}, "[op] bad");
  EXPECT_STREQ(placed.what(), "[op] bad\nException raised from f at net.cc:12345");
}

TEST(Classic, SoIsWhatGoesToAStreamOfTheProgram) {
  const ForeignLocale locale;
  EXPECT_EQ(printed(IntArrayRef({1234, 5678})), "[1234, 5678]");
  EXPECT_EQ(printed(Scalar(1234567)), "1234567");
  EXPECT_EQ(printed(Scalar(0.5)), "0.5");
  EXPECT_EQ(printed(Half(0.5f)), "0.5");
  EXPECT_EQ(printed(BFloat16(1234.f)), "1232");
  EXPECT_EQ(printed(SourceLocation{"f", "net.cc", 12345}), "f at net.cc:12345");
  const std::string options = printed(TensorOptions(kDouble).requires_grad(true));
  EXPECT_NE(options.find("requires_grad=true"), std::string::npos) << options;
  TensorBase numbers = TensorBase::empty({2}, kDouble, Device(kCPU, 0));
  static_cast<double*>(numbers.ptr())[0] = 1234.5;
  static_cast<double*>(numbers.ptr())[1] = 0.25;
  EXPECT_EQ(printed(numbers), " 1234.5000\n    0.2500\n[ CPUDoubleType{2} ]");
}

TEST(Classic, AScopeGivesTheStreamItsLocaleBack) {
  const ForeignLocale locale;
  std::ostringstream stream;
  {
    const detail::ClassicScope classic(stream);
    stream << 1234 << ' ' << 0.5 << ' ';
  }
  stream << 1234 << ' ' << 0.5;
  EXPECT_EQ(stream.str(), "1234 0.5 1.234 0,5");
}

TEST(Classic, StreamsReadAndWriteIt) {
  const ForeignLocale locale;
  auto in = detail::classic<std::istringstream>("1.5 2");
  double x = 0;
  int n = 0;
  in >> x >> n;
  EXPECT_EQ(x, 1.5);
  EXPECT_EQ(n, 2);
  auto out = detail::classic<std::ostringstream>();
  out << 1234 << ' ' << 1.5;
  EXPECT_EQ(out.str(), "1234 1.5");
}

TEST(Classic, NumbersOfTheCLibraryToo) {
  const ForeignLocale locale;
  EXPECT_EQ(detail::formatted("%.3f %s %d|%6.1f", 1.5, "x", 7, -2.25), "1.500 x 7|  -2.2");
  EXPECT_EQ(detail::formatted("%s", std::string(3000, 'a').c_str()), std::string(3000, 'a'));
  EXPECT_EQ(detail::formatted("%s", ""), "");
  char* end = nullptr;
  const char* text = "1.25,5";
  EXPECT_EQ(detail::read_double(text, &end), 1.25);
  EXPECT_EQ(end, text + 4);
  EXPECT_TRUE(std::isnan(detail::read_double("nan", &end)));
  // The program's own locale is as it was.
  char own[16];
  std::snprintf(own, sizeof own, "%.1f", 1.5);
  EXPECT_STREQ(own, "1,5");
}

TEST(Classic, LettersAreThoseOfAscii) {
  EXPECT_EQ(detail::lower('I'), 'i');
  EXPECT_EQ(detail::lower('Z'), 'z');
  EXPECT_EQ(detail::lower('['), '[');
  EXPECT_EQ(detail::lower('\xc4'), '\xc4');
  EXPECT_TRUE(detail::is_letter_or_digit('q') && detail::is_letter_or_digit('Q') &&
              detail::is_letter_or_digit('7'));
  EXPECT_FALSE(detail::is_letter_or_digit('_') || detail::is_letter_or_digit('\xe4'));
}

}  // namespace
}  // namespace ramet
