// Views of a part of a tensor, and lists of them: LibTorch's functions of the same names.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/shape/view_parts.inc"

namespace autograd {
/// Where a part begins that starts at place `at` of dimension d, in elements. Strides of dimensions
/// of one place and of empty tensors may be anything: nothing is multiplied by them.
RAMET_API int64_t offset_of(const Tensor& x, size_t d, int64_t at);
}  // namespace autograd

}  // namespace ramet
