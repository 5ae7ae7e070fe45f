#include "nn/layers/sequence/transformer_layers.h"

#include "nn/functional/functional.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

namespace {

template <class Options> MultiheadAttention attention_of(const Options& o) {
  return MultiheadAttention(MultiheadAttentionOptions(o.d_model(), o.nhead())
                                .dropout(o.dropout())
                                .batch_first(o.batch_first()));
}
Tensor activated(const activation_t& activation, const Tensor& x) {
  if (std::holds_alternative<enumtype::kReLU>(activation)) return functional::relu(x);
  if (std::holds_alternative<enumtype::kGELU>(activation)) return functional::gelu(x);
  const auto& given = std::get<std::function<Tensor(const Tensor&)>>(activation);
  RAMET_CHECK(given, "Transformer", "activation should be kGELU, kReLU, or a callable: got none");
  return given(x);
}
Tensor attended(MultiheadAttention& attention, const Tensor& rows, const Tensor& keys,
                const Tensor& mask, const Tensor& padding, bool causal) {
  return std::get<0>(attention(rows, keys, keys, padding, /*need_weights=*/false, mask,
                               /*average_attn_weights=*/true, causal));
}
// One part of a layer around its rest: norm(x + dropout(part(x))).
template <class Part>
Tensor added(const Tensor& x, LayerNorm& norm, Dropout& dropout, bool norm_first,
             const Part& part) {
  if (norm_first) return x + dropout(part(norm(x)));
  return norm(x + dropout(part(x)));
}

}  // namespace

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_)
    : ListedModule(options_) {
  TransformerEncoderLayerImpl::reset();
}

void TransformerEncoderLayerImpl::reset() {
  const int64_t width = options.d_model(), inner = options.dim_feedforward();
  self_attn = register_module("self_attn", attention_of(options));
  linear1 = register_module("linear1", Linear(width, inner));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(inner, width));
  norm1 = register_module("norm1", LayerNorm(LayerNormOptions({width})));
  norm2 = register_module("norm2", LayerNorm(LayerNormOptions({width})));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
}

void TransformerEncoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  for (Linear* linear : {&linear1, &linear2}) (*linear)->reset_parameters();
  for (LayerNorm* norm : {&norm1, &norm2}) (*norm)->reset_parameters();
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask, bool is_causal) {
  const bool first = options.norm_first();
  const Tensor x = added(src, norm1, dropout1, first, [&](const Tensor& t) {
    return attended(self_attn, t, t, src_mask, src_key_padding_mask, is_causal);
  });
  return added(x, norm2, dropout2, first, [&](const Tensor& t) {
    return linear2(dropout(activated(options.activation(), linear1(t))));
  });
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_)
    : ListedModule(options_) {
  TransformerDecoderLayerImpl::reset();
}

void TransformerDecoderLayerImpl::reset() {
  const int64_t width = options.d_model(), inner = options.dim_feedforward();
  self_attn = register_module("self_attn", attention_of(options));
  multihead_attn = register_module("multihead_attn", attention_of(options));
  linear1 = register_module("linear1", Linear(width, inner));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(inner, width));
  norm1 = register_module("norm1", LayerNorm(LayerNormOptions({width})));
  norm2 = register_module("norm2", LayerNorm(LayerNormOptions({width})));
  norm3 = register_module("norm3", LayerNorm(LayerNormOptions({width})));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
  dropout3 = register_module("dropout3", Dropout(options.dropout()));
}

void TransformerDecoderLayerImpl::reset_parameters() {
  for (MultiheadAttention* attention : {&self_attn, &multihead_attn})
    (*attention)->_reset_parameters();
  for (Linear* linear : {&linear1, &linear2}) (*linear)->reset_parameters();
  for (LayerNorm* norm : {&norm1, &norm2, &norm3}) (*norm)->reset_parameters();
}

Tensor TransformerDecoderLayerImpl::activation(const Tensor& input) {
  return activated(options.activation(), input);
}

Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory,
                                            const Tensor& tgt_mask, const Tensor& memory_mask,
                                            const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask,
                                            bool tgt_is_causal, bool memory_is_causal) {
  const bool first = options.norm_first();
  const Tensor seen = added(tgt, norm1, dropout1, first, [&](const Tensor& t) {
    return attended(self_attn, t, t, tgt_mask, tgt_key_padding_mask, tgt_is_causal);
  });
  const Tensor x = added(seen, norm2, dropout2, first, [&](const Tensor& t) {
    return attended(multihead_attn, t, memory, memory_mask, memory_key_padding_mask,
                    memory_is_causal);
  });
  return added(x, norm3, dropout3, first,
               [&](const Tensor& t) { return linear2(dropout(activation(linear1(t)))); });
}

RAMET_DEFINE_FORWARD_DEFAULT_ARGS(TransformerEncoderLayerImpl, {1, AnyValue(Tensor())},
                                  {2, AnyValue(Tensor())}, {3, AnyValue(false)})
RAMET_DEFINE_FORWARD_DEFAULT_ARGS(TransformerDecoderLayerImpl, {2, AnyValue(Tensor())},
                                  {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                                  {5, AnyValue(Tensor())}, {6, AnyValue(false)},
                                  {7, AnyValue(false)})

namespace detail {
namespace {
// As without pretty_print, LibTorch prints the class alone.
template <class Options> std::vector<Field> layer_fields(Options& o) {
  return {{"d_model", &o.d_model(), kCount | kModuleName},
          {"nhead", &o.nhead(), kCount},
          {"dim_feedforward", &o.dim_feedforward(), kPositive},
          {"dropout", &o.dropout()},
          {"activation", &o.activation()},
          {"batch_first", &o.batch_first()},
          {"norm_first", &o.norm_first()}};
}
}  // namespace
}  // namespace detail

RAMET_FIELDS(TransformerEncoderLayer, layer_fields(o))
RAMET_FIELDS(TransformerDecoderLayer, layer_fields(o))

}  // namespace ramet::nn
