// Models for the tests of ONNX files: every layer that is exported, at least once.
#pragma once
#include <string>
#include <vector>

#include "nn/formats/onnx.h"

namespace ramet::testing {

struct OnnxModel {
  std::string name;
  std::vector<Tensor> inputs, outputs;  // outputs: the module's, in evaluation mode
  std::string bytes;                    // the file
};

/// All of them, with the same weights each time.
std::vector<OnnxModel> onnx_models();

}  // namespace ramet::testing
