// Parameters as one vector, and back.
#pragma once
#include <vector>

#include "autograd/tensor.h"

namespace ramet::nn::utils {

/// The elements of all parameters, one after the other; differentiable. An Error if they are on
/// several devices.
RAMET_API Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
/// Each parameter becomes (set_data) the next numel() elements of `vec`. An Error, before anything
/// is changed, if `vec` has not exactly as many elements as the parameters.
RAMET_API void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters);

}  // namespace ramet::nn::utils
