// What nn's attention layers ask of scaled_dot_product_attention besides its result.
#pragma once
#include <utility>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// scaled_dot_product_attention by the matrix of scores, and that matrix after softmax and dropout:
/// [..., l, s]. `mask` may be undefined.
RAMET_API std::pair<Tensor, Tensor> attention_with_weights(const Tensor& query, const Tensor& key,
                                                           const Tensor& value, const Tensor& mask,
                                                           double dropout_p, bool is_causal);

}  // namespace autograd
}  // namespace ramet
