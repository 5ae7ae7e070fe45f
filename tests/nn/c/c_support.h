// What the tests of the C interface share.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "nn/c/c.h"

namespace ramet {

inline std::string temporary(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  return std::string(base ? base : "/tmp") + "/c_interface_" + std::to_string(::getpid()) + "_" +
         name;
}
struct File {
  explicit File(const std::string& name) : path(temporary(name)) {}
  ~File() { ::unlink(path.c_str()); }
  const std::string path;
};
inline int64_t live() {
  int64_t count = -1;
  EXPECT_EQ(ramet_live_handles(&count), RAMET_OK);
  return count;
}
// Checks that every test leaves as many handles as it found.
struct CInterface : ::testing::Test {
  void SetUp() override { before_ = live(); }
  void TearDown() override { EXPECT_EQ(live(), before_); }
  int64_t before_ = 0;
};
inline std::string last() { return ramet_last_error(); }

}  // namespace ramet
