// The checks of embedding_bag, for callers that change its weight first. Private to autograd and
// nn.
#pragma once
#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// Throws the errors that embedding_bag (autograd/ops/layers/embedding_bag.h) would throw for these
/// arguments. Errors that depend on values of a GPU's tensor are reported at the next wait for it.
RAMET_API void check_embedding_bag(const Tensor& weight, const Tensor& indices,
                                   const Tensor& offsets, int64_t mode, bool sparse,
                                   const Tensor& per_sample_weights, bool include_last_offset,
                                   std::optional<int64_t> padding_idx);

}  // namespace autograd
}  // namespace ramet
