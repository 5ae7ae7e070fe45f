// Operators of convolutions, pools and resampling that are called as functions.
#pragma once
#include <string>

#include "nn/formats/onnx/operations_internal.h"

namespace ramet {
namespace formats {

/// Each adds the operators of one operation; the name of the result.
std::string onnx_convolution(const OnnxOperation& o);
std::string onnx_max_pool(const OnnxOperation& o);
std::string onnx_average_pool(const OnnxOperation& o);
/// Where the output's extents divide the input's.
std::string onnx_adaptive_pool(const OnnxOperation& o);
std::string onnx_upsample(const OnnxOperation& o);

}  // namespace formats
}  // namespace ramet
