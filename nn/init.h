// Initial values of parameters. Each fills its argument in place, records nothing, and returns it.
#pragma once
#include <tuple>
#include <variant>

#include "autograd/tensor.h"
#include "nn/module/enum.h"

namespace ramet {
namespace nn {
namespace init {

using NonlinearityType =
    OneOf<enumtype::kLinear, enumtype::kConv1D, enumtype::kConv2D, enumtype::kConv3D,
                 enumtype::kConvTranspose1D, enumtype::kConvTranspose2D, enumtype::kConvTranspose3D,
                 enumtype::kSigmoid, enumtype::kTanh, enumtype::kReLU, enumtype::kLeakyReLU>;
using FanModeType = OneOf<enumtype::kFanIn, enumtype::kFanOut>;

/// The factor that keeps a layer's variance through a nonlinearity; `param` is leaky ReLU's slope.
RAMET_API double calculate_gain(NonlinearityType nonlinearity, double param = 0.01);

/// Every element becomes the value, 1, or 0. No history is recorded, as in all functions here, and
/// the tensor is returned:
RAMET_API Tensor constant_(Tensor tensor, Scalar value);
RAMET_API Tensor ones_(Tensor tensor);
RAMET_API Tensor zeros_(Tensor tensor);
/// Uniform on [low, high).
RAMET_API Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
/// Normal with this mean and standard deviation.
RAMET_API Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
/// The identity matrix; two dimensions.
RAMET_API Tensor eye_(Tensor matrix);
/// A convolution that passes on min(in, out) channels unchanged; three to five dimensions.
RAMET_API Tensor dirac_(Tensor tensor);
/// Makes rows (or columns, where these are fewer) orthonormal, times `gain`: Saxe et al. 2013. The
/// tensor has at least two dimensions; all after the first count as one.
RAMET_API Tensor orthogonal_(Tensor tensor, double gain = 1.0);
/// In each column the fraction `sparsity` of the elements is zero, the others are normal.
RAMET_API Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01);

/// He et al. 2015: variance gain^2 / fan, with the gain of `nonlinearity` and slope `a`.
RAMET_API Tensor kaiming_uniform_(Tensor tensor, double a = 0, FanModeType mode = kFanIn,
                                  NonlinearityType nonlinearity = kLeakyReLU);
/// The same, normal instead of uniform.
RAMET_API Tensor kaiming_normal_(Tensor tensor, double a = 0, FanModeType mode = kFanIn,
                                 NonlinearityType nonlinearity = kLeakyReLU);
/// Glorot and Bengio 2010: variance 2 gain^2 / (fan_in + fan_out).
RAMET_API Tensor xavier_uniform_(Tensor tensor, double gain = 1.0);
/// The same, normal instead of uniform.
RAMET_API Tensor xavier_normal_(Tensor tensor, double gain = 1.0);

/// Inputs and outputs of one unit: of (out, in, k...) in * k... and out * k.... At least two
/// dimensions.
RAMET_API std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor);

}  // namespace init
}  // namespace nn
}  // namespace ramet
