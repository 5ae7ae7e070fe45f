// Reinforcement learning on a pole that is to be balanced. Styles: an environment of one's own, an
// actor and a critic in one net that returns a tuple or an own struct, a replay memory of tensors,
// returns and advantages, log_prob by gather, entropy, a target net, soft updates.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <iostream>
#include <memory>
#include <tuple>
#include <vector>

// A cart with a pole; Euler steps.
class CartPole {
 public:
  torch::Tensor reset(double start) {
    state_ = {start, 0.0, -start, 0.0};
    steps_ = 0;
    return observation();
  }
  std::tuple<torch::Tensor, double, bool> step(int64_t action) {
    auto& [x, speed, angle, turning] = state_;
    const double force = action == 1 ? 10.0 : -10.0;
    const double push = (force + 0.05 * turning * turning * std::sin(angle)) / 1.1;
    const double spin = (9.8 * std::sin(angle) - std::cos(angle) * push) /
                        (0.5 * (4.0 / 3.0 - 0.1 * std::cos(angle) * std::cos(angle) / 1.1));
    const double thrust = push - 0.05 * spin * std::cos(angle) / 1.1;
    x += 0.02 * speed, speed += 0.02 * thrust, angle += 0.02 * turning, turning += 0.02 * spin;
    const bool done = std::abs(x) > 2.4 || std::abs(angle) > 0.21 || ++steps_ >= 30;
    return std::make_tuple(observation(), 1.0, done);
  }

 private:
  torch::Tensor observation() const {
    return torch::tensor({state_.x, state_.speed, state_.angle, state_.turning})
        .to(torch::kFloat32);
  }
  struct State {
    double x = 0, speed = 0, angle = 0, turning = 0;
  } state_;
  int steps_ = 0;
};

struct ActorCriticImpl : public torch::nn::Module {
  ActorCriticImpl(int64_t inputs, int64_t actions) {
    body = register_module("body", torch::nn::Linear(inputs, 16));
    actor = register_module("actor", torch::nn::Linear(16, actions));
    critic = register_module("critic", torch::nn::Linear(16, 1));
    torch::NoGradGuard no_grad;
    for (auto& p : parameters())
      p.copy_(torch::arange(p.numel(), torch::kDouble).mul(1.1).add(0.2).sin().div(3).view_as(p));
  }
  std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    x = torch::relu(body->forward(x));
    return {torch::softmax(actor->forward(x), -1), critic->forward(x)};
  }
  torch::nn::Linear body{nullptr}, actor{nullptr}, critic{nullptr};
};
TORCH_MODULE(ActorCritic);

struct Transition {
  torch::Tensor state;
  torch::Tensor action;
  torch::Tensor reward;
  torch::Tensor done;
};

class Memory {
 public:
  explicit Memory(size_t capacity) : capacity_(capacity) {}
  void push(Transition t) {
    if (buffer_.size() == capacity_) buffer_.pop_front();
    buffer_.push_back(std::move(t));
  }
  // Everything, one tensor for each field.
  Transition all() const {
    std::vector<torch::Tensor> states, actions, rewards, dones;
    for (const auto& t : buffer_) {
      states.push_back(t.state), actions.push_back(t.action);
      rewards.push_back(t.reward), dones.push_back(t.done);
    }
    return {torch::stack(states), torch::cat(actions), torch::cat(rewards), torch::cat(dones)};
  }
  size_t size() const { return buffer_.size(); }

 private:
  size_t capacity_;
  std::deque<Transition> buffer_;
};

// Sums of what is still to come, each worth a little less.
torch::Tensor discounted(const torch::Tensor& rewards, const torch::Tensor& dones, double gamma) {
  auto returns = torch::zeros_like(rewards);
  auto running = torch::zeros({1});
  for (int64_t i = rewards.size(0) - 1; i >= 0; --i) {
    running = rewards[i] + gamma * running * (1 - dones[i].to(torch::kFloat));
    returns[i] = running.squeeze();
  }
  return returns;
}

void soft_update(torch::nn::Module& target, const torch::nn::Module& source, double tau) {
  torch::NoGradGuard no_grad;
  const auto from = source.named_parameters();
  for (auto& p : target.named_parameters()) p.value().mul_(1 - tau).add_(from[p.key()], tau);
}

int main() {
  CartPole environment;
  ActorCritic net(4, 2), target(4, 2);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-2).eps(1e-5));
  Memory memory(64);

  for (int episode = 0; episode < 6; ++episode) {
    auto state = environment.reset(0.01 * episode);
    bool done = false;
    int length = 0;
    while (!done) {
      // What is tried is given, so that every run sees the same: two to the right, one to the left.
      const int64_t action = (length + episode) % 3 == 0 ? 0 : 1;
      auto [next, reward, finished] = environment.step(action);
      memory.push({state, torch::tensor({action}), torch::tensor({static_cast<float>(reward)}),
                   torch::tensor({finished})});
      state = next, done = finished;
      ++length;
    }

    const auto batch = memory.all();
    const auto returns = discounted(batch.reward, batch.done, 0.95);
    auto [probabilities, values] = net->forward(batch.state);
    const auto value = values.squeeze(-1);
    auto advantage = (returns - value).detach();
    advantage = (advantage - advantage.mean()) / (advantage.std(/*unbiased=*/false) + 1e-8);
    const auto log_probability =
        probabilities.gather(1, batch.action.unsqueeze(1)).log().squeeze(1);
    const auto entropy = -(probabilities * torch::log(probabilities + 1e-8)).sum(1).mean();
    const auto policy_loss = -(log_probability * advantage).mean();
    const auto value_loss = torch::smooth_l1_loss(value, returns);
    const auto loss = policy_loss + 0.5 * value_loss - 0.01 * entropy;
    optimizer.zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5);
    optimizer.step();
    soft_update(*target, *net, 0.1);
    std::printf("episode %d: %d steps, memory %zu, value loss %.3f, entropy %.3f\n", episode,
                length, memory.size(), value_loss.item<double>(), entropy.item<double>());
  }
  std::fflush(stdout);

  // The net alone, always what it thinks best.
  torch::NoGradGuard no_grad;
  net->eval();
  auto state = environment.reset(0.02);
  std::vector<int64_t> actions;
  for (bool done = false; !done && actions.size() < 8;) {
    const auto probabilities = std::get<0>(net->forward(state));
    const auto action = probabilities.argmax().item<int64_t>();
    actions.push_back(action);
    std::tie(state, std::ignore, done) = environment.step(action);
  }
  std::cout << "actions " << actions << "\n"
            << std::get<0>(target->forward(state.unsqueeze(0))).mul(100).round() << "\n";
  std::cout << discounted(torch::ones({4}), torch::tensor({false, true, false, false}), 0.5)
            << "\n";
  std::cout << torch::clamp(torch::tensor({0.5, 1.5, 1.0}), 1 - 0.2, 1 + 0.2)
            << torch::min(torch::tensor({1., 3.}), torch::tensor({2., 2.})) << "\n";
  std::cout << torch::nn::functional::one_hot(torch::tensor({1, 0}), 2)
            << torch::eq(torch::tensor({1, 2}), 2).to(torch::kLong) << "\n";
  return 0;
}
