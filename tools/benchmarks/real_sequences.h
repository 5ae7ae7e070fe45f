// Networks for sequences as their authors' programs have them: LibTorch programs.
#pragma once
#include <torch/torch.h>

#include <cmath>
#include <tuple>
#include <vector>

namespace real {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;

// ---- ViT ----------------------------------------------------------------------------------------

struct VitBlockImpl : nn::Module {
  VitBlockImpl(int64_t width, int64_t heads_)
      : heads(heads_),
        norm1(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width}).eps(1e-6)))),
        qkv(register_module("qkv", nn::Linear(width, 3 * width))),
        proj(register_module("proj", nn::Linear(width, width))),
        norm2(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width}).eps(1e-6)))),
        fc1(register_module("fc1", nn::Linear(width, 4 * width))),
        fc2(register_module("fc2", nn::Linear(4 * width, width))) {}
  Tensor attention(const Tensor& x) {
    const int64_t n = x.size(0), length = x.size(1), width = x.size(2);
    const Tensor all =
        qkv(x).reshape({n, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    const Tensor seen = torch::scaled_dot_product_attention(all[0], all[1], all[2]);
    return proj(seen.transpose(1, 2).reshape({n, length, width}));
  }
  Tensor forward(Tensor x) {
    x = x + attention(norm1(x));
    return x + fc2(F::gelu(fc1(norm2(x))));
  }
  int64_t heads;
  nn::LayerNorm norm1;
  nn::Linear qkv, proj;
  nn::LayerNorm norm2;
  nn::Linear fc1, fc2;
};
TORCH_MODULE(VitBlock);

// ViT-S/16.
struct VitImpl : nn::Module {
  VitImpl()
      : patches(register_module("patches", nn::Conv2d(nn::Conv2dOptions(3, 384, 16).stride(16)))),
        class_token(register_parameter("class_token", torch::zeros({1, 1, 384}))),
        places(register_parameter("places", torch::zeros({1, 197, 384}))),
        blocks(register_module("blocks", nn::Sequential())),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({384}).eps(1e-6)))),
        head(register_module("head", nn::Linear(384, 1000))) {
    for (int i = 0; i < 12; ++i) blocks->push_back(VitBlock(384, 6));
  }
  Tensor forward(Tensor x) {
    x = patches(x).flatten(2).transpose(1, 2);
    x = torch::cat({class_token.expand({x.size(0), -1, -1}), x}, 1) + places;
    x = norm(blocks->forward(x));
    return head(x.select(1, 0));
  }
  nn::Conv2d patches;
  Tensor class_token, places;
  nn::Sequential blocks;
  nn::LayerNorm norm;
  nn::Linear head;
};
TORCH_MODULE(Vit);

// ---- GPT-2 --------------------------------------------------------------------------------------

struct LayerNormImpl : nn::Module {
  explicit LayerNormImpl(int64_t width)
      : weight(register_parameter("weight", torch::ones({width}))),
        bias(register_parameter("bias", torch::zeros({width}))) {}
  Tensor forward(const Tensor& x) {
    return F::layer_norm(
        x, F::LayerNormFuncOptions({weight.size(0)}).weight(weight).bias(bias).eps(1e-5));
  }
  Tensor weight, bias;
};
TORCH_MODULE(LayerNorm);

struct Gpt2BlockImpl : nn::Module {
  Gpt2BlockImpl(int64_t width, int64_t heads_, int64_t length)
      : heads(heads_),
        ln_1(register_module("ln_1", LayerNorm(width))),
        c_attn(register_module("c_attn", nn::Linear(width, 3 * width))),
        c_proj(register_module("c_proj", nn::Linear(width, width))),
        ln_2(register_module("ln_2", LayerNorm(width))),
        c_fc(register_module("c_fc", nn::Linear(width, 4 * width))),
        mlp_proj(register_module("mlp_proj", nn::Linear(4 * width, width))),
        mask(register_buffer(
            "mask", torch::tril(torch::ones({length, length})).view({1, 1, length, length}))) {}
  Tensor attention(const Tensor& x) {
    const int64_t n = x.size(0), length = x.size(1), width = x.size(2);
    const auto parts = c_attn(x).split(width, 2);
    const auto by_head = [&](const Tensor& t) {
      return t.view({n, length, heads, width / heads}).transpose(1, 2);
    };
    const Tensor q = by_head(parts[0]), k = by_head(parts[1]), v = by_head(parts[2]);
    Tensor seen = q.matmul(k.transpose(-2, -1)) * (1.0 / std::sqrt(double(k.size(-1))));
    const Tensor part = mask.slice(2, 0, length).slice(3, 0, length);
    seen = seen.masked_fill(part == 0, -1e9);
    seen = torch::softmax(seen, -1).matmul(v);
    return c_proj(seen.transpose(1, 2).contiguous().view({n, length, width}));
  }
  Tensor forward(Tensor x) {
    x = x + attention(ln_1(x));
    return x + mlp_proj(F::gelu(c_fc(ln_2(x)), F::GELUFuncOptions().approximate("tanh")));
  }
  int64_t heads;
  LayerNorm ln_1;
  nn::Linear c_attn, c_proj;
  LayerNorm ln_2;
  nn::Linear c_fc, mlp_proj;
  Tensor mask;
};
TORCH_MODULE(Gpt2Block);

