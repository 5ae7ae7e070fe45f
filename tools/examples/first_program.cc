// A network learns exclusive or.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;  // a LibTorch program changes this line and the include

int main() {
  torch::manual_seed(1);
  torch::nn::Sequential net{torch::nn::Linear(2, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1)};
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.05));
  const torch::Tensor x = torch::tensor({{0.f, 0.f}, {0.f, 1.f}, {1.f, 0.f}, {1.f, 1.f}});
  const torch::Tensor y = torch::tensor({{0.f}, {1.f}, {1.f}, {0.f}});
  float error = 1;
  for (int step = 0; step <= 300; ++step) {
    adam.zero_grad();
    torch::Tensor loss = torch::mse_loss(net->forward(x), y);
    loss.backward();
    adam.step();
    error = loss.item<float>();
    if (step % 100 == 0) std::cout << "step " << step << ": loss " << error << '\n';
  }
  std::cout << net->forward(x) << '\n';
  return error < 0.01f ? 0 : 1;
}
