// Copies that move channels between pixels (Shi et al. 2016) or between groups (Zhang et al. 2018):
// LibTorch's functions of the same names. Any dtype; differentiable to any order.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/shuffle.inc"

/// channel_shuffle under LibTorch's other name.
RAMET_API Tensor native_channel_shuffle(const Tensor& self, int64_t groups);

}  // namespace ramet
