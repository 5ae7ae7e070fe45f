// TransformerEncoder, TransformerDecoder, Transformer: Vaswani et al. 2017.
#pragma once
#include "nn/layers/sequence/transformer_layers.h"
#include "nn/module/any_module.h"
#include "nn/module/module_list.h"

namespace ramet::nn {

struct RAMET_API TransformerEncoderOptions {
  /// The layers are clones of encoder_layer.
  TransformerEncoderOptions(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : encoder_layer_(std::move(encoder_layer)), num_layers_(num_layers) {}
  TransformerEncoderOptions(const TransformerEncoderLayerOptions& encoder_layer_options,
                            int64_t num_layers);
  /// The layer that is cloned.
  RAMET_ARG(TransformerEncoderLayer, encoder_layer) = nullptr;
  RAMET_ARG(int64_t, num_layers);
  /// A module that is applied to the last layer's result: one tensor in, one out. The encoder holds
  /// a clone of it.
  RAMET_ARG(AnyModule, norm);
};
struct RAMET_API TransformerDecoderOptions {
  TransformerDecoderOptions(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : decoder_layer_(std::move(decoder_layer)), num_layers_(num_layers) {}
  TransformerDecoderOptions(const TransformerDecoderLayerOptions& decoder_layer_options,
                            int64_t num_layers);
  /// The layer that is cloned.
  RAMET_ARG(TransformerDecoderLayer, decoder_layer) = nullptr;
  RAMET_ARG(int64_t, num_layers);
  RAMET_ARG(AnyModule, norm);
};
struct RAMET_API TransformerOptions {
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers,
                     int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  RAMET_ARG(int64_t, d_model) = 512;
  RAMET_ARG(int64_t, nhead) = 8;
  RAMET_ARG(int64_t, num_encoder_layers) = 6;
  RAMET_ARG(int64_t, num_decoder_layers) = 6;
  RAMET_ARG(int64_t, dim_feedforward) = 2048;
  RAMET_ARG(double, dropout) = 0.1;
  RAMET_ARG(activation_t, activation) = kReLU;
  /// A module that replaces the TransformerEncoder. Its forward takes the same tensors up to
  /// src_key_padding_mask. The Transformer holds a clone of it. The module itself decides about
  /// batch_first and norm_first.
  RAMET_ARG(AnyModule, custom_encoder);
  RAMET_ARG(AnyModule, custom_decoder);
  /// As those of the layers.
  RAMET_ARG(bool, batch_first) = false;
  RAMET_ARG(bool, norm_first) = false;
};

// The encoder and the decoder have no list of options: theirs are modules, and LibTorch prints
// none.

/// num_layers clones of a layer, one after the other, then norm. Without layers and norm it returns
/// its input. is_causal as the layers'.
class RAMET_API TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  TransformerEncoderImpl(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : TransformerEncoderImpl(TransformerEncoderOptions(std::move(encoder_layer), num_layers)) {}
  explicit TransformerEncoderImpl(TransformerEncoderOptions options_);
  void reset() override;
  /// The layers draw new values; norm becomes a new clone of options.norm().
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}, bool is_causal = false);

  TransformerEncoderOptions options;
  /// The clones.
  ModuleList layers = nullptr;
  /// Of the last layer's result; may be empty.
  AnyModule norm;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class Cloneable<TransformerEncoderImpl>;
RAMET_MODULE(TransformerEncoder);

/// num_layers clones of a layer, one after the other, then norm. Without layers and norm it returns
/// tgt. Masks and is_causal as the layers'.
class RAMET_API TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  TransformerDecoderImpl(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : TransformerDecoderImpl(TransformerDecoderOptions(std::move(decoder_layer), num_layers)) {}
  explicit TransformerDecoderImpl(TransformerDecoderOptions options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                 bool memory_is_causal = false);

  TransformerDecoderOptions options;
  ModuleList layers = nullptr;
  AnyModule norm;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class Cloneable<TransformerDecoderImpl>;
RAMET_MODULE(TransformerDecoder);

/// An encoder of src and a decoder of tgt that attends to its result, both with a LayerNorm at the
/// end. Matrices are drawn by Glorot's uniform.
class RAMET_API TransformerImpl : public detail::ListedModule<TransformerImpl, TransformerOptions> {
 public:
  explicit TransformerImpl(TransformerOptions options_);
  void reset() override;
  void reset_parameters();
  /// src [rows, batch, d_model] and tgt [other rows, batch, d_model] (or batch first) give tgt's
  /// shape. Masks as functional::multi_head_attention_forward's. src_is_causal, tgt_is_causal and
  /// memory_is_causal (upstream's Python's) as is_causal there; a custom encoder or decoder gets
  /// them only where one is set.
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, bool src_is_causal = false,
                 bool tgt_is_causal = false, bool memory_is_causal = false);
  /// [sz, sz]: 0 where row i may see key j <= i, -inf elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t sz);

  /// A TransformerEncoder and a TransformerDecoder, or the custom ones.
  AnyModule encoder, decoder;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
RAMET_LISTED_MODULE(Transformer, TransformerOptions)

}  // namespace ramet::nn
