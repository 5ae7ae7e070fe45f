// Parameter groups with options of their own, warm-up and cosine, clipped gradients.
#include <iomanip>
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

// y = W2 gelu(W1 x); its modules have names, as in LibTorch.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(8, 32));
    norm = register_module("norm", torch::nn::LayerNorm(std::vector<int64_t>{32}));
    last = register_module("last", torch::nn::Linear(32, 1));
  }
  torch::Tensor forward(const torch::Tensor& x) { return last(torch::gelu(norm(first(x)))); }
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};
RAMET_MODULE(Net);

int main() {
  torch::manual_seed(2);
  Net net;
  std::cout << *net << '\n';

  // Matrices decay, vectors do not.
  std::vector<torch::Tensor> matrices, vectors;
  for (const auto& parameter : net->named_parameters())
    (parameter.value().dim() > 1 ? matrices : vectors).push_back(parameter.value());
  using torch::optim::AdamWOptions;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(matrices,
                      std::make_unique<AdamWOptions>(AdamWOptions(0.02).weight_decay(0.05)));
  groups.emplace_back(vectors, std::make_unique<AdamWOptions>(AdamWOptions(0.02).weight_decay(0)));
  torch::optim::AdamW optimizer(groups, AdamWOptions(0.02));
  const unsigned steps = 200, warmup = 10;
  torch::optim::CosineAnnealingLR schedule(optimizer, steps, /*eta_min=*/0, warmup);

  const torch::Tensor x = torch::randn({64, 8});
  const torch::Tensor y = (x.select(1, 0) * x.select(1, 1)).unsqueeze(1);
  float error = 0;
  for (unsigned step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    torch::Tensor loss = torch::mse_loss(net(x), y);
    loss.backward();
    const double norm = torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    const double rate = optimizer.param_groups()[0].options().get_lr();
    optimizer.step();
    schedule.step();
    error = loss.item<float>();
    if (step % 40 == 0)
      std::cout << "step " << std::setw(3) << step << ": loss " << error
                << ", norm of the gradients " << norm << ", learning rate " << rate << '\n';
  }
  const double rate = optimizer.param_groups()[0].options().get_lr();
  std::cout << "in the end: loss " << error << ", learning rate " << rate << '\n';
  return error < 0.1f && rate < 1e-9 ? 0 : 1;
}
