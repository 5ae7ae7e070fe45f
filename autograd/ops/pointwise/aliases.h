// Functions under LibTorch's other names; the comment of the original function says what each does.
// autograd/ops/shape/cat.h has the other names of joins, autograd/ops/pointwise/where.h that of
// clamp.
#pragma once
#include <optional>
#include <string>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/pointwise/aliases.inc"

/// The method size(), as a function.
inline int64_t size(const Tensor& self, int64_t dim) { return self.size(dim); }
/// The method view(). LibTorch calls it internally where nothing else shares the memory.
inline Tensor _unsafe_view(const Tensor& self, IntArrayRef size) { return self.view(size); }

}  // namespace ramet
