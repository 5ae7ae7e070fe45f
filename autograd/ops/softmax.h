// Softmax and log-softmax: LibTorch's functions of the same names. Formula and extreme values:
// kernels/rows/softmax.h.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

/// exp(x) / sum exp(x) along `dim`; cast to `dtype` first where one is given. Floating point only,
/// unless the tensor is empty.
RAMET_API Tensor softmax(const Tensor& self, int64_t dim,
                         std::optional<ScalarType> dtype = std::nullopt);
/// x - log sum exp(x) along `dim`.
RAMET_API Tensor log_softmax(const Tensor& self, int64_t dim,
                             std::optional<ScalarType> dtype = std::nullopt);
/// Into `out` of the result's dtype, resized where its shape differs; no history.
RAMET_API Tensor& softmax_out(Tensor& out, const Tensor& self, int64_t dim,
                              std::optional<ScalarType> dtype = std::nullopt);
RAMET_API Tensor& log_softmax_out(Tensor& out, const Tensor& self, int64_t dim,
                                  std::optional<ScalarType> dtype = std::nullopt);

namespace autograd {
/// The gradient of x from that of y = softmax(x) (log_softmax with `log`). Differentiable in both
/// arguments.
RAMET_API Tensor softmax_backward(const Tensor& grad, const Tensor& y, int64_t dim, bool log);
}  // namespace autograd

}  // namespace ramet
