#include "runtime/base/error.h"

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

TEST(Error, PlaceAndContextsFollowTheMessage) {
  const auto thrown = [] { throw IndexError({"f", "net.cc", 7}, "[op] bad"); };
  try {
    try {
      thrown();
    } catch (Error& e) {
      EXPECT_STREQ(e.what(), "[op] bad\nException raised from f at net.cc:7");
      EXPECT_STREQ(e.what_without_backtrace(), "[op] bad");
      e.add_context("layer 3");
      throw;
    }
  } catch (IndexError& e) {
    EXPECT_STREQ(e.what(), "[op] bad (layer 3)\nException raised from f at net.cc:7");
    e.add_context("epoch 2");
    EXPECT_STREQ(e.what_without_backtrace(), "[op] bad\n  layer 3\n  epoch 2");
    EXPECT_EQ(e.msg(), "[op] bad");
    EXPECT_EQ(e.context(), (std::vector<std::string>{"layer 3", "epoch 2"}));
  }
  EXPECT_STREQ(Error("old", "").what(), "old");
  EXPECT_STREQ(Error("old", "frame").what(), "old\nframe");
  EXPECT_STREQ(Error("old", "frame").what_without_backtrace(), "old");
  const SourceLocation here = SourceLocation::current();
  EXPECT_EQ(here.line, __LINE__ - 1u);
  EXPECT_STREQ(here.file, __FILE__);
  EXPECT_EQ(detail::join(SourceLocation{"f", "a.cc", 1}), "f at a.cc:1");
}

TEST(Error, KindsAreErrors) {
  EXPECT_THROW(throw IndexError("i"), Error);
  EXPECT_THROW(throw OutOfMemoryError("m"), Error);
  EXPECT_THROW(throw NotImplementedError("n"), std::runtime_error);
}

}  // namespace
}  // namespace ramet
