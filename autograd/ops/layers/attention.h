// Scaled dot-product attention (Vaswani et al. 2017): LibTorch's function of the same name.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

/// softmax(scale query key^T + mask) value over the last two dimensions: query [..., l, e], key
/// [..., s, e] and value [..., s, f] give [..., l, f]. They share one floating dtype and one
/// device. `scale` is 1 / sqrt(e) unless given.
///
/// The mask is one of two. `attn_mask` broadcasts to [..., l, s] and holds bool (true takes part),
/// or float32 or query's dtype (added to the scores). With is_causal, row i attends to the keys j
/// <= i. A row that attends to no key gives 0. Probabilities are dropped with probability
/// dropout_p, and the others are divided by 1 - dropout_p. This happens always: the function does
/// not know about training. With enable_gqa, key and value may have fewer heads (dimension -3);
/// each head serves the same number of neighbouring heads of query.
///
/// The function avoids the [l, s] matrix of scores, forwards and backwards, so memory grows with l
/// + s. The conditions are: no attn_mask, no dropout, up to 4 dimensions of the same leading sizes,
/// and e = f <= 128. Other calls are composed of products and a softmax. Operands may be views with
/// any strides, except that columns must be adjacent. float16 and bfloat16 compute in float.
/// Differentiable to any order; from the second order on with the matrix of scores.
RAMET_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                              const Tensor& value,
                                              const std::optional<Tensor>& attn_mask = {},
                                              double dropout_p = 0.0, bool is_causal = false,
                                              std::optional<double> scale = {},
                                              bool enable_gqa = false);

}  // namespace ramet
