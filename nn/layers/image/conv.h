// Conv1d, Conv2d, Conv3d.
#pragma once
#include <variant>

#include "nn/module/enum.h"
#include "nn/module/expanding_array.h"
#include "nn/module/listed_module.h"

namespace ramet::nn {

namespace detail {
using conv_padding_mode_t =
    OneOf<enumtype::kZeros, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;
template <size_t D>
using conv_padding_t = std::variant<ExpandingArray<D>, enumtype::kValid, enumtype::kSame>;
}  // namespace detail

template <size_t D> struct RAMET_API ConvOptions {
  using padding_mode_t = detail::conv_padding_mode_t;
  /// Numbers, kSame or kValid.
  using padding_t = detail::conv_padding_t<D>;
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels),
        out_channels_(out_channels),
        kernel_size_(std::move(kernel_size)) {}
  RAMET_ARG(int64_t, in_channels);
  RAMET_ARG(int64_t, out_channels);
  RAMET_ARG(ExpandingArray<D>, kernel_size);
  RAMET_ARG(ExpandingArray<D>, stride) = 1;
  /// Zeros on both sides of each dimension; kValid: none; kSame: so many that the output has the
  /// input's size (stride 1).
  RAMET_ARG(padding_t, padding) = ExpandingArray<D>(0);

 public:
  auto padding(std::initializer_list<int64_t> list) -> decltype(*this) {
    return padding(padding_t(ExpandingArray<D>(list)));
  }
  RAMET_ARG(ExpandingArray<D>, dilation) = 1;
  RAMET_ARG(int64_t, groups) = 1;
  RAMET_ARG(bool, bias) = true;
  /// What `padding` puts around the input: zeros, or as pad says (autograd/ops/shape/pad.h).
  RAMET_ARG(padding_mode_t, padding_mode) = kZeros;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

namespace detail {
RAMET_API void check_channels(int64_t in_channels, int64_t out_channels, int64_t groups);
/// Both start uniform in +-1/sqrt(n), n the weight's elements but for dimension 0.
RAMET_API void start_convolution(const Tensor& weight, const Tensor& bias);
}  // namespace detail

/// Each output is the sum of a window of the input times `weight`, plus `bias`: a
/// cross-correlation. autograd/ops/layers/conv.h says the output's extents. `weight` is
/// [out_channels, in_channels / groups, kernel...], `bias` [out_channels] or undefined. Both start
/// uniform in +-1/sqrt(n), where n is the number of the weight's elements per output channel.
template <size_t D, class Derived>
class RAMET_API ConvNdImpl : public detail::ListedModule<Derived, ConvOptions<D>> {
 public:
  using detail::ListedModule<Derived, ConvOptions<D>>::options;
  ConvNdImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : ConvNdImpl(ConvOptions<D>(in_channels, out_channels, kernel_size)) {}
  explicit ConvNdImpl(const ConvOptions<D>& options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& input);

  Tensor weight, bias;
};

/// (N, C, L) or (C, L).
RAMET_LAYER_FROM(Conv1d, Conv1dOptions, ConvNdImpl, 1)
/// (N, C, H, W) or (C, H, W).
RAMET_LAYER_FROM(Conv2d, Conv2dOptions, ConvNdImpl, 2)
/// (N, C, D, H, W) or (C, D, H, W).
RAMET_LAYER_FROM(Conv3d, Conv3dOptions, ConvNdImpl, 3)

}  // namespace ramet::nn
