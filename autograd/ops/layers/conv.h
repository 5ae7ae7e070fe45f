// Convolution (cross-correlation) and its transpose: LibTorch's functions of the same names. They
// take every dtype but bool; operands share one. A list of one number stands for all dimensions.
// Padding, dilation and stride may be any numbers; taps that meet no pixel cost nothing.
#pragma once
#include <optional>
#include <string>
#include <type_traits>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/conv.inc"

namespace detail {
RAMET_API Tensor conv_named(int dimensions, const Tensor& input, const Tensor& weight,
                            const std::optional<Tensor>& bias, IntArrayRef stride,
                            const std::string& padding, IntArrayRef dilation, int64_t groups);
// A template, so that a literal 0 as padding is a number and not a null string.
template <class S>
using IfText = std::enable_if_t<std::is_convertible<const S&, std::string>::value, int>;
}  // namespace detail

/// padding: "valid" (none) or "same" (stride 1 only). With "same" the output is as large as the
/// input, and the odd pixel goes to the right and below.
template <class S, detail::IfText<S> = 0>
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, const S& padding, IntArrayRef dilation = 1, int64_t groups = 1) {
  return detail::conv_named(2, input, weight, bias, stride, padding, dilation, groups);
}
template <class S, detail::IfText<S> = 0>
Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, const S& padding, IntArrayRef dilation = 1, int64_t groups = 1) {
  return detail::conv_named(1, input, weight, bias, stride, padding, dilation, groups);
}
template <class S, detail::IfText<S> = 0>
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, const S& padding, IntArrayRef dilation = 1, int64_t groups = 1) {
  return detail::conv_named(3, input, weight, bias, stride, padding, dilation, groups);
}

}  // namespace ramet
