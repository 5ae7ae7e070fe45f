// A module with Linear layers, and helpers, for the tests of LoRA.
#pragma once
#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/module/sequential.h"
#include "nn/utils/lora.h"
#include "tests/nn/support.h"

namespace ramet::nn::lora_tests {

using Names = std::vector<std::string>;

/// A user's module: members of the type Linear that it calls in both ways, and no clone().
struct NetImpl : Module {
  explicit NetImpl(int64_t symbols = 8, int64_t width = 6) {
    symbol = register_module("symbol", Embedding(symbols, width));
    first = register_module("first", Linear(width, 10));
    norm = register_module("norm", LayerNorm(std::vector<int64_t>{10}));
    rest = register_module("rest", Sequential{Linear(10, 7), Tanh(), Linear(7, symbols)});
  }
  Tensor forward(const Tensor& x) { return rest->forward(norm(first->forward(symbol(x)).relu())); }
  Embedding symbol{nullptr};
  Linear first{nullptr};
  LayerNorm norm{nullptr};
  Sequential rest{nullptr};
};
RAMET_MODULE(Net);

inline Tensor words() { return (arange(24, kLong) * 5 % 8).view({4, 6}); }
inline Tensor matrix(int64_t rows, int64_t columns, double start = 0.11) {
  return sines(rows * columns, 0.37, start).view({rows, columns});
}
/// lora_B is no zero any more.
inline void fill_branches(Module& m) {
  const NoGradGuard off;
  double start = 0.2;
  for (const Tensor& p : lora_parameters(m))
    p.copy_(matrix(p.size(0), p.size(1), start += 0.3) * 0.5);
}
inline std::vector<double> state_of(Module& m, bool of_branches) {
  std::vector<double> out;
  for (const auto& p : m.named_parameters())
    if ((p.key().find("lora_") != std::string::npos) == of_branches)
      for (const double v : values(p.value())) out.push_back(v);
  return out;
}
inline int64_t trainable(const Module& m) {
  int64_t n = 0;
  for (const Tensor& p : m.parameters()) n += p.requires_grad() ? p.numel() : 0;
  return n;
}
inline Tensor loss_of(Net& net) {
  const Tensor x = words();
  return cross_entropy_loss(net(x).to(kFloat).flatten(0, 1), ((x + 3) % 8).flatten());
}

}  // namespace ramet::nn::lora_tests
