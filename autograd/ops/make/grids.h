// Grids of coordinates and combinations of elements: LibTorch's functions of the same names,
// differentiable to any order.
#pragma once
#include <string_view>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

/// Takes vectors (a number counts as one element) of n0, n1, ... elements, of one dtype. Returns as
/// many tensors of [n0, n1, ...], which are views; tensor i varies along dimension i. This is the
/// indexing "ij"; with "xy" the first two dimensions change places.
RAMET_API std::vector<Tensor> meshgrid(TensorList tensors);
RAMET_API std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing);
/// All ways to choose one element of each vector, [n0 * n1 * ..., vectors]; the last one varies
/// fastest. A single vector is returned as it is.
RAMET_API Tensor cartesian_prod(TensorList tensors);
/// All choices of r elements of a vector in its order, [choices, r]: each element once, or any
/// number of times `with_replacement`. The time is linear in the result's size, and the host reads
/// nothing. [0] for r = 0.
RAMET_API Tensor combinations(const Tensor& self, int64_t r = 2, bool with_replacement = false);

}  // namespace ramet
