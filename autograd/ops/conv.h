// Convolution (cross-correlation): LibTorch's functions of the same names. Every dtype but bool; operands share one.
#pragma once
#include <string>

#include "autograd/tensor.h"

namespace ramet {

/// input [n, c, h, w] or [c, h, w], weight [o, c / groups, kh, kw], bias [o] or undefined. A list of one number stands for both
/// dimensions. Output extents: (in + 2 padding - dilation (k - 1) - 1) / stride + 1.
///
/// On a CPU the result may lie channels-last in memory; Note [Internal layout] in autograd/layout.h says why nobody sees it.
RAMET_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1);
/// padding: "valid" (none) or "same" (stride 1 only: output as large as the input; the odd pixel goes right and below).
RAMET_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride, const std::string& padding,
                        IntArrayRef dilation = 1, int64_t groups = 1);
RAMET_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride, const char* padding,
                        IntArrayRef dilation = 1, int64_t groups = 1);
/// The same with one spatial dimension: input [n, c, l] or [c, l], weight [o, c / groups, k].
RAMET_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1);
RAMET_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride, const std::string& padding,
                        IntArrayRef dilation = 1, int64_t groups = 1);
RAMET_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride, const char* padding,
                        IntArrayRef dilation = 1, int64_t groups = 1);

}  // namespace ramet
