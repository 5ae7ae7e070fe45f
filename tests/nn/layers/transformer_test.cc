// MultiheadAttention and the layers and models made of it: masks and options that tests/nn/goldens
// does not have, against numbers from PyTorch 2.15 in float64.
#include "nn/layers/sequence/transformer.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "nn/module/sequential.h"
#include "nn/serialize/save.h"
#include "tests/nn/layers/attention_numbers.h"

namespace ramet::nn {
namespace {

namespace F = functional;
using Attention = MultiheadAttentionOptions;
using Encoder = TransformerEncoderLayerOptions;
using Decoder = TransformerDecoderLayerOptions;

constexpr double kNone = -std::numeric_limits<double>::infinity();

TEST(MultiheadAttention, ComputesWhatPyTorchDoes) {
  const auto expect = [](const char* name, const Attention& options,
                         const std::vector<Tensor>& inputs, const Tensor& padding, bool weights,
                         const Tensor& mask, bool causal = false) {
    MultiheadAttention module = fill(MultiheadAttention(options));
    const auto [y, p] = module->forward(inputs[0], inputs[std::min<size_t>(1, inputs.size() - 1)],
                                        inputs.back(), padding, weights, mask, true, causal);
    EXPECT_EQ(p.defined(), weights);
    std::vector<Tensor> outputs = {y};
    if (weights) outputs.push_back(p);
    expect_numbers(name, outputs, inputs, module);
  };
  expect("causal, batch first", Attention(6, 2).batch_first(true), {input({2, 3, 6})}, {}, false,
         {}, true);
  expect("causal, batch first", Attention(6, 2).batch_first(true), {input({2, 3, 6})}, {}, false,
         ones({3, 3}, TensorOptions(kByte)).triu(1));
  expect("kdim and vdim", Attention(6, 3).kdim(4).vdim(5),
         {input({3, 2, 6}), input({4, 2, 4}, .3), input({4, 2, 5}, .8)}, excluded({2, 4}), true,
         excluded({6, 3, 4}));
  expect("three, without bias", Attention(6, 2).bias(false).batch_first(true),
         {input({2, 3, 6}), input({2, 4, 6}, .3), input({2, 4, 6}, .8)}, added({2, 4}), false,
         excluded({3, 4}));
  expect("no batch", Attention(6, 2), {input({3, 6}), input({4, 6}, .3)}, excluded({4}), true, {});
}

TEST(MultiheadAttention, WeightsDoNotChangeTheResult) {
  MultiheadAttention m =
      fill(MultiheadAttention(Attention(6, 2).add_bias_kv(true).add_zero_attn(true)));
  const Tensor x = input({3, 2, 6}), causal = TransformerImpl::generate_square_subsequent_mask(3);
  const auto [y, p] = m->forward(x, x, x, excluded({2, 3}), true, causal, false);
  EXPECT_EQ(p.sizes(), IntArrayRef({2, 2, 3, 5}));
  expect_values(p.sum(-1), std::vector<double>(12, 1));
  expect_values(std::get<0>(m->forward(x, x, x, excluded({2, 3}), false, causal)), values(y));
  expect_values(std::get<0>(m->forward(x, x, x, excluded({2, 3}), false, {}, true, true)),
                values(y));
  // Three tensors of the same values.
  expect_values(std::get<0>(m->forward(x, x.clone(), x.clone(), excluded({2, 3}), false, causal)),
                values(y));
  AnyModule any(m);
  const auto some = any.forward<std::tuple<Tensor, Tensor>>(x, x, x);
  EXPECT_EQ(std::get<1>(some).sizes(), IntArrayRef({2, 3, 5}));
}

TEST(MultiheadAttention, ARowThatSeesNothingGivesTheBias) {
  MultiheadAttention m = fill(MultiheadAttention(6, 2));
  const Tensor x = input({3, 1, 6}), none = ones({1, 3}, TensorOptions(kBool));
  for (bool weights : {false, true}) {
    const auto [y, p] = m->forward(x, x, x, none, weights);
    for (int64_t i = 0; i < 3; ++i) expect_values(y[i][0], values(m->out_proj->bias));
    if (weights) expect_values(p, std::vector<double>(9, 0));
    y.sum().backward();
    expect_values(x.grad(), std::vector<double>(18, 0));
  }
}

TEST(MultiheadAttention, DropsInTrainingAlone) {
  MultiheadAttention m = fill(MultiheadAttention(Attention(6, 2).dropout(1)));
  const Tensor x = input({3, 1, 6});
  expect_values(std::get<0>(m->forward(x, x, x))[0][0], values(m->out_proj->bias));
  m->eval();
  EXPECT_GT((std::get<0>(m->forward(x, x, x))[0][0] - m->out_proj->bias).abs().max().item<double>(),
            1e-3);
}

TEST(MultiheadAttention, AsAFunction) {
  MultiheadAttention m = fill(MultiheadAttention(6, 2));
  const Tensor x = input({3, 2, 6});
  auto options =
      F::MultiheadAttentionForwardFuncOptions(6, 2, m->in_proj_weight, m->in_proj_bias, {}, {},
                                              false, 0, m->out_proj->weight, m->out_proj->bias);
  const auto [y, p] = F::multi_head_attention_forward(x, x, x, options);
  expect_values(y, values(std::get<0>(m->forward(x, x, x))));
  // Keys and values that are already projected.
  const auto heads = [&](int64_t i) {
    const Tensor w = m->in_proj_weight.slice(0, 6 * i, 6 * i + 6),
                 b = m->in_proj_bias.slice(0, 6 * i, 6 * i + 6);
    return F::linear(x, w, b).view({3, 4, 3}).transpose(0, 1);
  };
  expect_values(std::get<0>(F::multi_head_attention_forward(
                    x, x, x, options.static_k(heads(1)).static_v(heads(2)))),
                values(y));
  EXPECT_ERROR_TEXT(F::multi_head_attention_forward(
                        x, x, x, options.bias_k(zeros({1, 1, 6})).bias_v(zeros({1, 1, 6}))),
                    "bias cannot be added to static key");
  EXPECT_ERROR_TEXT(F::multi_head_attention_forward(x, x, x, options.bias_v({})),
                    "expected both or none");
}

TEST(MultiheadAttention, HasParametersAndNamesOfPyTorch) {
  MultiheadAttention m(Attention(4, 2).add_bias_kv(true).kdim(3).vdim(5));
  std::string names;
  for (const auto& item : m->named_parameters())
    names += item.key() + text_of(item.value().sizes()) + " ";
  EXPECT_EQ(names,
            "q_proj_weight[4, 4] k_proj_weight[4, 3] v_proj_weight[4, 5] in_proj_bias[12] "
            "bias_k[1, 1, 4] bias_v[1, 1, 4] out_proj.weight[4, 4] out_proj.bias[4] ");
  EXPECT_EQ(text_of(m),
            "ramet::nn::MultiheadAttention(\n"
            "  (out_proj): ramet::nn::Linear(in_features=4, out_features=4, bias=true)\n)");
  const MultiheadAttention same(64, 2);
  const double bound = std::sqrt(6. / (4 * 64));
  EXPECT_LE(same->in_proj_weight.abs().max().item<double>(), bound);
  EXPECT_GT(same->in_proj_weight.abs().max().item<double>(), .99 * bound);
  EXPECT_EQ(same->in_proj_bias.abs().sum().item<double>(), 0);
  EXPECT_EQ(same->out_proj->bias.abs().sum().item<double>(), 0);
  EXPECT_GT(m->bias_k.abs().min().item<double>(), 0);
}

TEST(MultiheadAttention, RefusesWhatDoesNotFit) {
  MultiheadAttention m(4, 2);
  const Tensor x = ones({3, 2, 4}), none;
  EXPECT_ERROR_TEXT(MultiheadAttention(5, 2), "embed_dim must be divisible by num_heads");
  EXPECT_ERROR_TEXT(MultiheadAttention(4, 0), "num_heads must be greater than 0");
  EXPECT_ERROR_TEXT(MultiheadAttention(4, INT64_MIN), "num_heads must be greater than 0");
  EXPECT_ERROR_TEXT(MultiheadAttention(0, 1), "embed_dim 0");
  EXPECT_ERROR_TEXT(MultiheadAttention(Attention(4, 2).kdim(0)), "kdim 0");
  EXPECT_ERROR_TEXT(MultiheadAttention(INT64_MAX, 1), "3 * 9223372036854775807");
  EXPECT_ERROR_TEXT(MultiheadAttention(Attention(4, 2).vdim(INT64_MAX)), "2^63");
  EXPECT_ERROR_TEXT(MultiheadAttention(Attention(4, 2).dropout(std::nan(""))), "between 0 and 1");
  EXPECT_ERROR_TEXT(m(ones({4}), x, x), "unbatched 2D or batched 3D tensor");
  EXPECT_ERROR_TEXT(m(none, x, x), "unbatched 2D or batched 3D tensor");
  EXPECT_ERROR_TEXT(m(x, none, x), "key: got");
  EXPECT_ERROR_TEXT(m(x, x, ones({3, 4})), "value: got");
  EXPECT_ERROR_TEXT(m(ones({3, 2, 6}), x, x), "was expecting embedding dimension of 4");
  EXPECT_ERROR_TEXT(m(x, ones({4, 2, 4}), x), "do not match value's");
  EXPECT_ERROR_TEXT(m(x, ones({4, 1, 4}), ones({4, 1, 4})), "expected the batch of query");
  EXPECT_ERROR_TEXT(m(x, ones({3, 2, 5}), x), "expected 4 features");
  EXPECT_ERROR_TEXT(m(x, x, x, zeros({2, 4})), "key_padding_mask: got");
  EXPECT_ERROR_TEXT(m(x, x, x, zeros({2, 3}, TensorOptions(kLong))), "types of masks");
  EXPECT_ERROR_TEXT(m(x, x, x, none, true, zeros({3, 4})), "attn_mask: got");
  EXPECT_ERROR_TEXT(m(x, x, x, none, true, zeros({2, 3, 3})), "expected [4, 3, 3]");
  EXPECT_ERROR_TEXT(m(x, x, x, none, true, zeros({3})), "attn_mask's dimension 1");
  EXPECT_ERROR_TEXT(m(x.to(kDouble), x.to(kDouble), x.to(kDouble)), "expected one dtype");
  const auto [y, p] = m(zeros({3, 0, 4}), zeros({2, 0, 4}), zeros({2, 0, 4}));
  EXPECT_EQ(y.sizes(), IntArrayRef({3, 0, 4}));
  EXPECT_EQ(p.sizes(), IntArrayRef({0, 3, 2}));
}

TEST(Transformer, LayersComputeWhatPyTorchDoes) {
  {
    auto m = fill(TransformerEncoderLayer(
        Encoder(6, 2).dim_feedforward(5).dropout(0).activation(kGELU).batch_first(true).norm_first(
            true)));
    const Tensor x = input({2, 3, 6});
    expect_numbers("encoder layer, norm first", {m->forward(x, added({3, 3}), excluded({2, 3}))},
                   {x}, m, false);
  }
  {
    auto m = fill(TransformerDecoderLayer(Decoder(6, 2).dim_feedforward(5).dropout(0)));
    const Tensor x = input({3, 2, 6}), memory = input({4, 2, 6}, .3),
                 mask = TransformerImpl::generate_square_subsequent_mask(3);
    expect_numbers("decoder layer", {m->forward(x, memory, mask, {}, {}, excluded({2, 4}))},
                   {x, memory}, m, false);
  }
  {
    auto m = fill(TransformerDecoderLayer(Decoder(6, 2)
                                              .dim_feedforward(5)
                                              .dropout(.3)
                                              .activation([](const Tensor& x) { return x.tanh(); })
                                              .batch_first(true)
                                              .norm_first(true)));
    m->eval();
    const Tensor x = input({2, 3, 6}), memory = input({2, 4, 6}, .3);
    expect_numbers("decoder layer, norm first",
                   {m->forward(x, memory, {}, excluded({3, 4}), excluded({2, 3}))}, {x, memory}, m,
                   false);
  }
}

TEST(Transformer, ComputesWhatPyTorchDoes) {
  const auto options = TransformerOptions(6, 2, 2, 1).dim_feedforward(5).dropout(0);
  const Tensor mask = TransformerImpl::generate_square_subsequent_mask(3),
               padding = excluded({2, 4});
  for (const Tensor& causal : {mask, Tensor()}) {
    Transformer m = fill(Transformer(options));
    const Tensor src = input({4, 2, 6}), x = input({3, 2, 6}, .3);
    expect_numbers("transformer",
                   {m->forward(src, x, excluded({4, 4}), causal, {}, padding, {}, padding, false,
                               !causal.defined())},
                   {src, x}, m, false);
  }
  Transformer m = fill(Transformer(TransformerOptions(options).batch_first(true).norm_first(true)));
  const Tensor src = input({2, 4, 6}), x = input({2, 3, 6}, .3);
  expect_numbers("transformer, norm first",
                 {m->forward(src, x, excluded({4, 4}), mask, {}, padding, {}, padding)}, {src, x},
                 m, false);
  TransformerEncoder encoder =
      fill(TransformerEncoder(TransformerEncoderOptions(Encoder(6, 2).dim_feedforward(5), 2)
                                  .norm(AnyModule(LayerNorm(LayerNormOptions({6}))))));
  encoder->eval();
  const Tensor y = input({3, 2, 6});
  expect_numbers("encoder", {encoder->forward(y, added({3, 3}))}, {y}, encoder, false);
}

TEST(Transformer, HasNamesOfPyTorch) {
  TransformerEncoderLayer encoder(Encoder(4, 2).dim_feedforward(3));
  TransformerDecoderLayer decoder(Decoder(4, 2).dim_feedforward(3));
  const auto keys = [](const auto& dict) {
    std::string all;
    for (const auto& item : dict) all += item.key() + " ";
    return all;
  };
  const std::string attention =
      "in_proj_weight self_attn.in_proj_bias self_attn.out_proj.weight "
      "self_attn.out_proj.bias ";
  EXPECT_EQ(keys(encoder->named_parameters()),
            "self_attn." + attention +
                "linear1.weight linear1.bias linear2.weight linear2.bias norm1.weight norm1.bias "
                "norm2.weight norm2.bias ");
  EXPECT_EQ(keys(encoder->named_children()),
            "self_attn linear1 dropout linear2 norm1 norm2 dropout1 dropout2 ");
  EXPECT_EQ(keys(decoder->named_children()),
            "self_attn multihead_attn linear1 dropout linear2 norm1 norm2 norm3 dropout1 dropout2 "
            "dropout3 ");
  Transformer model(TransformerOptions(4, 2, 1, 2).dim_feedforward(3));
  EXPECT_EQ(keys(model->named_modules("", false)).substr(0, 70),
            "encoder encoder.layers encoder.layers.0 encoder.layers.0.self_attn enc");
  EXPECT_TRUE(model->named_parameters().contains("decoder.layers.1.multihead_attn.in_proj_bias"));
  EXPECT_TRUE(model->named_parameters().contains("decoder.norm.weight"));
  const TransformerOptions defaults;
  EXPECT_EQ(defaults.d_model(), 512);
  EXPECT_EQ(defaults.nhead(), 8);
  EXPECT_EQ(defaults.num_encoder_layers() + defaults.num_decoder_layers(), 12);
  EXPECT_EQ(defaults.dim_feedforward(), 2048);
  EXPECT_EQ(defaults.dropout(), .1);
}

TEST(Transformer, ClonesLayersNormsAndCustomParts) {
  const TransformerEncoderLayer layer(Encoder(4, 2).dim_feedforward(3));
  const LayerNorm norm(LayerNormOptions({4}));
  TransformerEncoder encoder(TransformerEncoderOptions(layer, 2).norm(AnyModule(norm)));
  EXPECT_NE(encoder->norm.ptr(), norm.ptr());
  EXPECT_TRUE(same_bits(encoder->layers->at<TransformerEncoderLayerImpl>(1).linear1->weight,
                        layer->linear1->weight));
  const auto last = encoder->norm.ptr();
  encoder->reset_parameters();
  EXPECT_NE(encoder->norm.ptr(), last);
  EXPECT_FALSE(same_bits(encoder->layers->at<TransformerEncoderLayerImpl>(1).linear1->weight,
                         layer->linear1->weight));

  Transformer model(TransformerOptions(4, 2, 1, 1).custom_encoder(AnyModule(encoder)).dropout(0));
  EXPECT_NE(model->encoder.ptr(), encoder.ptr());
  model->eval();
  const auto copy = std::dynamic_pointer_cast<TransformerImpl>(model->clone());
  const Tensor src = ones({3, 2, 4}), tgt = ones({2, 2, 4});
  const Tensor before = model(src, tgt);
  EXPECT_TRUE(same_bits(copy->forward(src, tgt), before));
  EXPECT_FALSE(copy->is_training());
  // The copy shares nothing with the model.
  {
    const NoGradGuard off;
    for (const Tensor& p : copy->parameters()) p.zero_();
  }
  EXPECT_TRUE(same_bits(model(src, tgt), before));
  expect_values(copy->forward(src, tgt), std::vector<double>(16, 0));
  std::stringstream file;
  save(model, file);
  Transformer other(model->options);
  load(other, file);
  other->eval();
  EXPECT_TRUE(same_bits(other(src, tgt), before));
}

TEST(Transformer, MasksWhatComesLater) {
  EXPECT_EQ(values(TransformerImpl::generate_square_subsequent_mask(2)),
            (std::vector<double>{0, kNone, 0, 0}));
  EXPECT_EQ(TransformerImpl::generate_square_subsequent_mask(0).sizes(), IntArrayRef({0, 0}));
  EXPECT_ERROR_TEXT(TransformerImpl::generate_square_subsequent_mask(-1),
                    "Input size must be non-negative to generate a valid square subsequent mask, "
                    "but got -1");
  EXPECT_ERROR_TEXT(TransformerImpl::generate_square_subsequent_mask(INT64_MAX), "2^63");
}

TEST(Transformer, RefusesWhatDoesNotFit) {
  const TransformerEncoderLayer layer(Encoder(4, 2).dim_feedforward(3));
  Transformer m(TransformerOptions(4, 2, 0, 0));
  const Tensor x = ones({3, 2, 4});
  EXPECT_ERROR_TEXT(m(ones({3, 4}), x), "src and tgt should have 3 dimensions");
  EXPECT_ERROR_TEXT(m(x, ones({3, 1, 4})), "equal batch size (at dim 1), but got 2 and 1");
  EXPECT_ERROR_TEXT(m(x, ones({3, 2, 5})),
                    "same feature size as d_model (at dim 2), but got 4 and 5 while d_model is 4");
  EXPECT_ERROR_TEXT(TransformerEncoder(layer, -1), "num_layers: got -1");
  EXPECT_ERROR_TEXT(TransformerEncoder(TransformerEncoderLayer(nullptr), 1), "empty holder");
  EXPECT_TRUE(TransformerEncoder(layer, 0)(x).is_same(x));
  TransformerEncoder encoder(layer, 1);
  encoder->layers->push_back(layer->clone());
  EXPECT_ERROR_TEXT(encoder->reset_parameters(), "TransformerEncoder should have 1 layers");
  EXPECT_ERROR_TEXT(
      TransformerEncoderLayer(Encoder(4, 2).activation(std::function<Tensor(const Tensor&)>()))(x),
      "activation should be kGELU, kReLU, or a callable");
}

}  // namespace
}  // namespace ramet::nn
