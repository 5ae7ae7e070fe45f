// The list of the options that convolutions and transposed convolutions have in common.
#pragma once
#include <vector>

#include "nn/module/listed_module_internal.h"

namespace ramet::nn::detail {

/// In the order in which LibTorch prints.
template <class Options> std::vector<Field> conv_fields(Options& o) {
  return {{"in_channels", &o.in_channels(), kBare | kCount},
          {"out_channels", &o.out_channels(), kBare | kCount},
          {"kernel_size", &o.kernel_size(), kCount},
          {"stride", &o.stride(), kPositive},
          {"padding", &o.padding(), kIfChanged | kNotNegative},
          {"dilation", &o.dilation(), kIfChanged | kPositive},
          {"groups", &o.groups(), kIfChanged | kPositive},
          {"bias", &o.bias(), kIfChanged},
          {"padding_mode", &o.padding_mode(), kIfChanged}};
}

}  // namespace ramet::nn::detail
