#include "split/rollout.h"

#include <cmath>

namespace split {

at::Tensor Stick::reset() {
  angle_ = torch::empty({1}).uniform_(-0.05, 0.05).item<float>();
  speed_ = 0;
  return torch::tensor({angle_, speed_});
}

c10::optional<at::Tensor> Stick::push(int64_t action) {
  speed_ += 0.05f * std::sin(angle_) + (action == 0 ? -0.03f : 0.03f);
  angle_ += speed_;
  if (std::abs(angle_) > 0.4f) return c10::nullopt;
  return torch::tensor({angle_, speed_});
}

std::vector<Step> play(Policy& policy, Stick& stick, int64_t most) {
  std::vector<Step> steps;
  c10::optional<at::Tensor> state = stick.reset();
  for (int64_t i : c10::irange(most)) {
    (void)i;
    auto [log_probabilities, value] = policy->forward(*state);
    const int64_t action = log_probabilities.exp().multinomial(1).item<int64_t>();
    state = stick.push(action);
    steps.push_back({log_probabilities[action], value, 1.f});
    if (!state) break;
  }
  return steps;
}

at::Tensor loss_of(const std::vector<Step>& steps, double discount) {
  TORCH_CHECK(!steps.empty(), "nothing was played");
  std::vector<at::Tensor> actor, critic;
  double sum = 0;
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    sum = it->reward + discount * sum;
    const auto target = torch::full({}, sum, torch::kFloat);
    actor.push_back(-it->log_probability * (target - it->value.detach()));
    critic.push_back(torch::smooth_l1_loss(it->value, target));
  }
  return at::stack(actor).sum() + at::stack(critic).sum();
}

}  // namespace split
