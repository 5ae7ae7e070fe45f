// Where the tests' TorchScript files are.
#pragma once
#include <string>

namespace ramet::script_files {

inline std::string file(const std::string& name) {
  return "tests/nn/script/goldens/" + name + ".pt";
}

}  // namespace ramet::script_files
