// Where shared libraries are searched for, and the errors where none can be opened.
#include "runtime/cuda/libraries.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace ramet::cuda {
namespace {

class Libraries : public ::testing::Test {
 protected:
  Libraries() {
    const char* base = std::getenv("TEST_TMPDIR");
    folder_ = std::string(base ? base : "/tmp") + "/libraries_" + std::to_string(::getpid());
    make(folder_ + "/env/lib/python3.9/site-packages/nvidia/nccl/lib");
    make(folder_ + "/named");
    setenv("RAMET_CUDA_LIBS", (folder_ + "/absent:" + folder_ + "/named:").c_str(), 1);
    setenv("CUDA_PATH", "/the/toolkit", 1);
    setenv("VIRTUAL_ENV", (folder_ + "/env").c_str(), 1);
  }
  ~Libraries() override {
    for (const char* name : {"RAMET_CUDA_LIBS", "CUDA_PATH", "VIRTUAL_ENV"}) unsetenv(name);
    EXPECT_EQ(std::system(("rm -rf '" + folder_ + "'").c_str()), 0);
  }
  static void make(const std::string& folder) {
    EXPECT_EQ(std::system(("mkdir -p '" + folder + "'").c_str()), 0);
  }
  std::string folder_;
};

TEST_F(Libraries, InThisOrder) {
  const std::string wheel =
      folder_ + "/env/lib/python3.9/site-packages/nvidia/nccl/lib/librametnone.so.2";
  std::ofstream(wheel) << "no library";
  const auto places = places_of("librametnone.so.2", "nccl");
  ASSERT_GE(places.size(), 6u);
  EXPECT_EQ(places[0], folder_ + "/absent/librametnone.so.2");
  EXPECT_EQ(places[1], folder_ + "/named/librametnone.so.2");
  EXPECT_EQ(places[2], "librametnone.so.2");
  EXPECT_EQ(places[3], "/the/toolkit/lib64/librametnone.so.2");
  EXPECT_EQ(places[4], "/the/toolkit/lib/librametnone.so.2");
  EXPECT_EQ(places[5], wheel);
}

TEST_F(Libraries, WhyNone) {
  std::ofstream(folder_ + "/named/librametnone.so.2") << "no library";
  std::string why;
  EXPECT_EQ(open_library("librametnone.so.2", "nccl", &why), nullptr);
  for (const std::string& place : places_of("librametnone.so.2", "nccl"))
    EXPECT_NE(why.find(place), std::string::npos) << place << " in " << why;
}

TEST_F(Libraries, TheFirstThatOpens) {
  std::string why;
  EXPECT_NE(open_library("libm.so.6", "nccl", &why), nullptr) << why;
  EXPECT_NE(why.find(folder_ + "/named/libm.so.6"), std::string::npos) << why;
}

}  // namespace
}  // namespace ramet::cuda
