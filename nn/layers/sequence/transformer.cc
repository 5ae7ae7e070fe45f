#include "nn/layers/sequence/transformer.h"

#include <limits>

#include "autograd/ops/make/factory.h"
#include "autograd/ops/matrix/triangle.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

namespace {

template <class Layer> ModuleList clones(const char* op, const Layer& layer, int64_t count) {
  RAMET_CHECK(layer, op, "layer: got an empty holder");
  RAMET_CHECK(count >= 0, op, "num_layers: got ", count, ", expected at least 0");
  ModuleList made;
  for (int64_t i = 0; i < count; ++i) made->push_back(layer->clone());
  return made;
}
template <class Stack> void take_norm(Stack& stack) {
  stack.norm = stack.options.norm().clone();
  if (!stack.norm.is_empty()) stack.register_module("norm", stack.norm.ptr());
}
template <class LayerImpl>
void reset_layers(const char* op, const ModuleList& layers, int64_t count) {
  RAMET_CHECK(layers->size() == static_cast<size_t>(count), op, op, " should have ", count,
              " layers, but got ", layers->size());
  for (const auto& layer : *layers) dynamic_cast<LayerImpl&>(*layer).reset_parameters();
}

}  // namespace

TransformerEncoderOptions::TransformerEncoderOptions(
    const TransformerEncoderLayerOptions& encoder_layer_options, int64_t num_layers)
    : TransformerEncoderOptions(TransformerEncoderLayer(encoder_layer_options), num_layers) {}

TransformerDecoderOptions::TransformerDecoderOptions(
    const TransformerDecoderLayerOptions& decoder_layer_options, int64_t num_layers)
    : TransformerDecoderOptions(TransformerDecoderLayer(decoder_layer_options), num_layers) {}

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions options_)
    : options(std::move(options_)) {
  TransformerEncoderImpl::reset();
}

void TransformerEncoderImpl::reset() {
  layers = register_module(
      "layers", clones("TransformerEncoder", options.encoder_layer(), options.num_layers()));
  take_norm(*this);
}

void TransformerEncoderImpl::reset_parameters() {
  reset_layers<TransformerEncoderLayerImpl>("TransformerEncoder", layers, options.num_layers());
  if (!norm.is_empty()) unregister_module("norm");
  take_norm(*this);
}

Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask,
                                       const Tensor& src_key_padding_mask, bool is_causal) {
  Tensor x = src;
  for (size_t i = 0; i < layers->size(); ++i)
    x = call(layers->at<TransformerEncoderLayerImpl>(i), x, src_mask, src_key_padding_mask,
             is_causal);
  return norm.is_empty() ? x : norm.forward(std::move(x));
}

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions options_)
    : options(std::move(options_)) {
  TransformerDecoderImpl::reset();
}

void TransformerDecoderImpl::reset() {
  layers = register_module(
      "layers", clones("TransformerDecoder", options.decoder_layer(), options.num_layers()));
  take_norm(*this);
}

void TransformerDecoderImpl::reset_parameters() {
  reset_layers<TransformerDecoderLayerImpl>("TransformerDecoder", layers, options.num_layers());
  if (!norm.is_empty()) unregister_module("norm");
  take_norm(*this);
}

Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory,
                                       const Tensor& tgt_mask, const Tensor& memory_mask,
                                       const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask, bool tgt_is_causal,
                                       bool memory_is_causal) {
  Tensor x = tgt;
  for (size_t i = 0; i < layers->size(); ++i)
    x = call(layers->at<TransformerDecoderLayerImpl>(i), x, memory, tgt_mask, memory_mask,
             tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal);
  return norm.is_empty() ? x : norm.forward(std::move(x));
}

TransformerImpl::TransformerImpl(TransformerOptions options_) : ListedModule(options_) {
  TransformerImpl::reset();
}

