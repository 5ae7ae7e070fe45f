// ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, and their functions.
#pragma once
#include <optional>
#include <vector>

#include "nn/layers/image/conv.h"
#include "nn/module/any_module.h"

namespace ramet::nn {

template <size_t D> struct RAMET_API ConvTransposeOptions {
  using padding_mode_t = detail::conv_padding_mode_t;
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels),
        out_channels_(out_channels),
        kernel_size_(std::move(kernel_size)) {}
  RAMET_ARG(int64_t, in_channels);
  RAMET_ARG(int64_t, out_channels);
  RAMET_ARG(ExpandingArray<D>, kernel_size);
  RAMET_ARG(ExpandingArray<D>, stride) = 1;
  /// Rows of the output that are left out on either side.
  RAMET_ARG(ExpandingArray<D>, padding) = 0;
  /// Extra rows of the output, on one side: less than the stride or the dilation.
  RAMET_ARG(ExpandingArray<D>, output_padding) = 0;
  RAMET_ARG(int64_t, groups) = 1;
  RAMET_ARG(bool, bias) = true;
  RAMET_ARG(ExpandingArray<D>, dilation) = 1;
  /// Another one than kZeros is an Error of forward.
  RAMET_ARG(padding_mode_t, padding_mode) = kZeros;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

/// The gradient of a convolution's input, as a layer (autograd/ops/layers/conv.h). `weight` is
/// (in_channels, out_channels / groups, kernel...), `bias` (out_channels) or undefined. Both start
/// uniform in +-1/sqrt(out_channels / groups * kernel elements).
template <size_t D, class Derived>
class RAMET_API ConvTransposeNdImpl
    : public detail::ListedModule<Derived, ConvTransposeOptions<D>> {
 public:
  using detail::ListedModule<Derived, ConvTransposeOptions<D>>::options;
  ConvTransposeNdImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : ConvTransposeNdImpl(ConvTransposeOptions<D>(in_channels, out_channels, kernel_size)) {}
  explicit ConvTransposeNdImpl(const ConvTransposeOptions<D>& options_);
  void reset() override;
  void reset_parameters();
  /// output_size: the result's spatial extents (or all extents). They determine output_padding in
  /// place of the option. As in Python, it takes the dilation into account and accepts inputs
  /// without a batch.
  Tensor forward(const Tensor& input, const std::optional<IntArrayRef>& output_size = std::nullopt);

  Tensor weight, bias;

 protected:
  RAMET_FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(std::optional<IntArrayRef>())})
  std::vector<int64_t> _output_padding(const Tensor& input,
                                       const std::optional<IntArrayRef>& output_size) const;
};

// Inputs (N, C, ...) or (C, ...).
RAMET_LAYER_FROM(ConvTranspose1d, ConvTranspose1dOptions, ConvTransposeNdImpl, 1)
RAMET_LAYER_FROM(ConvTranspose2d, ConvTranspose2dOptions, ConvTransposeNdImpl, 2)
RAMET_LAYER_FROM(ConvTranspose3d, ConvTranspose3dOptions, ConvTransposeNdImpl, 3)

namespace functional {

/// The options of conv_transpose1d, conv_transpose2d and conv_transpose3d but for the weight.
template <size_t D> struct ConvTransposeFuncOptions {
  RAMET_ARG(Tensor, bias);
  RAMET_ARG(ExpandingArray<D>, stride) = 1;
  RAMET_ARG(ExpandingArray<D>, padding) = 0;
  RAMET_ARG(ExpandingArray<D>, output_padding) = 0;
  RAMET_ARG(int64_t, groups) = 1;
  RAMET_ARG(ExpandingArray<D>, dilation) = 1;
};
using ConvTranspose1dFuncOptions = ConvTransposeFuncOptions<1>;
using ConvTranspose2dFuncOptions = ConvTransposeFuncOptions<2>;
using ConvTranspose3dFuncOptions = ConvTransposeFuncOptions<3>;

namespace detail {
RAMET_API Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                  IntArrayRef stride, IntArrayRef padding,
                                  IntArrayRef output_padding, int64_t groups, IntArrayRef dilation);
RAMET_API Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                  IntArrayRef stride, IntArrayRef padding,
                                  IntArrayRef output_padding, int64_t groups, IntArrayRef dilation);
RAMET_API Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                  IntArrayRef stride, IntArrayRef padding,
                                  IntArrayRef output_padding, int64_t groups, IntArrayRef dilation);
}  // namespace detail

RAMET_API Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                                  const ConvTranspose1dFuncOptions& options = {});
RAMET_API Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                                  const ConvTranspose2dFuncOptions& options = {});
RAMET_API Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                                  const ConvTranspose3dFuncOptions& options = {});

}  // namespace functional
}  // namespace ramet::nn
