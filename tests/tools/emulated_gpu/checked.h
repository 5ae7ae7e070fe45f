// What the tests of the checker share.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/emulated_gpu/checker/checks.h"

namespace ramet::testing {

/// Skips in builds that have no checker. The BUILD file says which build it is (CHECKED_BUILD); the
/// test does not ask the checker.
class CheckedTest : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef RAMET_CHECKED_BUILD
    ASSERT_TRUE(emulated::checks().grid_begin) << "--config=check, and no checker";
#else
    if (!emulated::checks().grid_begin) GTEST_SKIP() << "needs --config=check";
#endif
  }

  static void expect_texts(const std::string& report, const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      EXPECT_NE(report.find(text), std::string::npos) << "no \"" << text << "\" in: " << report;
  }
};

}  // namespace ramet::testing
