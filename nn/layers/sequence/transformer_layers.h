// TransformerEncoderLayer, TransformerDecoderLayer: Vaswani et al. 2017.
#pragma once
#include <functional>
#include <variant>

#include "nn/layers/basic/dropout.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "nn/module/enum.h"

namespace ramet::nn {

/// What stands between the two linear layers.
using activation_t =
    std::variant<enumtype::kReLU, enumtype::kGELU, std::function<Tensor(const Tensor&)>>;

/// Of both kinds of layers. batch_first and norm_first are upstream's Python's.
struct RAMET_API TransformerEncoderLayerOptions {
  TransformerEncoderLayerOptions(int64_t d_model, int64_t nhead)
      : d_model_(d_model), nhead_(nhead) {}
  RAMET_ARG(int64_t, d_model);
  RAMET_ARG(int64_t, nhead);
  RAMET_ARG(int64_t, dim_feedforward) = 2048;
  /// Of the probabilities, of what is between the linear layers, and of each part's result.
  RAMET_ARG(double, dropout) = 0.1;
  RAMET_ARG(activation_t, activation) = kReLU;
  /// [batch, rows, features] instead of [rows, batch, features].
  RAMET_ARG(bool, batch_first) = false;
  /// x + part(norm(x)) instead of norm(x + part(x)).
  RAMET_ARG(bool, norm_first) = false;
};
struct RAMET_API TransformerDecoderLayerOptions {
  TransformerDecoderLayerOptions(int64_t d_model, int64_t nhead)
      : d_model_(d_model), nhead_(nhead) {}
  RAMET_ARG(int64_t, d_model);
  RAMET_ARG(int64_t, nhead);
  RAMET_ARG(int64_t, dim_feedforward) = 2048;
  RAMET_ARG(double, dropout) = 0.1;
  RAMET_ARG(activation_t, activation) = kReLU;
  RAMET_ARG(bool, batch_first) = false;
  RAMET_ARG(bool, norm_first) = false;
};

// Masks are those of functional::multi_head_attention_forward, which computes the attention here,
// without need_weights. With is_causal, row i sees the keys j <= i by the fused kernels, and the
// mask of that attention is not read.

/// Attention of the rows among themselves, then linear2(activation(linear1)), each added to its
/// input and normalised.
class RAMET_API TransformerEncoderLayerImpl
    : public detail::ListedModule<TransformerEncoderLayerImpl, TransformerEncoderLayerOptions> {
 public:
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_);
  void reset() override;
  void reset_parameters();
  /// src: [rows, batch, d_model], or [batch, rows, d_model], or [rows, d_model].
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}, bool is_causal = false);

  /// Its parts; dropout1, norm1 and so on belong to its first part, attention, and the next ones:
  MultiheadAttention self_attn = nullptr;
  Linear linear1 = nullptr;
  Dropout dropout = nullptr;
  Linear linear2 = nullptr;
  LayerNorm norm1 = nullptr, norm2 = nullptr;
  Dropout dropout1 = nullptr, dropout2 = nullptr;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
RAMET_LISTED_MODULE(TransformerEncoderLayer, TransformerEncoderLayerOptions)

/// The same with attention to `memory`, the encoder's result, between the two.
class RAMET_API TransformerDecoderLayerImpl
    : public detail::ListedModule<TransformerDecoderLayerImpl, TransformerDecoderLayerOptions> {
 public:
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                 bool memory_is_causal = false);

  /// Its parts, in their order:
  MultiheadAttention self_attn = nullptr;
  Dropout dropout1 = nullptr;
  LayerNorm norm1 = nullptr;
  MultiheadAttention multihead_attn = nullptr;
  Dropout dropout2 = nullptr;
  LayerNorm norm2 = nullptr;
  Linear linear1 = nullptr;
  Dropout dropout = nullptr;
  Linear linear2 = nullptr;
  Dropout dropout3 = nullptr;
  LayerNorm norm3 = nullptr;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
  Tensor activation(const Tensor& input);
};
RAMET_LISTED_MODULE(TransformerDecoderLayer, TransformerDecoderLayerOptions)

}  // namespace ramet::nn
