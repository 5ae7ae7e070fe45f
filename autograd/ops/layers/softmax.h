// Softmax and log-softmax: LibTorch's functions of the same names. Formula and extreme values:
// kernels/rows/softmax.h.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/softmax.inc"

namespace autograd {
/// The gradient of x from the gradient of y = softmax(x) (log_softmax with `log`). Differentiable
/// in both arguments.
RAMET_API Tensor softmax_backward(const Tensor& grad, const Tensor& y, int64_t dim, bool log);
}  // namespace autograd

}  // namespace ramet
