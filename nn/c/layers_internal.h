// The modules that a JSON description may name.
#pragma once
#include <string>
#include <vector>

#include "nn/c/reader_internal.h"

namespace ramet::c {

/// Makes a module of class `type` from its options.
struct Layer {
  const char* type;
  nn::AnyModule (*make)(Reader& options);
};
const std::vector<Layer>& all_layers();

/// The module of a description; Errors of `op`. It is settled: cast to its "dtype", its parameters
/// in flat stores.
nn::AnyModule module_of_json(const char* op, const std::string& json);

}  // namespace ramet::c
