// LoRA: a small GPT learns one text, and then a second one by small matrices next to its weights.
// The weights are in bfloat16 by then and stay as they are.
//
//   lora [FIRST SECOND]     of CONTRIBUTING.md and LICENSE
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "ramet.h"

namespace torch = ramet;

constexpr int64_t kLength = 32, kWidth = 48, kHeads = 4, kLayers = 2, kBatch = 16;

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
    return out(norm(blocks->forward(symbol(text) + place(torch::arange(text.size(1))))));
  }
  torch::nn::Embedding symbol{nullptr}, place{nullptr};
  torch::nn::Sequential blocks;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear out{nullptr};
};
RAMET_MODULE(LanguageModel);

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The mean loss of the next symbols, of kBatch pieces of a text.
torch::Tensor loss_of(LanguageModel& model, const torch::Tensor& text) {
  const torch::Tensor starts = torch::randint(text.numel() - kLength, {kBatch, 1}),
                      x = starts + torch::arange(kLength);
  const torch::Tensor logits = model(text.take(x)).to(torch::kFloat);
  return torch::cross_entropy_loss(logits.flatten(0, 1), text.take(x + 1).flatten());
}
double mean_loss(LanguageModel& model, const torch::Tensor& text) {
  const torch::NoGradGuard off;
  double sum = 0;
  for (int i = 0; i < 10; ++i) sum += loss_of(model, text).item<double>();
  return sum / 10;
}
void train(LanguageModel& model, const std::vector<torch::Tensor>& parameters,
           const torch::Tensor& text, int steps, double rate) {
  torch::optim::AdamW optimizer(parameters, torch::optim::AdamWOptions(rate));
  for (int step = 0; step <= steps; ++step) {
    const torch::Tensor loss = loss_of(model, text);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % (steps / 4) == 0)
      std::cout << "  step " << step << ": loss " << loss.item<float>() << '\n';
  }
}
int64_t count(const std::vector<torch::Tensor>& parameters, bool trained_alone) {
  int64_t n = 0;
  for (const torch::Tensor& p : parameters)
    if (p.requires_grad() || !trained_alone) n += p.numel();
  return n;
}

// GPT-2 124M: embeddings of 50257 symbols and 1024 places, 12 blocks, a last norm. The logits use
// the symbols' embedding. Each block has 4 matrices with biases, and two norms.
void print_memory_of_gpt2(int64_t rank) {
  const int64_t width = 768, layers = 12, symbols = 50257, places = 1024;
  const int64_t sizes[][2] = {
      {width, 3 * width}, {width, width}, {width, 4 * width}, {4 * width, width}};
  int64_t base = (symbols + places) * width + 2 * width, branches = 0;
  for (const auto& [in, out] : sizes) {
    base += layers * (in * out + out);
    branches += layers * rank * (in + out);
  }
  base += layers * 4 * width;
  // Bytes for each trained parameter: itself and its gradient in 16 bits, and in float32 the
  // master and Adam's two moments. A frozen one has its own 2 alone. The matrices of branches are
  // in float32: themselves, gradients and moments are as many bytes.
  const int64_t full = 2 + 2 + 4 + 8, frozen = 2, branch = 4 + 4 + 8;
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const int64_t all = full * base, lora = frozen * base + branch * branches;
  std::printf("GPT-2 124M, at the peak without activations, computed from the sizes:\n");
  std::printf("  all of it:    %lld parameters trained, %.1f MiB\n", static_cast<long long>(base),
              mib(all));
  std::printf("  LoRA, rank %lld: %lld parameters trained, %.1f MiB, %.3f of that\n",
              static_cast<long long>(rank), static_cast<long long>(branches), mib(lora),
              static_cast<double>(lora) / static_cast<double>(all));
}

int main(int argc, char** argv) {
  const std::string first = read(argc > 2 ? argv[1] : "CONTRIBUTING.md"),
                    second = read(argc > 2 ? argv[2] : "LICENSE");
  if (std::min(first.size(), second.size()) < 20 * kLength) {
    std::cerr << "expected two texts of some thousand characters\n";
    return 2;
  }
  std::string symbols = first + second;
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  const auto numbers = [&](const std::string& text) {
    std::vector<int64_t> out;
    for (const char c : text) out.push_back(static_cast<int64_t>(symbols.find(c)));
    return torch::tensor(out);
  };
  const torch::Tensor one = numbers(first), other = numbers(second);

  torch::manual_seed(1);
  LanguageModel model(static_cast<int64_t>(symbols.size()));
  std::cout << "the first text, " << count(model->parameters(), true) << " parameters trained\n";
  train(model, model->parameters(), one, 200, 3e-3);

  // In this order: the branches stay in float32.
  model->to(torch::kBFloat16);
  const double before = mean_loss(model, other);
  const int64_t all = count(model->parameters(), false);
  const torch::Tensor kept = model->out->weight.detach().clone();
  torch::nn::apply_lora(model, /*rank=*/4, /*alpha=*/8);
  std::cout << "the second text in bfloat16, " << count(model->parameters(), true) << " of " << all
            << " parameters trained\n";
  train(model, torch::nn::lora_parameters(model), other, 120, 1e-2);
  const bool same = torch::equal(model->out->weight, kept);

  // What another program needs to have this model from the first one; PEFT's names.
  const auto state = torch::nn::lora_state_dict(model, "base_model.model.");
  std::cout << state.size() << " tensors for a file, the first is " << state[0].first << '\n';

  torch::manual_seed(2);
  const double after = mean_loss(model, other);
  torch::nn::merge_lora(model);
  torch::manual_seed(2);
  const double merged = mean_loss(model, other);
  std::cout << "loss on the second text: " << before << " before, " << after << " after, " << merged
            << " merged\n";
  print_memory_of_gpt2(8);
  return same && after < before - 0.3 && std::abs(merged - after) < 0.02 ? 0 : 1;
}
