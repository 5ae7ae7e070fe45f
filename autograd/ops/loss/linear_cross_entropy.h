// Linear layer and cross entropy in one function, for models with many classes: PyTorch's
// torch.nn.functional.linear_cross_entropy, which LibTorch lacks.
#pragma once
#include "autograd/ops/loss/cross_entropy.h"  // Reduction
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/loss/linear_cross_entropy.inc"

}  // namespace ramet
