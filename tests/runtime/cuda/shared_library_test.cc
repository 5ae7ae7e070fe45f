// Where libraries of the toolkit are looked for.
#include "runtime/cuda/shared_library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ramet::cuda {
namespace {

TEST(SharedLibrary, OfTheLoader) {
  std::string why;
  void* library = open_library({"libramet_does_not_exist.so", "libm.so.6"}, why);
  ASSERT_NE(library, nullptr) << why;
  const auto cosine = reinterpret_cast<double (*)(double)>(library_function(library, "cos"));
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(library_function(library, "ramet_no_such_function"), nullptr);
}

TEST(SharedLibrary, MissingOrBroken) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "ramet_libraries";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "libramet_broken.so") << "no library";
  setenv("RAMET_CUDA_LIBS", ("/ramet/nowhere:" + folder.string()).c_str(), 1);
  std::string why;
  EXPECT_EQ(open_library({"libramet_broken.so"}, why), nullptr);
  unsetenv("RAMET_CUDA_LIBS");
  EXPECT_NE(why.find("libramet_broken.so was not found in RAMET_CUDA_LIBS"), std::string::npos)
      << why;
  EXPECT_NE(why.find("/ramet/nowhere"), std::string::npos) << why;
  EXPECT_NE(why.find("/usr/local/cuda/lib64"), std::string::npos) << why;
  EXPECT_NE(why.find((folder / "libramet_broken.so").string()), std::string::npos)
      << "what the loader said of it: " << why;
  std::filesystem::remove_all(folder);
}

// The wheels of a Python environment.
TEST(SharedLibrary, Folders) {
  const std::filesystem::path home = std::filesystem::path(::testing::TempDir()) / "ramet_venv",
                              wheel = home / "lib/python3.11/site-packages/nvidia/cublas/lib";
  std::filesystem::create_directories(wheel);
  std::ofstream(wheel / "libramet_wheel.so") << "no library";
  setenv("VIRTUAL_ENV", home.c_str(), 1);
  std::string why;
  EXPECT_EQ(open_library({"libramet_wheel.so"}, why), nullptr);
  unsetenv("VIRTUAL_ENV");
  EXPECT_NE(why.find((wheel / "libramet_wheel.so").string()), std::string::npos) << why;
  std::filesystem::remove_all(home);
}

}  // namespace
}  // namespace ramet::cuda
