// An LSTM gets the sum of two waves, in steps of half a second, and predicts how they go on.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "ramet.h"

namespace torch = ramet;
using State = std::tuple<torch::Tensor, torch::Tensor>;

constexpr int64_t kSeen = 50, kAhead = 25, kWidth = 32;

struct ForecasterImpl : torch::nn::Module {
  ForecasterImpl() {
    lstm = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(1, kWidth).num_layers(2).batch_first(true)));
    out = register_module("out", torch::nn::Linear(kWidth, 1));
  }
  // [batch, time, 1]: at each time what comes next; the state carries on.
  torch::Tensor forward(const torch::Tensor& seen, std::optional<State>& state) {
    const auto [hidden, last] = lstm(seen, state);
    state = last;
    return seen + out(hidden);  // a change
  }
  // What is seen, then what was said is seen.
  torch::Tensor forecast(const torch::Tensor& seen, int64_t steps) {
    const torch::NoGradGuard no_grad;
    std::optional<State> state;
    std::vector<torch::Tensor> said = {forward(seen, state).slice(1, -1)};
    while (static_cast<int64_t>(said.size()) < steps) said.push_back(forward(said.back(), state));
    return torch::cat(said, 1);
  }
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear out{nullptr};
};
RAMET_MODULE(Forecaster);

// [count, kSeen + kAhead, 1], each beginning somewhere else in both waves.
torch::Tensor draw(int64_t count) {
  const torch::Tensor time = torch::arange(kSeen + kAhead, torch::kFloat) / 2,
                      turn = 2 * std::acos(-1) * torch::rand({2, count, 1});
  return (torch::sin(time * 0.8 + turn[0]) + 0.5 * torch::sin(time * 1.9 + turn[1])).unsqueeze(-1);
}

int main() {
  torch::manual_seed(1);
  Forecaster model;
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(5e-3));
  const unsigned steps = 300;
  torch::optim::CosineAnnealingLR schedule(optimizer, steps);
  for (unsigned step = 0; step < steps; ++step) {
    const torch::Tensor waves = draw(16);
    std::optional<State> state;
    optimizer.zero_grad();
    const torch::Tensor said = model->forward(waves.slice(1, 0, -1), state),
                        loss = torch::mse_loss(said, waves.slice(1, 1));
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    schedule.step();
    if (step % 60 == 0) std::cout << "step " << step << ": loss " << loss.item<float>() << '\n';
  }

  const torch::Tensor waves = draw(100), come = waves.slice(1, kSeen),
                      said = model->forecast(waves.slice(1, 0, kSeen), kAhead),
                      same = waves.slice(1, kSeen - 1, kSeen).expand_as(come);
  std::cout << std::fixed << std::setprecision(2) << "steps ahead, forecast, came\n";
  for (int64_t i = 0; i < kAhead; i += 4)
    std::cout << std::setw(5) << i + 1 << std::setw(10) << said[0][i].item<float>() << std::setw(8)
              << come[0][i].item<float>() << '\n';
  const auto error = [&](const torch::Tensor& forecast) {
    return std::sqrt(torch::mse_loss(forecast, come).item<double>());
  };
  std::cout << "root of the mean squared error over " << kAhead << " steps: " << error(said)
            << ", of saying that nothing changes: " << error(same) << '\n';
  return error(said) < 0.2 * error(same) ? 0 : 1;
}
