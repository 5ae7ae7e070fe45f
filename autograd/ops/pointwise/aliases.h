// Functions by LibTorch's other names: what each does stands at the one it is named after. Joins
// have theirs in autograd/ops/shape/cat.h, clamp's is in autograd/ops/pointwise/where.h.
#pragma once
#include <optional>
#include <string>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/pointwise/aliases.inc"

// In-place functions, of those that LibTorch has as functions, too.
RAMET_API Tensor& negative_(Tensor& self);
RAMET_API Tensor& fix_(Tensor& self);
RAMET_API Tensor& arcsin_(Tensor& self);
RAMET_API Tensor& arccos_(Tensor& self);
RAMET_API Tensor& arctan_(Tensor& self);
RAMET_API Tensor& arcsinh_(Tensor& self);
RAMET_API Tensor& arccosh_(Tensor& self);
RAMET_API Tensor& arctanh_(Tensor& self);

/// The method size.
inline int64_t size(const Tensor& self, int64_t dim) { return self.size(dim); }
/// The method view; what LibTorch calls inside where it knows that nothing else shows the memory.
inline Tensor _unsafe_view(const Tensor& self, IntArrayRef size) { return self.view(size); }

}  // namespace ramet