void TransformerImpl::reset() {
  const auto layer = [&](auto o) {
    return o.dim_feedforward(options.dim_feedforward())
        .dropout(options.dropout())
        .activation(options.activation())
        .batch_first(options.batch_first())
        .norm_first(options.norm_first());
  };
  const auto norm = [&] { return AnyModule(LayerNorm(LayerNormOptions({options.d_model()}))); };
  if (!options.custom_encoder().is_empty()) {
    encoder = options.custom_encoder().clone();
  } else {
    const auto made = layer(TransformerEncoderLayerOptions(options.d_model(), options.nhead()));
    encoder = AnyModule(TransformerEncoder(
        TransformerEncoderOptions(made, options.num_encoder_layers()).norm(norm())));
  }
  register_module("encoder", encoder.ptr());
  if (!options.custom_decoder().is_empty()) {
    decoder = options.custom_decoder().clone();
  } else {
    const auto made = layer(TransformerDecoderLayerOptions(options.d_model(), options.nhead()));
    decoder = AnyModule(TransformerDecoder(
        TransformerDecoderOptions(made, options.num_decoder_layers()).norm(norm())));
  }
  register_module("decoder", decoder.ptr());
  reset_parameters();
}

void TransformerImpl::reset_parameters() {
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                                const Tensor& tgt_mask, const Tensor& memory_mask,
                                const Tensor& src_key_padding_mask,
                                const Tensor& tgt_key_padding_mask,
                                const Tensor& memory_key_padding_mask, bool src_is_causal,
                                bool tgt_is_causal, bool memory_is_causal) {
  const char* const op = "Transformer";
  const int64_t batch = options.batch_first() ? 0 : 1, width = options.d_model();
  RAMET_CHECK(src.defined() && tgt.defined() && src.dim() == 3 && tgt.dim() == 3, op,
              "src and tgt should have 3 dimensions, but got ", describe(src), " and ",
              describe(tgt));
  RAMET_CHECK(src.size(batch) == tgt.size(batch), op,
              "src and tgt should have equal batch size (at dim ", batch, "), but got ",
              src.size(batch), " and ", tgt.size(batch));
  RAMET_CHECK(src.size(2) == width && tgt.size(2) == width, op,
              "src and tgt should have same feature size as d_model (at dim 2), but got ",
              src.size(2), " and ", tgt.size(2), " while d_model is ", width);
  const Tensor memory = src_is_causal ? encoder.forward(src, src_mask, src_key_padding_mask, true)
                                      : encoder.forward(src, src_mask, src_key_padding_mask);
  if (tgt_is_causal || memory_is_causal)
    return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                           memory_key_padding_mask, tgt_is_causal, memory_is_causal);
  return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                         memory_key_padding_mask);
}

Tensor TransformerImpl::generate_square_subsequent_mask(int64_t sz) {
  RAMET_CHECK(
      sz >= 0, "Transformer",
      "Input size must be non-negative to generate a valid square subsequent mask, but got ", sz);
  return full({sz, sz}, -std::numeric_limits<double>::infinity(), TensorOptions()).triu(1);
}

RAMET_DEFINE_FORWARD_DEFAULT_ARGS(TransformerEncoderImpl, {1, AnyValue(Tensor())},
                                  {2, AnyValue(Tensor())}, {3, AnyValue(false)})
RAMET_DEFINE_FORWARD_DEFAULT_ARGS(TransformerDecoderImpl, {2, AnyValue(Tensor())},
                                  {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                                  {5, AnyValue(Tensor())}, {6, AnyValue(false)},
                                  {7, AnyValue(false)})
RAMET_DEFINE_FORWARD_DEFAULT_ARGS(TransformerImpl, {2, AnyValue(Tensor())}, {3, AnyValue(Tensor())},
                                  {4, AnyValue(Tensor())}, {5, AnyValue(Tensor())},
                                  {6, AnyValue(Tensor())}, {7, AnyValue(Tensor())},
                                  {8, AnyValue(false)}, {9, AnyValue(false)}, {10, AnyValue(false)})

template class Cloneable<TransformerEncoderImpl>;
template class Cloneable<TransformerDecoderImpl>;

RAMET_FIELDS(Transformer, {"d_model", &o.d_model(), kPositive | kModuleName},
             {"nhead", &o.nhead(), kPositive},
             {"num_encoder_layers", &o.num_encoder_layers(), kNotNegative},
             {"num_decoder_layers", &o.num_decoder_layers(), kNotNegative},
             {"dim_feedforward", &o.dim_feedforward(), kPositive}, {"dropout", &o.dropout()},
             {"activation", &o.activation()}, {"batch_first", &o.batch_first()},
             {"norm_first", &o.norm_first()})

}  // namespace ramet::nn
