// Training in 16 bits, in three ways: products in bfloat16 by autocast; parameters in bfloat16 with
// float32 masters in the optimizer; float16 with a loss scale.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

enum class Way { autocast, parameters, scaled };

/// The share of points that the trained net puts on the right side.
double train(Way way) {
  torch::manual_seed(1);
  torch::nn::Sequential net{torch::nn::Linear(2, 32), torch::nn::Tanh(), torch::nn::Linear(32, 2)};
  if (way == Way::parameters) net->to(torch::kBFloat16);
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.02));
  torch::optim::GradScaler scaler(
      torch::optim::GradScalerOptions().enabled(way == Way::scaled).growth_interval(20));
  // Points inside of a circle, and outside.
  const torch::Tensor x = torch::randn({256, 2}).to(net->parameters()[0].scalar_type());
  const torch::Tensor y = (x.square().sum(1) < 1.4).to(torch::kLong);
  double last = 0;
  for (int step = 0; step <= 100; ++step) {
    adam.zero_grad();
    torch::Tensor loss;
    {
      const ramet::AutocastGuard autocast(torch::kCPU,
                                          way == Way::scaled ? torch::kHalf : torch::kBFloat16,
                                          /*enabled=*/way != Way::parameters);
      const torch::Tensor scores = net->forward(x);
      loss = torch::cross_entropy_loss(scores, y);
      if (step == 0)
        std::cout << "scores: " << scores.dtype() << ", loss: " << loss.dtype()
                  << ", parameters: " << net->parameters()[0].dtype() << '\n';
    }
    // In the dtypes of the forward pass. Gradients have the dtype of their parameters.
    scaler.scale(loss).backward();
    scaler.step(adam);
    scaler.update();
    last = loss.item<double>();
    if (step % 50 == 0) std::cout << "step " << step << ": loss " << last << '\n';
  }
  if (way == Way::scaled) std::cout << "scale: " << scaler.get_scale() << '\n';
  const torch::Tensor right = (net->forward(x).argmax(1) == y).to(torch::kFloat).mean();
  return right.item<double>();
}

int main() {
  bool good = true;
  for (const Way way : {Way::autocast, Way::parameters, Way::scaled}) {
    const double right = train(way);
    std::cout << "right: " << right << "\n\n";
    good = good && right > 0.95;
  }
  return good ? 0 : 1;
}