struct Gpt2Impl : nn::Module {
  Gpt2Impl(int64_t symbols = 50257, int64_t length = 1024, int64_t width = 768, int64_t heads = 12,
           int64_t layers = 12)
      : wte(register_module("wte", nn::Embedding(symbols, width))),
        wpe(register_module("wpe", nn::Embedding(length, width))),
        h(register_module("h", nn::Sequential())),
        ln_f(register_module("ln_f", LayerNorm(width))) {
    for (int64_t i = 0; i < layers; ++i) h->push_back(Gpt2Block(width, heads, length));
  }
  Tensor forward(const Tensor& text) {
    const Tensor places = torch::arange(text.size(1), torch::kLong).unsqueeze(0);
    const Tensor x = ln_f(h->forward(wte(text) + wpe(places)));
    return F::linear(x, wte->weight);  // tied
  }
  nn::Embedding wte, wpe;
  nn::Sequential h;
  LayerNorm ln_f;
};
TORCH_MODULE(Gpt2);

// ---- Whisper's encoder --------------------------------------------------------------------------

struct WhisperBlockImpl : nn::Module {
  WhisperBlockImpl(int64_t width, int64_t heads_)
      : heads(heads_),
        attn_ln(register_module("attn_ln", nn::LayerNorm(nn::LayerNormOptions({width})))),
        query(register_module("query", nn::Linear(width, width))),
        key(register_module("key", nn::Linear(nn::LinearOptions(width, width).bias(false)))),
        value(register_module("value", nn::Linear(width, width))),
        out(register_module("out", nn::Linear(width, width))),
        mlp_ln(register_module("mlp_ln", nn::LayerNorm(nn::LayerNormOptions({width})))),
        mlp(register_module("mlp", nn::Sequential(nn::Linear(width, 4 * width), nn::GELU(),
                                                  nn::Linear(4 * width, width)))) {}
  Tensor attention(const Tensor& x) {
    const auto by_head = [&](const Tensor& t) {
      return t.view({t.size(0), t.size(1), heads, -1}).permute({0, 2, 1, 3});
    };
    const Tensor seen =
        torch::scaled_dot_product_attention(by_head(query(x)), by_head(key(x)), by_head(value(x)));
    return out(seen.permute({0, 2, 1, 3}).flatten(2));
  }
  Tensor forward(Tensor x) {
    x = x + attention(attn_ln(x));
    return x + mlp->forward(mlp_ln(x));
  }
  int64_t heads;
  nn::LayerNorm attn_ln;
  nn::Linear query, key, value, out;
  nn::LayerNorm mlp_ln;
  nn::Sequential mlp;
};
TORCH_MODULE(WhisperBlock);

// Of Whisper's size "tiny".
struct WhisperEncoderImpl : nn::Module {
  WhisperEncoderImpl()
      : conv1(register_module("conv1", nn::Conv1d(nn::Conv1dOptions(80, 384, 3).padding(1)))),
        conv2(register_module("conv2",
                              nn::Conv1d(nn::Conv1dOptions(384, 384, 3).stride(2).padding(1)))),
        places(register_buffer("places", sinusoids(1500, 384))),
        blocks(register_module("blocks", nn::Sequential())),
        ln_post(register_module("ln_post", nn::LayerNorm(nn::LayerNormOptions({384})))) {
    for (int i = 0; i < 4; ++i) blocks->push_back(WhisperBlock(384, 6));
  }
  static Tensor sinusoids(int64_t length, int64_t channels) {
    const double step = std::log(10000.0) / double(channels / 2 - 1);
    const Tensor rates = torch::exp(torch::arange(channels / 2, torch::kDouble) * -step);
    const Tensor angles = torch::arange(length, torch::kDouble).unsqueeze(1) * rates.unsqueeze(0);
    return torch::cat({angles.sin(), angles.cos()}, 1).to(torch::kFloat);
  }
  Tensor forward(Tensor x) {
    x = F::gelu(conv1(x));
    x = F::gelu(conv2(x));
    x = x.permute({0, 2, 1});
    x = x + places.slice(0, 0, x.size(1));
    return ln_post(blocks->forward(x));
  }
  nn::Conv1d conv1, conv2;
  Tensor places;
  nn::Sequential blocks;
  nn::LayerNorm ln_post;
};
TORCH_MODULE(WhisperEncoder);

// ---- LSTM ---------------------------------------------------------------------------------------

struct LstmTextImpl : nn::Module {
  LstmTextImpl()
      : embedding(register_module("embedding", nn::Embedding(10000, 256))),
        lstm(register_module("lstm",
                             nn::LSTM(nn::LSTMOptions(256, 512).num_layers(2).batch_first(true)))),
        fc(register_module("fc", nn::Linear(512, 2))) {}
  Tensor forward(const Tensor& text) {
    const Tensor out = std::get<0>(lstm->forward(embedding(text)));
    return fc(out.select(1, -1));
  }
  nn::Embedding embedding;
  nn::LSTM lstm;
  nn::Linear fc;
};
TORCH_MODULE(LstmText);

}  // namespace real
