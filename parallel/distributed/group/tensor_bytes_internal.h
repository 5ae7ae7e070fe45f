// Converts tensors' values to and from bytes for messages.
#pragma once
#include <string>

#include "autograd/tensor.h"

namespace ramet::distributed::detail {

/// The values in row-major order, wherever the tensor is.
std::string bytes_of(const Tensor& t);
/// A tensor in host memory with the size and dtype of `like`. An Error that names `what` if the
/// number of bytes differs.
Tensor tensor_of(const std::string& bytes, const Tensor& like, const std::string& what);

}  // namespace ramet::distributed::detail
