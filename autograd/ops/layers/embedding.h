// Embedding: LibTorch's function of the same name.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// Rows of the matrix `weight` named by `indices` (int64 or int32, any shape): sizes
/// indices.sizes() + [weight.size(1)]. The row `padding_idx` gets no gradient; with
/// scale_grad_by_freq a row's gradient is divided by how often it was named. Gradients are dense
/// and added in the order of `indices`. Sparse gradients are not implemented.
RAMET_API Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1,
                           bool scale_grad_by_freq = false, bool sparse = false);
/// Into `out` of weight's dtype, resized where its shape differs; no history.
RAMET_API Tensor& embedding_out(Tensor& out, const Tensor& weight, const Tensor& indices,
                                int64_t padding_idx = -1, bool scale_grad_by_freq = false,
                                bool sparse = false);

}  // namespace ramet
