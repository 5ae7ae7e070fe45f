#include "runtime/error.h"

#include <gtest/gtest.h>

namespace ramet {
namespace {

TEST(Error, CheckNamesTheOperation) {
  const auto check = [](int n) {
    RAMET_CHECK(n > 2, "op", "n: got ", n, ", expected more than ", 2.5);
  };
  check(3);
  try {
    check(1);
    FAIL() << "no exception";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[op] n: got 1, expected more than 2.5");
    EXPECT_EQ(e.msg(), e.what());
    EXPECT_STREQ(e.what_without_backtrace(), e.what());
  }
}

TEST(Error, PartsAreNotEvaluatedWithoutNeed) {
  int evaluated = 0;
  const auto part = [&] { return ++evaluated; };
  RAMET_CHECK(true, "op", part());
  EXPECT_EQ(evaluated, 0);
}

TEST(Error, KindsAreErrors) {
  EXPECT_THROW(throw IndexError("i"), Error);
  EXPECT_THROW(throw OutOfMemoryError("m"), Error);
  EXPECT_THROW(throw NotImplementedError("n"), std::runtime_error);
}

}  // namespace
}  // namespace ramet
