#include "nn/layers/image/conv.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops/make/factory.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/layers/image/conv_fields_internal.h"
#include "runtime/base/checked_size.h"

namespace ramet::nn {

namespace detail {

void check_channels(int64_t in, int64_t out, int64_t groups) {
  RAMET_CHECK(in > 0 && groups > 0 && out > 0, "Conv",
              "in_channels, groups and out_channels must be a positive integer: got ", in, ", ",
              groups, ", ", out);
  RAMET_CHECK(in % groups == 0, "Conv", "in_channels must be divisible by groups: got ", in,
              " and ", groups);
  RAMET_CHECK(out % groups == 0, "Conv", "out_channels must be divisible by groups: got ", out,
              " and ", groups);
}

void start_convolution(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double bound =
      1 / std::sqrt(static_cast<double>(std::get<0>(init::_calculate_fan_in_and_fan_out(weight))));
  init::uniform_(bias, -bound, bound);
}

}  // namespace detail

template <size_t D, class Derived>
ConvNdImpl<D, Derived>::ConvNdImpl(const ConvOptions<D>& options_)
    : ConvNdImpl::ListedModule(options_) {
  ConvNdImpl::reset();
}

template <size_t D, class Derived> void ConvNdImpl<D, Derived>::reset() {
  const int64_t in = options.in_channels(), out = options.out_channels(), groups = options.groups();
  detail::check_channels(in, out, groups);
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
  detail::start_convolution(weight, bias);
}

namespace {

// conv of the input, or of the input padded by padding_mode; conv itself then adds no padding.
template <size_t D, class Conv>
Tensor padded(const ConvOptions<D>& o, const Tensor& input, const Tensor& weight,
              const Tensor& bias, const Conv& conv) {
  const auto call = [&](const Tensor& x, const detail::conv_padding_t<D>& padding) {
    return conv(x, weight, bias, o.stride(), padding, o.dilation(), o.groups());
  };
  using Mode = functional::PadFuncOptions::mode_t;
  const Mode modes[] = {kConstant, kReflect, kReplicate, kCircular};
  const Mode& mode = modes[o.padding_mode().index()];
  if (holds_alternative<enumtype::kConstant>(mode)) return call(input, o.padding());
  std::vector<int64_t> around(2 * D);  // the last dimension first
  for (size_t d = 0; d < D; ++d) {
    int64_t both = 0, before = 0;
    if (std::holds_alternative<enumtype::kSame>(o.padding())) {
      // The odd one goes to the end.
      both = checked_mul("Conv", "padding", (*o.dilation())[d], (*o.kernel_size())[d] - 1);
      before = both / 2;
    } else if (const auto* numbers = std::get_if<ExpandingArray<D>>(&o.padding())) {
      before = (**numbers)[d];
      both = checked_mul("Conv", "padding", before, 2);
    }
    around[2 * (D - 1 - d)] = before;
    around[2 * (D - 1 - d) + 1] = both - before;
  }
  const bool none = std::all_of(around.begin(), around.end(), [](int64_t n) { return n == 0; });
  return call(none ? input : functional::detail::pad(input, around, mode, 0), ExpandingArray<D>(0));
}

}  // namespace

template <size_t D, class Derived> Tensor ConvNdImpl<D, Derived>::forward(const Tensor& input) {
  using namespace functional::detail;
  if constexpr (D == 1) return padded<D>(options, input, weight, bias, conv1d);
  else if constexpr (D == 2) return padded<D>(options, input, weight, bias, conv2d);
  else return padded<D>(options, input, weight, bias, conv3d);
}

#define RAMET_CONV(D)                           \
  template class ConvNdImpl<D, Conv##D##dImpl>; \
  RAMET_FIELDS(Conv##D##d, conv_fields(o))
RAMET_CONV(1)
RAMET_CONV(2)
RAMET_CONV(3)
#undef RAMET_CONV

}  // namespace ramet::nn
