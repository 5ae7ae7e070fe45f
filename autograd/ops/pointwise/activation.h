// Activations beyond those of autograd/ops/pointwise/unary.h: LibTorch's functions of the same
// names. Floating-point types only. Out forms as in autograd/ops/pointwise/unary.h.
#pragma once
#include <string>

#include "autograd/tensor.h"

namespace ramet {

#define RAMET_ACTIVATION(name, Row, params, args) RAMET_FUNCTION(name, params, args, RAMET_OWN_OUT)
#define RAMET_DERIVATIVE(name, Row, params, args) RAMET_FUNCTION(name, params, args)
#include "autograd/ops/pointwise/activation.inc"
#undef RAMET_ACTIVATION
#undef RAMET_DERIVATIVE

/// x Phi(x) (Hendrycks and Gimpel 2016). approximate: "none" (with erf) or "tanh".
RAMET_API Tensor gelu(const Tensor& self, const std::string& approximate = "none");
RAMET_API Tensor& gelu_out(Tensor& out, const Tensor& self,
                           const std::string& approximate = "none");
RAMET_API Tensor gelu_backward(const Tensor& grad_output, const Tensor& self,
                               const std::string& approximate = "none");
RAMET_API Tensor& leaky_relu_(Tensor& self, const Scalar& negative_slope = 0.01);
RAMET_API Tensor leaky_relu_backward(const Tensor& grad_output, const Tensor& self,
                                     const Scalar& negative_slope, bool self_is_result);
/// grad where x > threshold, 0 elsewhere. Differentiable in grad.
RAMET_API Tensor threshold_backward(const Tensor& grad, const Tensor& self,
                                    const Scalar& threshold);

}  // namespace ramet
