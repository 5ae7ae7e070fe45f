// Activations that autograd/ops/unary.h does not have: LibTorch's functions of the same names.
// Floating-point types only. Out forms as in autograd/ops/unary.h.
#pragma once
#include <string>

#include "autograd/tensor.h"

namespace ramet {

/// x Phi(x) (Hendrycks and Gimpel 2016). approximate: "none" (by erf) or "tanh".
RAMET_API Tensor gelu(const Tensor& self, const std::string& approximate = "none");
RAMET_API Tensor& gelu_(Tensor& self, const std::string& approximate = "none");
RAMET_API Tensor& gelu_out(Tensor& out, const Tensor& self,
                           const std::string& approximate = "none");
RAMET_API Tensor gelu_backward(const Tensor& grad_output, const Tensor& self,
                               const std::string& approximate = "none");
/// x where x > 0, else negative_slope * x.
RAMET_API Tensor leaky_relu(const Tensor& self, const Scalar& negative_slope = 0.01);
RAMET_API Tensor& leaky_relu_(Tensor& self, const Scalar& negative_slope = 0.01);
RAMET_API Tensor& leaky_relu_out(Tensor& out, const Tensor& self,
                                 const Scalar& negative_slope = 0.01);
RAMET_API Tensor leaky_relu_backward(const Tensor& grad_output, const Tensor& self,
                                     const Scalar& negative_slope, bool self_is_result);
/// log(1 + exp(beta x)) / beta; x itself where beta x > threshold.
RAMET_API Tensor softplus(const Tensor& self, const Scalar& beta = 1, const Scalar& threshold = 20);
RAMET_API Tensor& softplus_out(Tensor& out, const Tensor& self, const Scalar& beta = 1,
                               const Scalar& threshold = 20);
RAMET_API Tensor softplus_backward(const Tensor& grad_output, const Tensor& self,
                                   const Scalar& beta, const Scalar& threshold);
/// x sigmoid(x).
RAMET_API Tensor silu(const Tensor& self);
RAMET_API Tensor& silu_(Tensor& self);
RAMET_API Tensor& silu_out(Tensor& out, const Tensor& self);
RAMET_API Tensor silu_backward(const Tensor& grad_output, const Tensor& self);

/// grad * (1 - y^2): the derivative of tanh at its result y. Differentiable in both.
RAMET_API Tensor tanh_backward(const Tensor& grad, const Tensor& output);
/// grad * y * (1 - y).
RAMET_API Tensor sigmoid_backward(const Tensor& grad, const Tensor& output);
/// grad where x > threshold, 0 elsewhere. Differentiable in grad.
RAMET_API Tensor threshold_backward(const Tensor& grad, const Tensor& self,
                                    const Scalar& threshold);

}  // namespace ramet
