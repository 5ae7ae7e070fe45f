// Every module that a description may name, and the same module in C++.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "nn/module/any_module.h"

namespace ramet {

struct ModuleRow {
  const char* json;
  std::function<nn::AnyModule()> make;
  std::vector<int64_t> input;
  ScalarType dtype = kFloat32;

  std::string type() const {
    const std::string text = json;
    const size_t begin = text.find(": \"") + 3;
    return text.substr(begin, text.find('"', begin) - begin);
  }
};
std::vector<ModuleRow> module_rows();

}  // namespace ramet
