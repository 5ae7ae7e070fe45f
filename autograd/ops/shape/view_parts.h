// Views of a part of a tensor, and lists of them: LibTorch's functions of the same names.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/shape/view_parts.inc"

namespace autograd {
/// The start, in elements, of a part that begins at position `at` of dimension d. A dimension of
/// one position, or of an empty tensor, may have any stride: it is not multiplied by it.
RAMET_API int64_t offset_of(const Tensor& x, size_t d, int64_t at);
}  // namespace autograd

}  // namespace ramet
