// What the tests of files and of Python share.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ramet::testing {

namespace fs = std::filesystem;

/// An empty one, for this test.
inline fs::path folder(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  const fs::path path = fs::path(base ? base : fs::temp_directory_path().string()) /
                        (name + std::to_string(::getpid()));
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}
inline std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Runs a script of this folder. False, with the reason printed, if Python lacks a package that it
/// needs.
inline bool python(const std::string& arguments) {
  const std::string command = "python3 tests/nn/formats/data/" + arguments;
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code != 77 && code != 127) { EXPECT_EQ(code, 0) << command; }
  return code == 0;
}

}  // namespace ramet::testing
