// Values of tensors in messages.
#pragma once
#include <string>

#include "autograd/tensor.h"

namespace ramet::distributed::detail {

/// Row-major, wherever the tensor lies.
std::string bytes_of(const Tensor& t);
/// In host memory, with the size and dtype of `like`. An Error that names `what` where there are
/// more bytes or fewer.
Tensor tensor_of(const std::string& bytes, const Tensor& like, const std::string& what);

}  // namespace ramet::distributed::detail
