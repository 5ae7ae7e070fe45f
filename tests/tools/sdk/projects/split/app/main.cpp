#include <torch/torch.h>

#include <iostream>

#include "split/rollout.h"

int main() {
  torch::manual_seed(4);
  split::Policy policy(2, 2);
  split::Stick stick;
  torch::optim::Adam optimizer(policy->parameters(), torch::optim::AdamOptions(0.01));
  double running = 10;
  for (int episode = 1; episode <= 400 && running < 100; ++episode) {
    const auto steps = split::play(policy, stick, 200);
    running = 0.9 * running + 0.1 * static_cast<double>(steps.size());
    optimizer.zero_grad();
    split::loss_of(steps, 0.98).backward();
    optimizer.step();
  }
  const auto copy = std::dynamic_pointer_cast<split::PolicyImpl>(policy->clone());
  std::cout << "steps before it falls: " << running << ", " << copy->parameters().size()
            << " parameters\n";
  return running >= 100 ? 0 : 1;
}
