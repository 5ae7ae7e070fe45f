// Dropout (Srivastava et al. 2014): LibTorch's functions of the same names. They draw from the
// default generator of the input's device.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// When training, each element becomes 0 with probability p, else input / (1 - p). Otherwise the
/// result is input itself, of any dtype.
RAMET_API Tensor dropout(const Tensor& input, double p, bool train);
RAMET_API Tensor& dropout_(Tensor& self, double p, bool train);
/// The same for whole channels (chosen by dimensions 0 and 1) of a tensor of at least 2 dimensions.
RAMET_API Tensor feature_dropout(const Tensor& input, double p, bool train);
RAMET_API Tensor& feature_dropout_(Tensor& self, double p, bool train);
/// Dropout for self-normalising networks (Klambauer et al. 2017). Dropped elements become selu's
/// value at -infinity. Then all are scaled and shifted so that mean 0 and variance 1 stay; with p =
/// 1 all are 0.
RAMET_API Tensor alpha_dropout(const Tensor& input, double p, bool train);
RAMET_API Tensor& alpha_dropout_(Tensor& self, double p, bool train);
/// alpha_dropout for whole channels, as feature_dropout.
RAMET_API Tensor feature_alpha_dropout(const Tensor& input, double p, bool train);
RAMET_API Tensor& feature_alpha_dropout_(Tensor& self, double p, bool train);
/// grad * mask * scale: the derivative of dropout. Differentiable in grad.
RAMET_API Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask,
                                         double scale);

}  // namespace ramet
