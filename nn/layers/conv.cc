#include "nn/layers/conv.h"

#include <cmath>
#include <ostream>

#include "autograd/ops/factory.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

template <size_t D, class Derived>
ConvNdImpl<D, Derived>::ConvNdImpl(const ConvOptions<D>& options_) : options(options_) {
  ConvNdImpl::reset();
}

template <size_t D, class Derived> void ConvNdImpl<D, Derived>::reset() {
  const int64_t in = options.in_channels(), out = options.out_channels(), groups = options.groups();
  RAMET_CHECK(in > 0 && groups > 0 && out > 0, "Conv",
              "in_channels, groups and out_channels must be a positive integer: got ", in, ", ",
              groups, ", ", out);
  RAMET_CHECK(in % groups == 0, "Conv", "in_channels must be divisible by groups: got ", in,
              " and ", groups);
  RAMET_CHECK(out % groups == 0, "Conv", "out_channels must be divisible by groups: got ", out,
              " and ", groups);
  if (!std::holds_alternative<enumtype::kZeros>(options.padding_mode()))
    throw NotImplementedError("[Conv] padding_mode: got " +
                              enumtype::get_enum_name(options.padding_mode()) +
                              ", expected kZeros");
  if (std::holds_alternative<enumtype::kSame>(options.padding()))
    for (const int64_t s : *options.stride())
      RAMET_CHECK(s == 1, "Conv",
                  "padding='same' is not supported for strided convolutions: got stride ",
                  options.stride());

  std::vector<int64_t> shape{out, in / groups};
  shape.insert(shape.end(), options.kernel_size()->begin(), options.kernel_size()->end());
  weight = this->register_parameter("weight", ramet::empty(shape));
  bias = options.bias() ? this->register_parameter("bias", empty({out}))
                        : this->register_parameter("bias", Tensor(), /*requires_grad=*/false);
  reset_parameters();
}

template <size_t D, class Derived> void ConvNdImpl<D, Derived>::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double bound =
      1 / std::sqrt(static_cast<double>(std::get<0>(init::_calculate_fan_in_and_fan_out(weight))));
  init::uniform_(bias, -bound, bound);
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Conv") << D << "d(" << options.in_channels() << ", "
         << options.out_channels() << ", kernel_size=" << options.kernel_size()
         << ", stride=" << options.stride();
  if (std::holds_alternative<enumtype::kValid>(options.padding())) {
    stream << ", padding='valid'";
  } else if (std::holds_alternative<enumtype::kSame>(options.padding())) {
    stream << ", padding='same'";
  } else if (const auto& padding = std::get<ExpandingArray<D>>(options.padding());
             *padding != *ExpandingArray<D>(0)) {
    stream << ", padding=" << padding;
  }
  if (*options.dilation() != *ExpandingArray<D>(1)) stream << ", dilation=" << options.dilation();
  if (options.groups() != 1) stream << ", groups=" << options.groups();
  if (!options.bias()) stream << ", bias=" << std::boolalpha << false;
  stream << ")";
}

template class ConvNdImpl<1, Conv1dImpl>;
template class ConvNdImpl<2, Conv2dImpl>;

Conv1dImpl::Conv1dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<1> kernel_size)
    : Conv1dImpl(Conv1dOptions(in_channels, out_channels, kernel_size)) {}
Conv1dImpl::Conv1dImpl(const Conv1dOptions& options_) : ConvNdImpl(options_) {}
Tensor Conv1dImpl::forward(const Tensor& input) {
  return functional::detail::conv1d(input, weight, bias, options.stride(), options.padding(),
                                    options.dilation(), options.groups());
}
Conv2dImpl::Conv2dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<2> kernel_size)
    : Conv2dImpl(Conv2dOptions(in_channels, out_channels, kernel_size)) {}
Conv2dImpl::Conv2dImpl(const Conv2dOptions& options_) : ConvNdImpl(options_) {}
Tensor Conv2dImpl::forward(const Tensor& input) {
  return functional::detail::conv2d(input, weight, bias, options.stride(), options.padding(),
                                    options.dilation(), options.groups());
}

template class Cloneable<Conv1dImpl>;
template class Cloneable<Conv2dImpl>;

}  // namespace ramet::nn
