// MultiheadAttention and its function: Vaswani et al. 2017.
#pragma once
#include <tuple>

#include "nn/layers/basic/linear.h"
#include "nn/module/any_module.h"
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  RAMET_ARG(int64_t, embed_dim);
  /// Divides embed_dim.
  RAMET_ARG(int64_t, num_heads);
  /// Of probabilities, in training.
  RAMET_ARG(double, dropout) = 0.0;
  /// Of the projections.
  RAMET_ARG(bool, bias) = true;
  /// One more key and value for all queries, which are parameters.
  RAMET_ARG(bool, add_bias_kv) = false;
  /// One more key and value of zeros.
  RAMET_ARG(bool, add_zero_attn) = false;
  /// Features of keys and values; embed_dim by default.
  RAMET_ARG(int64_t, kdim);
  RAMET_ARG(int64_t, vdim);
  /// As in upstream's Python: [batch, rows, features] instead of [rows, batch, features].
  RAMET_ARG(bool, batch_first) = false;
};

/// concat(head_1 ... head_h) out_proj^T + bias, head_i = softmax(q_i k_i^T / sqrt(head_dim) + mask)
/// v_i, with q, k and v projections of query, key and value.
///
/// Parameters, named and drawn as PyTorch's: in_proj_weight (3 embed_dim, embed_dim), Glorot's
/// uniform. Where kdim or vdim differs from embed_dim, q_proj_weight, k_proj_weight and
/// v_proj_weight stand in its place. in_proj_bias: zeros. out_proj. bias_k and bias_v (1, 1,
/// embed_dim): Glorot's normal.
class RAMET_API MultiheadAttentionImpl
    : public detail::ListedModule<MultiheadAttentionImpl, MultiheadAttentionOptions> {
 public:
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options_);
  void reset() override;
  void _reset_parameters();

  /// functional::multi_head_attention_forward says what the arguments are.
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true,
                                     bool is_causal = false);

  /// Have key and value as many features as the query, so that there is one in_proj_weight?
  bool _qkv_same_embed_dim = true;
  Tensor in_proj_weight, in_proj_bias, bias_k, bias_v;
  Linear out_proj = nullptr;
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;
  /// embed_dim / num_heads.
  int64_t head_dim = 0;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
RAMET_LISTED_MODULE(MultiheadAttention, MultiheadAttentionOptions)

namespace functional {

struct RAMET_API MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads,
                                       Tensor in_proj_weight, Tensor in_proj_bias, Tensor bias_k,
                                       Tensor bias_v, bool add_zero_attn, double dropout_p,
                                       Tensor out_proj_weight, Tensor out_proj_bias);
  /// Features of the query; another number is an Error.
  RAMET_ARG(int64_t, embed_dim_to_check);
  RAMET_ARG(int64_t, num_heads);
  /// As the parameters of MultiheadAttention that are called so; undefined: none:
  RAMET_ARG(Tensor, in_proj_weight);
  RAMET_ARG(Tensor, in_proj_bias);
  RAMET_ARG(Tensor, bias_k);
  RAMET_ARG(Tensor, bias_v);
  RAMET_ARG(bool, add_zero_attn);
  /// Of probabilities, in training.
  RAMET_ARG(double, dropout_p);
  /// The last projection: (embed_dim, embed_dim), and (embed_dim) or undefined:
  RAMET_ARG(Tensor, out_proj_weight);
  RAMET_ARG(Tensor, out_proj_bias);
  RAMET_ARG(bool, training) = true;
  RAMET_ARG(Tensor, key_padding_mask);
  RAMET_ARG(bool, need_weights) = true;
  RAMET_ARG(Tensor, attn_mask);
  /// Whether q_proj_weight, k_proj_weight and v_proj_weight stand instead of in_proj_weight.
  RAMET_ARG(bool, use_separate_proj_weight) = false;
  /// As the parameters of MultiheadAttention that are called so:
  RAMET_ARG(Tensor, q_proj_weight);
  RAMET_ARG(Tensor, k_proj_weight);
  RAMET_ARG(Tensor, v_proj_weight);
  /// Projected keys and values, instead of those of the arguments:
  RAMET_ARG(Tensor, static_k);
  RAMET_ARG(Tensor, static_v);
  RAMET_ARG(bool, average_attn_weights) = true;
  /// As in upstream's Python: row i sees the keys j <= i, and attn_mask is not read.
  RAMET_ARG(bool, is_causal) = false;
  /// As MultiheadAttentionOptions's.
  RAMET_ARG(bool, batch_first) = false;
};

/// Inputs: query [rows, batch, embed_dim], key [keys, batch, kdim] and value [keys, batch, vdim],
/// or all without a batch (2 dimensions). The first result is [rows, batch, embed_dim]. With
/// need_weights the second holds the probabilities after dropout. These are [batch, rows, keys],
/// the heads' mean, or [batch, heads, rows, keys] without average_attn_weights. The keys that
/// bias_k and add_zero_attn add come last. static_k and static_v [batch * heads, keys, head_dim]
/// replace the projections of key and value.
///
/// Masks: attn_mask [rows, keys] or [batch * heads, rows, keys], key_padding_mask [batch, keys].
/// Float values are added to the scores. In both masks true (bool) or not 0 (uint8) excludes a key,
/// as upstream's documentation says (LibTorch's code adds a bool attn_mask). Where all keys of a
/// row are excluded, its probabilities are 0; LibTorch has NaN there.
///
/// Without need_weights it is scaled_dot_product_attention. Without masks and dropout that runs its
/// fused kernels, also with is_causal; they need no memory for scores. Where query, key and value
/// are one tensor, one product projects all three.
RAMET_API std::tuple<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const MultiheadAttentionForwardFuncOptions& options);

namespace detail {
RAMET_API std::tuple<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value, int64_t embed_dim_to_check,
    int64_t num_heads, const Tensor& in_proj_weight, const Tensor& in_proj_bias,
    const Tensor& bias_k, const Tensor& bias_v, bool add_zero_attn, double dropout_p,
    const Tensor& out_proj_weight, const Tensor& out_proj_bias, bool training = true,
    const Tensor& key_padding_mask = {}, bool need_weights = true, const Tensor& attn_mask = {},
    bool use_separate_proj_weight = false, const Tensor& q_proj_weight = {},
    const Tensor& k_proj_weight = {}, const Tensor& v_proj_weight = {}, const Tensor& static_k = {},
    const Tensor& static_v = {}, bool average_attn_weights = true, bool is_causal = false,
    bool batch_first = false);
}  // namespace detail

}  // namespace functional
}  // namespace ramet::nn
