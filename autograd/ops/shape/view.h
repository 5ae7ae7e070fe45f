// Views of the same memory: LibTorch's functions of the same names. All are differentiable to any
// order. An in-place operation on a view keeps the histories of base and views right (Note
// [In-place operations on views]).
#pragma once
#include "autograd/ops/shape/view_parts.h"
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/shape/view.inc"

/// Repeats dimensions of extent 1 without copying; -1 keeps an extent; new dimensions come first.
RAMET_API Tensor expand(const Tensor& self, IntArrayRef size);
/// The method as_strided_, as a function.
RAMET_API const Tensor& as_strided_(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                                    std::optional<int64_t> storage_offset = std::nullopt);
/// All tensors expanded to their common shape.
RAMET_API std::vector<Tensor> broadcast_tensors(TensorList tensors);

/// The common shape of two shapes under broadcasting. An Error that names `op` and both where there
/// is none.
RAMET_API std::vector<int64_t> broadcast_sizes(const char* op, IntArrayRef a, IntArrayRef b);

}  // namespace ramet
