// Functions under LibTorch's other names; the comment of the original function says what each does.
// autograd/ops/shape/cat.h has the other names of joins, autograd/ops/pointwise/where.h that of
// clamp.
#pragma once
#include <optional>
#include <string>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/pointwise/aliases.inc"

// In-place functions, where LibTorch has functions as well as methods.
RAMET_API Tensor& negative_(Tensor& self);
RAMET_API Tensor& fix_(Tensor& self);
RAMET_API Tensor& arcsin_(Tensor& self);
RAMET_API Tensor& arccos_(Tensor& self);
RAMET_API Tensor& arctan_(Tensor& self);
RAMET_API Tensor& arcsinh_(Tensor& self);
RAMET_API Tensor& arccosh_(Tensor& self);
RAMET_API Tensor& arctanh_(Tensor& self);

/// The method size(), as a function.
inline int64_t size(const Tensor& self, int64_t dim) { return self.size(dim); }
/// The method view(). LibTorch calls it internally where nothing else shares the memory.
inline Tensor _unsafe_view(const Tensor& self, IntArrayRef size) { return self.view(size); }

}  // namespace ramet
