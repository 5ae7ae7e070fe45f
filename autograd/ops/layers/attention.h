// Scaled dot-product attention (Vaswani et al. 2017): LibTorch's function of the same name.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

/// softmax(scale query key^T + mask) value over the last two dimensions: query [..., l, e], key
/// [..., s, e], value [..., s, f], of one floating dtype and device, give [..., l, f]. `scale` is 1
/// / sqrt(e) unless given.
///
/// The mask: `attn_mask`, which broadcasts to [..., l, s] and holds bool (true takes part), float32
/// or query's dtype (added to the scores); or with is_causal row i sees the keys j <= i (not both).
/// A row that sees nothing gives 0. Probabilities are dropped with probability dropout_p and the
/// others divided by 1 - dropout_p, always: the function does not know about training. With
/// enable_gqa key and value may have fewer heads (dimension -3); each serves as many neighbouring
/// heads of query.
///
/// Without attn_mask and dropout, up to 4 dimensions of the same leading sizes and e = f <= 128,
/// the [l, s] matrix of scores never exists, forwards or backwards, and memory grows with l + s;
/// other calls are composed of products and a softmax. Operands may be views with any strides but
/// neighbouring columns. float16 and bfloat16 compute in float. Differentiable to any order, from
/// the second on with the matrix of scores.
RAMET_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                              const Tensor& value,
                                              const std::optional<Tensor>& attn_mask = {},
                                              double dropout_p = 0.0, bool is_causal = false,
                                              std::optional<double> scale = {},
                                              bool enable_gqa = false);

}  // namespace ramet
