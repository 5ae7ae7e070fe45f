// Mixed precision: products and convolutions in bfloat16, parameters and losses in float32.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

int main() {
  torch::manual_seed(1);
  torch::nn::Sequential net{torch::nn::Linear(2, 32), torch::nn::Tanh(), torch::nn::Linear(32, 2)};
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.02));
  // Points inside of a circle, and outside.
  const torch::Tensor x = torch::randn({256, 2});
  const torch::Tensor y = (x.square().sum(1) < 1.4).to(torch::kLong);
  double last = 0;
  for (int step = 0; step <= 100; ++step) {
    adam.zero_grad();
    torch::Tensor loss;
    {
      const ramet::AutocastGuard autocast(torch::kCPU);  // bfloat16; float16 for torch::kCUDA
      const torch::Tensor scores = net->forward(x);
      loss = torch::cross_entropy_loss(scores, y);
      if (step == 0)
        std::cout << "scores: " << scores.dtype() << ", loss: " << loss.dtype()
                  << ", parameters: " << net->parameters()[0].dtype() << '\n';
    }
    loss.backward();  // in the dtypes of the forward pass; gradients are float32 as their
                      // parameters
    adam.step();
    last = loss.item<double>();
    if (step % 50 == 0) std::cout << "step " << step << ": loss " << last << '\n';
  }
  // What is computed without autocast needs float32.
  const torch::Tensor right = (net->forward(x).argmax(1) == y).to(torch::kFloat).mean();
  std::cout << "right: " << right.item<double>() << '\n';
  return right.item<double>() > 0.95 ? 0 : 1;
}
