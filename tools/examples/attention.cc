// A small decoder: causal attention, residual sums that are normalised on the way, a loss that
// writes its gradient over the logits. It learns to repeat the symbol of two places before.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;
namespace F = torch::nn::functional;

constexpr int64_t kSymbols = 6, kLength = 12, kWidth = 32, kHeads = 4;

struct DecoderImpl : torch::nn::Module {
  DecoderImpl() {
    symbols = register_module("symbols", torch::nn::Embedding(kSymbols, kWidth));
    places = register_parameter("places", torch::randn({kLength, kWidth}));
    packed = register_module("packed", torch::nn::Linear(kWidth, 3 * kWidth));
    joined = register_module("joined", torch::nn::Linear(kWidth, kWidth));
    gain = register_parameter("gain", torch::ones({kWidth}));
    wide = register_module("wide", torch::nn::Linear(kWidth, 4 * kWidth));
    narrow = register_module("narrow", torch::nn::Linear(4 * kWidth, kWidth));
    out = register_module("out", torch::nn::Linear(kWidth, kSymbols));
  }
  torch::Tensor forward(const torch::Tensor& text) {
    const int64_t batch = text.size(0);
    const torch::Tensor x = symbols(text) + places;
    // [batch, length, 3, heads, columns]: attention reads the parts where they lie.
    const torch::Tensor qkv = packed(x).view({batch, kLength, 3, kHeads, kWidth / kHeads});
    const auto part = [&](int64_t i) { return qkv.select(2, i).transpose(1, 2); };
    const torch::Tensor seen = torch::scaled_dot_product_attention(
        part(0), part(1), part(2), {}, /*dropout_p=*/0, /*is_causal=*/true);
    const auto [normal, sum] =
        F::residual_layer_norm(joined(seen.transpose(1, 2).reshape({batch, kLength, kWidth})), x,
                               F::LayerNormFuncOptions({kWidth}).weight(gain));
    return out(sum + narrow(torch::gelu(wide(normal)))).reshape({-1, kSymbols});
  }
  torch::nn::Embedding symbols{nullptr};
  torch::nn::Linear packed{nullptr}, joined{nullptr}, wide{nullptr}, narrow{nullptr}, out{nullptr};
  torch::Tensor places, gain;
};
RAMET_MODULE(Decoder);

int main() {
  torch::manual_seed(1);
  Decoder model;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-3));
  float last = 0;
  for (int step = 0; step < 200; ++step) {
    const torch::Tensor text = torch::randint(kSymbols, {16, kLength}),
                        before =
                            torch::cat({text.slice(1, 0, 2), text.slice(1, 0, kLength - 2)}, 1);
    optimizer.zero_grad();
    const torch::Tensor loss =
        torch::cross_entropy_loss_consuming(model(text), before.reshape({-1}));
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    last = loss.item<float>();
    if (step % 50 == 0) std::cout << "step " << step << ": loss " << last << '\n';
  }
  std::cout << "in the end: loss " << last << '\n';
  return last < 0.2f ? 0 : 1;
}
