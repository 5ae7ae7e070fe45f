// A training step that is captured once and then repeated without the function: no graph, no
// checks, no allocation, the same numbers.
#include <chrono>
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

struct Training {
  torch::nn::Sequential net{torch::nn::Linear(8, 32), torch::nn::BatchNorm1d(32), torch::nn::ReLU(),
                            torch::nn::Dropout(0.1), torch::nn::Linear(32, 1)};
  torch::optim::AdamW optimizer{net->parameters(), torch::optim::AdamWOptions(0.01)};
  torch::optim::CosineAnnealingLR schedule{optimizer, /*t_max=*/400};

  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& y) {
    optimizer.zero_grad();
    torch::Tensor loss = torch::mse_loss(net->forward(x), y);
    loss.backward();
    optimizer.step();
    schedule.step();
    return loss;
  }
};

int main() {
  double losses[2], seconds[2];
  for (const bool captured : {false, true}) {
    torch::manual_seed(3);
    Training training;
    torch::Captured step(
        [&](const torch::Tensor& x, const torch::Tensor& y) { return training.step(x, y); });
    const torch::Tensor inputs = torch::randn({400, 16, 8});
    const torch::Tensor wanted = inputs.sum(2, /*keepdim=*/true).tanh();
    torch::Tensor loss;
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < 400; ++i)
      loss = captured ? step(inputs[i], wanted[i]) : training.step(inputs[i], wanted[i]);
    seconds[captured] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    losses[captured] = loss.item<double>();
    if (!captured) continue;
    // The first step makes the optimizer's state, so it happens once.
    std::cout << "captured " << step.counters().captures << " times, replayed "
              << step.counters().replays << " times\n";
    // Evaluation is another case: dropout and batch norm behave differently.
    training.net->eval();
    step(inputs[0], wanted[0]);
    std::cout << "captured again because of: " << step.last_failed_guard() << '\n';

    // What the host reads cannot be repeated.
    torch::Captured reads([](const torch::Tensor& x) { return x * x.sum().item<float>(); });
    try {
      reads(inputs[0]);
    } catch (const torch::Error& e) { std::cout << e.what() << '\n'; }
  }
  std::cout << "loss " << losses[0] << " eager, " << losses[1]
            << " captured: " << (losses[0] == losses[1] ? "the same" : "different") << '\n';
  std::cout << "a step takes " << seconds[0] / 400 * 1e6 << " us, captured "
            << seconds[1] / 400 * 1e6 << " us\n";
  return losses[0] == losses[1] ? 0 : 1;
}
