// The checks of embedding_bag, for those who change its weight first. Private to autograd and nn.
#pragma once
#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// Throws what embedding_bag (autograd/ops/layers/embedding_bag.h) of these would refuse; what
/// depends on values of a GPU's tensor is reported when somebody waits for it.
RAMET_API void check_embedding_bag(const Tensor& weight, const Tensor& indices,
                                   const Tensor& offsets, int64_t mode, bool sparse,
                                   const Tensor& per_sample_weights, bool include_last_offset,
                                   std::optional<int64_t> padding_idx);

}  // namespace autograd
}  // namespace ramet
