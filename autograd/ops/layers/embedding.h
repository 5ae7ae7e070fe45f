// Embedding: LibTorch's function of the same name.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// The rows of the matrix `weight` that `indices` name (int64 or int32, any shape). The result has
/// sizes indices.sizes() + [weight.size(1)]. The row `padding_idx` gets no gradient. With
/// scale_grad_by_freq a row's gradient is divided by the number of indices that name it. Gradients
/// are dense, and are added in the order of `indices`. Sparse gradients are not implemented.
RAMET_API Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1,
                           bool scale_grad_by_freq = false, bool sparse = false);
/// Writes into `out`, which has weight's dtype and is resized where its shape differs; no history.
RAMET_API Tensor& embedding_out(Tensor& out, const Tensor& weight, const Tensor& indices,
                                int64_t padding_idx = -1, bool scale_grad_by_freq = false,
                                bool sparse = false);

}  // namespace ramet
