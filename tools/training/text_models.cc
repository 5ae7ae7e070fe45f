// Models of texts, character by character: a GPT and an LSTM.

#include <algorithm>
#include <fstream>
#include <iterator>

#include "autograd/ops.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/layers/sequence/recurrent.h"
#include "tools/training/job.h"
#include "tools/training/options.h"

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

/// Pieces of 64 characters, one at every eighth character, each with the characters that follow its
/// own. Training has those of the first nine tenths of the file, tests those of the rest. The first
/// `limit` of both (0: all). An Error for a file that cannot be read or is too short.
struct Text {
  TrainingData data;
  std::string symbols;  // a row has their numbers
};

Text load_text(const std::string& path, int64_t limit) {
  std::ifstream file(path, std::ios::binary);
  file.peek();  // a folder opens, too
  RAMET_CHECK(file.good(), "train", "--data: got \"", path, "\", expected a text that can be read");
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  RAMET_CHECK(bytes.size() >= 20 * kLength, "train", "--data \"", path, "\": got ", bytes.size(),
              " characters, expected at least ", 20 * kLength);
  std::string symbols = bytes;
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  std::vector<int64_t> numbers;
  for (char c : bytes) numbers.push_back(static_cast<int64_t>(symbols.find(c)));
  const Tensor text = tensor(numbers);
  TrainingData d{path, {}, {}, {}, {}};
  const auto cut = [&](const Tensor& from, Tensor& pieces, Tensor& next) {
    int64_t n = (from.numel() - kLength - 1) / kEvery + 1;
    if (limit > 0) n = std::min(n, limit);
    const Tensor at = (arange(n) * kEvery).unsqueeze(1) + arange(kLength);
    pieces = from.take(at).to(kByte), next = from.take(at + 1);
  };
  const int64_t learned = text.numel() * 9 / 10;
  cut(text.slice(0, 0, learned), d.train_rows, d.train_targets);
  cut(text.slice(0, learned), d.test_rows, d.test_targets);
  return {std::move(d), std::move(symbols)};
}

/// "gpt": four blocks of causal attention and GELU, 128 wide. "lstm": two layers, 128 wide. A piece
/// of symbols becomes the logits of each next symbol, (N, symbols, length). Dropout stands between
/// the blocks or layers.
class TextJob : public Job {
 public:
  TextJob(bool gpt, Text text)
      : Job(std::move(text.data)), gpt_(gpt), symbols_(std::move(text.symbols)) {}

  const char* rows() const override { return "pieces"; }

  nn::Sequential make_model(double dropout) const override {
    nn::Sequential model;
    const int64_t width = gpt_ ? kGptWidth : kLstmWidth,
                  symbols = static_cast<int64_t>(symbols_.size());
    model->push_back("symbols", Symbols(symbols, width, /*places=*/gpt_));
    if (gpt_) {
      for (int64_t i = 0; i < kBlocks; ++i)
        model->push_back("block" + std::to_string(i), Block(dropout));
      model->push_back("norm", nn::LayerNorm(std::vector<int64_t>{width}));
    } else {
      model->push_back("layers", Layers(dropout));
    }
    model->push_back("logits", Logits(width, symbols));
    return model;
  }

  // The model's continuation of the first characters: 100 more, drawn.
  std::string samples(nn::Sequential& model, Device device) const override {
    Tensor said = data_.train_rows[0].to(kFloat).unsqueeze(0);
    for (int64_t i = 0; i < 100; ++i) {
      const Tensor logits = model->forward(said.slice(1, said.size(1) - kLength).to(device));
      const Tensor chances = (logits.select(2, -1) / 0.8).softmax(1);
      said = cat({said, multinomial(chances, 1).to(Device(kCPU, 0), kFloat)}, 1);
    }
    std::string text = "it goes on:\n";
    for (int64_t i = kLength; i < said.numel(); ++i)
      text += symbols_[static_cast<size_t>(said[0][i].item<float>())];
    return text + "\n";
  }

 private:
  const bool gpt_;
  const std::string symbols_;
};

}  // namespace

std::unique_ptr<Job> make_text_job(const Options& options) {
  return std::make_unique<TextJob>(options.model == "gpt", load_text(options.data, options.limit));
}

}  // namespace ramet::training
