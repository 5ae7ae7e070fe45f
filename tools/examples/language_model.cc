// A small GPT that reads a text character by character and goes on in its manner.
//
//   language_model [TEXT [STEPS]]     of CONTRIBUTING.md, 1000 steps
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "ramet.h"

namespace torch = ramet;
namespace F = torch::nn::functional;

constexpr int64_t kLength = 64, kWidth = 64, kHeads = 4, kLayers = 2, kBatch = 16;

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    const std::vector<int64_t> width{kWidth};
    norm1 = register_module("norm1", torch::nn::LayerNorm(width));
    norm2 = register_module("norm2", torch::nn::LayerNorm(width));
    packed = register_module("packed", torch::nn::Linear(kWidth, 3 * kWidth));
    joined = register_module("joined", torch::nn::Linear(kWidth, kWidth));
    wide = register_module("wide", torch::nn::Linear(kWidth, 4 * kWidth));
    narrow = register_module("narrow", torch::nn::Linear(4 * kWidth, kWidth));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor qkv =
        packed(norm1(x)).view({x.size(0), x.size(1), 3, kHeads, kWidth / kHeads});
    const auto part = [&](int64_t i) { return qkv.select(2, i).transpose(1, 2); };
    const torch::Tensor seen = torch::scaled_dot_product_attention(
        part(0), part(1), part(2), {}, /*dropout_p=*/0, /*is_causal=*/true);
    const torch::Tensor y = x + joined(seen.transpose(1, 2).reshape(x.sizes()));
    return y + narrow(torch::gelu(wide(norm2(y))));
  }
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  torch::nn::Linear packed{nullptr}, joined{nullptr}, wide{nullptr}, narrow{nullptr};
};
RAMET_MODULE(Block);

struct LanguageModelImpl : torch::nn::Module {
  explicit LanguageModelImpl(int64_t symbols) {
    symbol = register_module("symbol", torch::nn::Embedding(symbols, kWidth));
    place = register_module("place", torch::nn::Embedding(kLength, kWidth));
    for (int64_t i = 0; i < kLayers; ++i) blocks->push_back(Block());
    register_module("blocks", blocks);
    norm = register_module("norm", torch::nn::LayerNorm(std::vector<int64_t>{kWidth}));
    out = register_module("out", torch::nn::Linear(kWidth, symbols));
  }
  /// (batch, length) symbols: the logits of each next one.
  torch::Tensor forward(const torch::Tensor& text) {
    const torch::Tensor places = torch::arange(text.size(1));
    return out(norm(blocks->forward(symbol(text) + place(places))));
  }
  torch::nn::Embedding symbol{nullptr}, place{nullptr};
  torch::nn::Sequential blocks;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear out{nullptr};
};
RAMET_MODULE(LanguageModel);

// kBatch pieces of a text and what follows each of their symbols.
std::pair<torch::Tensor, torch::Tensor> pieces(const torch::Tensor& text) {
  const torch::Tensor starts = torch::randint(text.numel() - kLength, {kBatch, 1}),
                      x = starts + torch::arange(kLength);
  return {text.take(x), text.take(x + 1).reshape({-1})};
}

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "CONTRIBUTING.md";
  const int steps = argc > 2 ? std::stoi(argv[2]) : 1000;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() < 20 * kLength) {
    std::cerr << path << ": got " << bytes.size() << " characters, expected some thousand\n";
    return 2;
  }
  std::string symbols = bytes;
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  std::vector<int64_t> numbers;
  for (char c : bytes) numbers.push_back(static_cast<int64_t>(symbols.find(c)));
  const torch::Tensor text = torch::tensor(numbers);
  // The last tenth is not learned.
  const torch::Tensor read = text.slice(0, 0, text.numel() * 9 / 10),
                      rest = text.slice(0, text.numel() * 9 / 10);
  // What a guess by frequency alone would cost.
  const torch::Tensor share =
      F::one_hot(read, static_cast<int64_t>(symbols.size())).to(torch::kFloat).mean(0);
  const double guess = -(share * (share + 1e-9).log()).sum().item<double>();

  torch::manual_seed(1);
  LanguageModel model(static_cast<int64_t>(symbols.size()));
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-3));
  torch::optim::CosineAnnealingLR schedule(optimizer, static_cast<unsigned>(steps), 3e-4,
                                           /*warmup=*/static_cast<unsigned>(steps / 20));
  const auto loss_of = [&](const torch::Tensor& of) {
    const auto [x, y] = pieces(of);
    return torch::cross_entropy_loss(model(x).reshape({y.numel(), -1}), y);
  };
  for (int step = 0; step < steps; ++step) {
    const torch::Tensor loss = loss_of(read);
    optimizer.zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    schedule.step();
    if (step % (steps / 5 + 1) == 0)
      std::cout << "step " << step << ": loss " << loss.item<float>() << '\n';
  }

  const torch::NoGradGuard off;
  model->eval();
  double unseen = 0;
  for (int i = 0; i < 20; ++i) unseen += loss_of(rest).item<double>() / 20;
  std::cout << "on text that it has not read: " << unseen << ", by frequency alone: " << guess
            << "\n\n";
  torch::Tensor said = read.slice(0, 0, kLength / 2).unsqueeze(0);
  for (int i = 0; i < 200; ++i) {
    const torch::Tensor logits = model(said.slice(1, std::max<int64_t>(0, said.size(1) - kLength)));
    const torch::Tensor next = torch::multinomial((logits.select(1, -1) / 0.7).softmax(-1), 1);
    said = torch::cat({said, next}, 1);
  }
  for (int64_t i = 0; i < said.numel(); ++i)
    std::cout << symbols[static_cast<size_t>(said[0][i].item<int64_t>())];
  std::cout << '\n';
  return unseen < 0.85 * guess ? 0 : 1;
}
