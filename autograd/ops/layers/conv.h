// Convolution (cross-correlation) and its transpose: LibTorch's functions of the same names. They
// take every dtype but bool; operands share one. A list of one number stands for all dimensions.
// Padding, dilation and stride may be any numbers; taps that meet no pixel cost nothing.
#pragma once
#include <optional>
#include <string>
#include <type_traits>

#include "autograd/tensor.h"

namespace ramet {

/// input [n, c, h, w] or [c, h, w], weight [o, c / groups, kh, kw], bias [o] or undefined. Output
/// extents: (in + 2 padding - dilation (k - 1) - 1) / stride + 1.
///
/// On a CPU the result may be channels-last in memory. Note [Internal layout] in
/// autograd/graph/layout.h says why callers do not see that.
RAMET_API Tensor conv2d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1);
/// conv2d with one spatial dimension: input [n, c, l] or [c, l], weight [o, c / groups, k].
RAMET_API Tensor conv1d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1);
/// conv2d with three: input [n, c, d, h, w] or [c, d, h, w], weight [o, c / groups, kd, kh, kw].
RAMET_API Tensor conv3d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1);

/// The gradient of conv2d's input, as a function of a gradient of its result. input is [n, c, h, w]
/// or [c, h, w], weight [c, o / groups, kh, kw], bias [o] or undefined. Output extents, at least 1,
/// are (in - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1. Several input sizes of
/// conv2d give one output size. output_padding, which is less than the stride or the dilation,
/// chooses one.
RAMET_API Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                                  const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef output_padding = 0,
                                  int64_t groups = 1, IntArrayRef dilation = 1);
/// conv_transpose2d with one spatial dimension: input [n, c, l] or [c, l], weight [c, o / groups,
/// k].
RAMET_API Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                                  const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef output_padding = 0,
                                  int64_t groups = 1, IntArrayRef dilation = 1);
/// conv_transpose2d with three: input [n, c, d, h, w] or [c, d, h, w], weight [c, o / groups, kd,
/// kh, kw].
RAMET_API Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                                  const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef output_padding = 0,
                                  int64_t groups = 1, IntArrayRef dilation = 1);
/// convN of a batch, or conv_transposeN with `transposed`. input [n, c, ...] has one to three
/// spatial dimensions, and so has the weight. output_padding counts only where `transposed`.
RAMET_API Tensor convolution(const Tensor& input, const Tensor& weight,
                             const std::optional<Tensor>& bias, IntArrayRef stride,
                             IntArrayRef padding, IntArrayRef dilation, bool transposed,
                             IntArrayRef output_padding, int64_t groups);
/// conv1d with dimensions time, batch, channels: self [l, n, c], weight [k, c, o], bias [o], result
/// [., n, o].
RAMET_API Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias,
                          int64_t pad = 0);

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
