// A Transformer reads strings of 3 to 10 digits and writes them backwards. In training the decoder
// is given the right digits and sees the earlier ones alone; afterwards it is given what it wrote.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;
namespace F = torch::nn::functional;

constexpr int64_t kBegin = 10, kEnd = 11, kSymbols = 12, kLongest = 10, kWidth = 32;

struct WriterImpl : torch::nn::Module {
  WriterImpl() {
    symbols = register_module("symbols", torch::nn::Embedding(kSymbols, kWidth));
    places = register_parameter("places", torch::randn({kLongest + 1, kWidth}));
    auto options = torch::nn::TransformerOptions(kWidth, /*nhead=*/4, 1, 1);
    options.dim_feedforward(2 * kWidth).dropout(0).batch_first(true).norm_first(true);
    model = register_module("model", torch::nn::Transformer(options));
    out = register_module("out", torch::nn::Linear(kWidth, kSymbols));
  }
  torch::Tensor embedded(const torch::Tensor& text) {
    return symbols(text) + places.slice(0, 0, text.size(1));
  }
  // [batch, written, symbols]: the symbol after each of the written symbols. The values after the
  // ends of shorter strings are not used.
  torch::Tensor forward(const torch::Tensor& read, const torch::Tensor& written) {
    const torch::Tensor none, padding = read.eq(kEnd);
    return out(model(embedded(read), embedded(written), none, none, none, padding, none, padding,
                     /*src_is_causal=*/false, /*tgt_is_causal=*/true));
  }
  torch::Tensor write(const torch::Tensor& read) {
    const torch::NoGradGuard no_grad;
    torch::Tensor written = torch::full({read.size(0), 1}, kBegin, torch::kLong);
    for (int64_t i = 0; i <= kLongest; ++i)
      written = torch::cat({written, forward(read, written).select(1, -1).argmax(1, true)}, 1);
    return written.slice(1, 1);
  }
  torch::nn::Embedding symbols{nullptr};
  torch::nn::Transformer model{nullptr};
  torch::nn::Linear out{nullptr};
  torch::Tensor places;
};
RAMET_MODULE(Writer);

// Strings and what they are backwards, both followed by ends.
std::pair<torch::Tensor, torch::Tensor> draw(int64_t count) {
  const torch::Tensor lengths = torch::randint(3, kLongest + 1, {count, 1}),
                      place = torch::arange(kLongest + 1), beyond = place.ge(lengths),
                      digits = torch::randint(10, {count, kLongest + 1});
  return {digits.masked_fill(beyond, kEnd).slice(1, 0, kLongest),
          digits.gather(1, (lengths - 1 - place).clamp(0)).masked_fill(beyond, kEnd)};
}

void print(const torch::Tensor& text) {
  for (int64_t i = 0; i < text.size(0) && text[i].item<int64_t>() != kEnd; ++i)
    std::cout << text[i].item<int64_t>();
}

int main() {
  torch::manual_seed(1);
  Writer model;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(4e-3));
  const unsigned steps = 1000;
  torch::optim::CosineAnnealingLR schedule(optimizer, steps, /*eta_min=*/0, /*warmup=*/20);
  for (unsigned step = 0; step < steps; ++step) {
    const auto [read, right] = draw(32);
    const torch::Tensor written =
        torch::cat({torch::full({32, 1}, kBegin, torch::kLong), right.slice(1, 0, -1)}, 1);
    optimizer.zero_grad();
    const torch::Tensor loss =
        F::cross_entropy(model(read, written).reshape({-1, kSymbols}), right.reshape({-1}));
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    schedule.step();
    if (step % 200 == 0) std::cout << "step " << step << ": loss " << loss.item<float>() << '\n';
  }

  model->eval();
  const auto [read, right] = draw(200);
  const torch::Tensor wrote = model->write(read);
  for (int64_t i = 0; i < 3; ++i) {
    print(read[i]);
    std::cout << " -> ";
    print(wrote[i]);
    std::cout << '\n';
  }
  const double share = wrote.eq(right).all(1).to(torch::kDouble).mean().item<double>();
  std::cout << "of 200 new strings " << 100 * share << " % are right\n";
  return share > 0.9 ? 0 : 1;
}
