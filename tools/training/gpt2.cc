#include "tools/training/gpt2.h"

#include <cmath>
#include <iterator>

#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/layers/basic/linear.h"

namespace ramet::training {
namespace {

constexpr Gpt2Size kSizes[] = {
    {"tiny", 2, 64, 2, 512, 64}, {"124M", 12, 768, 12},   {"small", 12, 768, 12},
    {"medium", 24, 1024, 16},    {"large", 36, 1280, 20}, {"xl", 48, 1600, 25},
};
constexpr double kStddev = 0.02;

nn::Linear linear(int64_t in, int64_t out, double stddev) {
  nn::Linear made(in, out);
  nn::init::normal_(made->weight, 0, stddev);
  nn::init::zeros_(made->bias);
  return made;
}
double residual_stddev(const Gpt2Size& size) {
  return kStddev / std::sqrt(2.0 * static_cast<double>(size.layers));
}

struct AttentionImpl : nn::Cloneable<AttentionImpl> {
  AttentionImpl(const Gpt2Size& size_, double dropout_) : size(size_), dropout(dropout_) {
    AttentionImpl::reset();
  }
  void reset() override {
    const int64_t c = size.width;
    c_attn = register_module("c_attn", linear(c, 3 * c, kStddev));
    c_proj = register_module("c_proj", linear(c, c, residual_stddev(size)));
    drop = register_module("drop", nn::Dropout(dropout));
  }
  Tensor forward(const Tensor& x) {
    const Tensor qkv = c_attn(x).view({x.size(0), x.size(1), 3, size.heads, -1});
    const Tensor seen =
        packed_scaled_dot_product_attention(qkv, /*is_causal=*/true, is_training() ? dropout : 0);
    return drop(c_proj(seen.flatten(2)));
  }
  Gpt2Size size;
  double dropout;
  nn::Linear c_attn{nullptr}, c_proj{nullptr};
  nn::Dropout drop{nullptr};
};
RAMET_MODULE(Attention);

struct MlpImpl : nn::Cloneable<MlpImpl> {
  MlpImpl(const Gpt2Size& size_, double dropout_) : size(size_), dropout(dropout_) {
    MlpImpl::reset();
  }
  void reset() override {
    const int64_t c = size.width;
    c_fc = register_module("c_fc", linear(c, 4 * c, kStddev));
    c_proj = register_module("c_proj", linear(4 * c, c, residual_stddev(size)));
    drop = register_module("drop", nn::Dropout(dropout));
  }
  Tensor forward(const Tensor& x) { return drop(c_proj(gelu(c_fc(x), "tanh"))); }
  Gpt2Size size;
  double dropout;
  nn::Linear c_fc{nullptr}, c_proj{nullptr};
  nn::Dropout drop{nullptr};
};
RAMET_MODULE(Mlp);

struct Gpt2BlockImpl : nn::Cloneable<Gpt2BlockImpl> {
  Gpt2BlockImpl(const Gpt2Size& size_, double dropout_) : size(size_), dropout(dropout_) {
    Gpt2BlockImpl::reset();
  }
  void reset() override {
    const std::vector<int64_t> width{size.width};
    ln_1 = register_module("ln_1", nn::LayerNorm(width));
    attn = register_module("attn", Attention(size, dropout));
    ln_2 = register_module("ln_2", nn::LayerNorm(width));
    mlp = register_module("mlp", Mlp(size, dropout));
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = x + attn(ln_1(x));
    return y + mlp(ln_2(y));
  }
  Gpt2Size size;
  double dropout;
  nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
  Attention attn{nullptr};
  Mlp mlp{nullptr};
};
RAMET_MODULE(Gpt2Block);

}  // namespace

const Gpt2Size& gpt2_size(const std::string& name) {
  for (const Gpt2Size& size : kSizes)
    if (name == size.name) return size;
  fail("train", "--size: got \"", name, "\", expected ", gpt2_sizes());
}

std::string gpt2_sizes() {
  std::string text;
  for (const Gpt2Size& size : kSizes) {
    const bool last = &size == std::end(kSizes) - 1;
    text += (text.empty() ? "" : last ? " or " : ", ") + std::string(size.name);
  }
  return text;
}

void Gpt2Impl::reset() {
  wte = register_module("wte", nn::Embedding(size.symbols, size.width));
  wpe = register_module("wpe", nn::Embedding(size.context, size.width));
  for (const nn::Embedding& table : {wte, wpe}) nn::init::normal_(table->weight, 0, kStddev);
  drop = register_module("drop", nn::Dropout(dropout));
  h = register_module("h", nn::ModuleList());
  for (int64_t i = 0; i < size.layers; ++i) h->push_back(Gpt2Block(size, dropout));
  ln_f = register_module("ln_f", nn::LayerNorm(std::vector<int64_t>{size.width}));
}

Tensor Gpt2Impl::vectors(const Tensor& ids) {
  const Tensor places = arange(ids.size(1), TensorOptions(kLong).device(ids.device()));
  Tensor x = drop(wte(ids.to(kLong)) + wpe(places));
  for (size_t i = 0; i < h->size(); ++i) x = h->at<Gpt2BlockImpl>(i).forward(x);
  return ln_f(x);
}

Tensor Gpt2Impl::forward(const Tensor& ids, const Tensor& targets) {
  return linear_cross_entropy(vectors(ids), wte->weight, targets, {}, {}, Reduction::Sum).view(1);
}

Tensor Gpt2Impl::logits(const Tensor& ids) {
  return nn::functional::linear(vectors(ids), wte->weight);
}

}  // namespace ramet::training
