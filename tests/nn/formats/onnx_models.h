// Models for the tests of ONNX files. Those of tests/modules have every layer that is exported
// at least once. Others have several layers.
#pragma once
#include <string>
#include <vector>

#include "nn/formats/onnx/onnx.h"

namespace ramet::testing {

struct OnnxModel {
  std::string name;
  std::vector<Tensor> inputs, outputs;  // outputs: the module's, in evaluation mode
  std::string bytes;                    // the file
};

/// All of them, with the same weights each time.
std::vector<OnnxModel> onnx_models();

/// One of a module, which gets weights that are the same each time, and no zeros and ones.
OnnxModel onnx_model(const std::string& name, nn::Module& module,
                     const formats::OnnxForward& forward, const std::vector<Tensor>& inputs,
                     const OnnxOptions& options);
/// Numbers below 0 and above, the same each time.
Tensor onnx_numbers(IntArrayRef sizes, double scale = 2);
/// onnx_models_between.cc: what stands between layers.
void add_onnx_models_between(std::vector<OnnxModel>& models);

}  // namespace ramet::testing
