// An ONNX file as text: what a test reads and what is checked in.
#pragma once
#include <string>

namespace ramet::testing {

/// A line an operator, "3.MatMul = MatMul(x, 3.weight) axis=1"; "input ..." and "output ..." with
/// dtype and sizes.
std::string onnx_text(const std::string& bytes);

}  // namespace ramet::testing
