// A form of scaled_dot_product_attention for nn's attention layers, which need its weights too.
#pragma once
#include <utility>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// scaled_dot_product_attention by the matrix of scores. Also returns that matrix [..., l, s] after
/// softmax and dropout. `mask` may be undefined.
RAMET_API std::pair<Tensor, Tensor> attention_with_weights(const Tensor& query, const Tensor& key,
                                                           const Tensor& value, const Tensor& mask,
                                                           double dropout_p, bool is_causal);

}  // namespace autograd
}  // namespace ramet
