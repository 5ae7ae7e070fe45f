// A pole on a cart that learns to stand: proximal policy optimisation (Schulman et al. 2017) on the
// cart-pole of Barto, Sutton and Anderson (1983), 16 carts at a time. The carts are tensors too.
#include <cmath>
#include <iomanip>
#include <iostream>
#include <vector>

#include "ramet.h"

namespace torch = ramet;

constexpr int64_t kCarts = 16, kSteps = 128, kLimit = 500;

// Position and angle with their speeds, one row a cart; a cart begins anew when its pole has fallen
// or after kLimit steps.
struct CartPoles {
  torch::Tensor state = start(), age = torch::zeros({kCarts});

  static torch::Tensor start() { return torch::rand({kCarts, 4}) * 0.1 - 0.05; }
  struct Outcome {
    torch::Tensor fell, stopped, lengths;  // 0 or 1; the ages of those that began anew
    torch::Tensor last;                    // the states before that
  };
  /// Pushes each cart to the left (0) or to the right (1) for 20 ms.
  Outcome push(const torch::Tensor& action) {
    const double gravity = 9.8, pole = 0.1, total = 1.1, half_length = 0.5, tau = 0.02;
    const auto part = state.unbind(1);
    const torch::Tensor force = action * 20.0 - 10.0, cos = part[2].cos(), sin = part[2].sin();
    const torch::Tensor pull = (force + part[3].square() * sin * (pole * half_length)) / total;
    const torch::Tensor turn =
        (sin * gravity - cos * pull) / ((cos.square() * (-pole / total) + 4.0 / 3) * half_length);
    const torch::Tensor speed_up = pull - turn * cos * (pole * half_length / total);
    const torch::Tensor next = torch::stack({part[0] + part[1] * tau, part[1] + speed_up * tau,
                                             part[2] + part[3] * tau, part[3] + turn * tau},
                                            1);
    age = age + 1;
    Outcome o;
    o.last = next;
    const torch::Tensor fell =
        torch::logical_or(next.select(1, 0).abs() > 2.4, next.select(1, 2).abs() > 12 * M_PI / 180);
    const torch::Tensor ends = torch::logical_or(fell, age >= kLimit);
    o.fell = fell.to(torch::kFloat), o.stopped = ends.to(torch::kFloat);
    o.lengths = age.masked_select(ends);
    state = torch::where(ends.unsqueeze(1), start(), next);
    age = torch::where(ends, torch::zeros({kCarts}), age);
    return o;
  }
};

// The logits of the two actions, and how long it expects the pole to stand (discounted).
struct PolicyImpl : torch::nn::Module {
  PolicyImpl() {
    actor = register_module("actor", net(2));
    critic = register_module("critic", net(1));
  }
  static torch::nn::Sequential net(int64_t out) {
    return torch::nn::Sequential(torch::nn::Linear(4, 64), torch::nn::Tanh(),
                                 torch::nn::Linear(64, 64), torch::nn::Tanh(),
                                 torch::nn::Linear(64, out));
  }
  torch::Tensor value(const torch::Tensor& x) { return critic->forward(x).squeeze(-1); }
  torch::nn::Sequential actor{nullptr}, critic{nullptr};
};
RAMET_MODULE(Policy);

int main() {
  torch::manual_seed(4);
  const double gamma = 0.99, lambda = 0.95;
  Policy policy;
  torch::optim::Adam adam(policy->parameters(), torch::optim::AdamOptions(1e-3));
  CartPoles carts;
  double mean_length = 0;
  int round = 0;
  for (; round < 100 && mean_length < 450; ++round) {
    // What the policy of now does.
    std::vector<torch::Tensor> states, actions, chances, values, deltas, stops;
    std::vector<torch::Tensor> lengths;
    {
      const torch::NoGradGuard off;
      for (int64_t t = 0; t < kSteps; ++t) {
        states.push_back(carts.state);
        const torch::Tensor logits = policy->actor->forward(carts.state).log_softmax(-1);
        const torch::Tensor action = torch::multinomial(logits.exp(), 1);
        chances.push_back(logits.gather(1, action).squeeze(1));
        actions.push_back(action);
        values.push_back(policy->value(carts.state));
        const auto o = carts.push(action.squeeze(1).to(torch::kFloat));
        // A point a step. A cart that stopped at the limit could have gone on.
        deltas.push_back(1 + gamma * policy->value(o.last) * (1 - o.fell) - values.back());
        stops.push_back(o.stopped);
        lengths.push_back(o.lengths);
      }
    }
    // Generalised advantages (Schulman et al. 2016).
    std::vector<torch::Tensor> advantages(kSteps);
    torch::Tensor sum = torch::zeros({kCarts});
    for (size_t t = kSteps; t-- > 0;)
      advantages[t] = sum = deltas[t] + gamma * lambda * (1 - stops[t]) * sum;
    const torch::Tensor x = torch::cat(states), a = torch::cat(actions),
                        before = torch::cat(chances);
    torch::Tensor advantage = torch::cat(advantages);
    const torch::Tensor goal = advantage + torch::cat(values);
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8);

    for (int epoch = 0; epoch < 4; ++epoch)
      for (const torch::Tensor& some : torch::randperm(kCarts * kSteps).split(512)) {
        const auto of = [&](const torch::Tensor& all) { return all.index_select(0, some); };
        const torch::Tensor logits = policy->actor->forward(of(x)).log_softmax(-1);
        const torch::Tensor ratio = (logits.gather(1, of(a)).squeeze(1) - of(before)).exp();
        const torch::Tensor gain =
            torch::minimum(ratio * of(advantage), ratio.clamp(0.8, 1.2) * of(advantage));
        const torch::Tensor entropy = -(logits.exp() * logits).sum(-1).mean();
        const torch::Tensor loss =
            -gain.mean() - 0.01 * entropy + 0.5 * (policy->value(of(x)) - of(goal)).square().mean();
        adam.zero_grad();
        loss.backward();
        torch::nn::utils::clip_grad_norm_(policy->parameters(), 0.5);
        adam.step();
      }
    const torch::Tensor all = torch::cat(lengths);
    if (all.numel() > 0) mean_length = all.mean().item<double>();
    if (round % 10 == 0)
      std::cout << "round " << std::setw(2) << round << ": " << all.numel() << " poles stood for "
                << mean_length << " steps\n";
  }
  std::cout << "after " << round << " rounds they stand for " << mean_length << " steps\n";
  return mean_length >= 450 ? 0 : 1;
}
