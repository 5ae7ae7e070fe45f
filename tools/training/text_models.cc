#include "tools/training/text_models.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/layers/activation.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/linear.h"
#include "nn/layers/recurrent.h"

namespace ramet::training {
namespace {

constexpr int64_t kLength = 64, kEvery = 8;
constexpr int64_t kGptWidth = 128, kHeads = 4, kBlocks = 4;
constexpr int64_t kLstmWidth = 128;

/// Symbols, and places where there are any, as vectors.
struct SymbolsImpl : nn::Cloneable<SymbolsImpl> {
  SymbolsImpl(int64_t symbols_, int64_t width_, bool places_)
      : symbols(symbols_), width(width_), places(places_) {
    SymbolsImpl::reset();
  }
  void reset() override {
    symbol = register_module("symbol", nn::Embedding(symbols, width));
    if (places) place = register_module("place", nn::Embedding(kLength, width));
  }
  Tensor forward(const Tensor& text) {
    const Tensor x = symbol(text.to(kLong));
    return places ? x + place(arange(text.size(1), TensorOptions(kLong).device(text.device()))) : x;
  }
  int64_t symbols, width;
  bool places;
  nn::Embedding symbol{nullptr}, place{nullptr};
};
RAMET_MODULE(Symbols);

struct BlockImpl : nn::Cloneable<BlockImpl> {
  explicit BlockImpl(double dropout_) : dropout(dropout_) { BlockImpl::reset(); }
  void reset() override {
    const std::vector<int64_t> width{kGptWidth};
    norm1 = register_module("norm1", nn::LayerNorm(width));
    packed = register_module("packed", nn::Linear(kGptWidth, 3 * kGptWidth));
    joined = register_module("joined", nn::Linear(kGptWidth, kGptWidth));
    norm2 = register_module("norm2", nn::LayerNorm(width));
    wide = register_module("wide", nn::Linear(kGptWidth, 4 * kGptWidth));
    narrow = register_module("narrow", nn::Linear(4 * kGptWidth, kGptWidth));
    drop = register_module("drop", nn::Dropout(dropout));
  }
  Tensor forward(const Tensor& x) {
    const Tensor qkv = packed(norm1(x)).view({x.size(0), x.size(1), 3, kHeads, kGptWidth / kHeads});
    const auto part = [&](int64_t i) { return qkv.select(2, i).transpose(1, 2); };
    const Tensor seen = scaled_dot_product_attention(part(0), part(1), part(2), {}, 0,
                                                     /*is_causal=*/true);
    const Tensor y = x + drop(joined(seen.transpose(1, 2).reshape(x.sizes())));
    return y + drop(narrow(gelu(wide(norm2(y)))));
  }
  double dropout;
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear packed{nullptr}, joined{nullptr}, wide{nullptr}, narrow{nullptr};
  nn::Dropout drop{nullptr};
};
RAMET_MODULE(Block);

struct LayersImpl : nn::Cloneable<LayersImpl> {
  explicit LayersImpl(double dropout_) : dropout(dropout_) { LayersImpl::reset(); }
  void reset() override {
    lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(kLstmWidth, kLstmWidth)
                                                .num_layers(2)
                                                .batch_first(true)
                                                .dropout(dropout)));
  }
  Tensor forward(const Tensor& x) { return std::get<0>(lstm(x)); }
  double dropout;
  nn::LSTM lstm{nullptr};
};
RAMET_MODULE(Layers);

/// Logits, the symbols in dimension 1: what losses and replicas take.
struct LogitsImpl : nn::Cloneable<LogitsImpl> {
  LogitsImpl(int64_t width_, int64_t symbols_) : width(width_), symbols(symbols_) {
    LogitsImpl::reset();
  }
  void reset() override { out = register_module("out", nn::Linear(width, symbols)); }
  Tensor forward(const Tensor& x) { return out(x).transpose(1, 2); }
  int64_t width, symbols;
  nn::Linear out{nullptr};
};
RAMET_MODULE(Logits);

}  // namespace

bool is_text_model(const std::string& name) { return name == "gpt" || name == "lstm"; }

nn::Sequential make_text_model(const std::string& name, const ImageShape& shape, double dropout) {
  nn::Sequential model;
  const bool gpt = name == "gpt";
  const int64_t width = gpt ? kGptWidth : kLstmWidth;
  model->push_back("symbols", Symbols(shape.classes, width, /*places=*/gpt));
  if (gpt) {
    for (int64_t i = 0; i < kBlocks; ++i)
      model->push_back("block" + std::to_string(i), Block(dropout));
    model->push_back("norm", nn::LayerNorm(std::vector<int64_t>{width}));
  } else {
    model->push_back("layers", Layers(dropout));
  }
  model->push_back("logits", Logits(width, shape.classes));
  return model;
}

ImageData load_text(const std::string& path, int64_t limit) {
  std::ifstream file(path, std::ios::binary);
  file.peek();  // a folder opens, too
  RAMET_CHECK(file.good(), "train", "--data: got \"", path, "\", expected a text that can be read");
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  RAMET_CHECK(bytes.size() >= 20 * kLength, "train", "--data \"", path, "\": got ", bytes.size(),
              " characters, expected at least ", 20 * kLength);
  ImageData d;
  d.name = path;
  d.symbols = bytes;
  std::sort(d.symbols.begin(), d.symbols.end());
  d.symbols.erase(std::unique(d.symbols.begin(), d.symbols.end()), d.symbols.end());
  std::vector<int64_t> numbers;
  for (char c : bytes) numbers.push_back(static_cast<int64_t>(d.symbols.find(c)));
  const Tensor text = tensor(numbers);
  const auto cut = [&](const Tensor& from, Tensor& pieces, Tensor& next) {
    int64_t n = (from.numel() - kLength - 1) / kEvery + 1;
    if (limit > 0) n = std::min(n, limit);
    const Tensor at = (arange(n) * kEvery).unsqueeze(1) + arange(kLength);
    pieces = from.take(at).to(kByte), next = from.take(at + 1);
  };
  const int64_t learned = text.numel() * 9 / 10;
  cut(text.slice(0, 0, learned), d.train_images, d.train_targets);
  cut(text.slice(0, learned), d.test_images, d.test_targets);
  d.shape = {1, 1, kLength, static_cast<int64_t>(d.symbols.size())};
  return d;
}

std::string text_of(nn::Sequential& model, const ImageData& data, Device device, int64_t count) {
  const NoGradGuard off;
  model->eval();
  Tensor said = data.train_images[0].to(kFloat).unsqueeze(0);
  for (int64_t i = 0; i < count; ++i) {
    const Tensor logits = model->forward(said.slice(1, said.size(1) - kLength).to(device));
    const Tensor chances = (logits.select(2, -1) / 0.8).softmax(1);
    said = cat({said, multinomial(chances, 1).to(Device(kCPU, 0), kFloat)}, 1);
  }
  std::string text;
  for (int64_t i = kLength; i < said.numel(); ++i)
    text += data.symbols[static_cast<size_t>(said[0][i].item<float>())];
  return text;
}

}  // namespace ramet::training
