// Conv1d, Conv2d.
#pragma once
#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/enum.h"
#include "nn/module/expanding_array.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

namespace detail {
using conv_padding_mode_t =
    std::variant<enumtype::kZeros, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;
template <size_t D>
using conv_padding_t = std::variant<ExpandingArray<D>, enumtype::kValid, enumtype::kSame>;
}  // namespace detail

template <size_t D> struct ConvOptions {
  using padding_mode_t = detail::conv_padding_mode_t;
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
  /// Only kZeros so far; another one is an Error at construction.
  RAMET_ARG(padding_mode_t, padding_mode) = kZeros;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;

/// What the convolutions share. `weight` is (out_channels, in_channels / groups, kernel...), `bias`
/// (out_channels) or undefined. Both start uniform in +-1/sqrt(in_channels / groups * kernel
/// elements).
template <size_t D, class Derived> class ConvNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvNdImpl(const ConvOptions<D>& options_);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  ConvOptions<D> options;
  Tensor weight, bias;
};

/// (N, C, L) or (C, L).
class RAMET_API Conv1dImpl : public ConvNdImpl<1, Conv1dImpl> {
 public:
  Conv1dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<1> kernel_size);
  explicit Conv1dImpl(const Conv1dOptions& options_);
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<Conv1dImpl>;
RAMET_MODULE(Conv1d);

/// (N, C, H, W) or (C, H, W).
class RAMET_API Conv2dImpl : public ConvNdImpl<2, Conv2dImpl> {
 public:
  Conv2dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<2> kernel_size);
  explicit Conv2dImpl(const Conv2dOptions& options_);
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<Conv2dImpl>;
RAMET_MODULE(Conv2d);

extern template class ConvNdImpl<1, Conv1dImpl>;
extern template class ConvNdImpl<2, Conv2dImpl>;

}  // namespace ramet::nn
