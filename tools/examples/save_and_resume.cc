// Saving a module, and a run that is stopped and goes on with the same bits.
#include <cstdio>
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

struct Run {
  torch::nn::Sequential net{torch::nn::Linear(8, 16), torch::nn::Tanh(), torch::nn::Dropout(0.5),
                            torch::nn::Linear(16, 1)};
  torch::optim::Adam adam{net->parameters(), torch::optim::AdamOptions(0.01)};
  int64_t step = 0;

  void train(int64_t until) {
    for (; step < until; ++step) {
      const torch::Tensor x = torch::randn({16, 8});
      adam.zero_grad();
      torch::mse_loss(net->forward(x), x.sum(1, true)).backward();
      adam.step();
    }
  }
  // Everything the run needs to go on; the generators' state is added by itself.
  torch::Checkpoint checkpoint() {
    torch::Checkpoint c;
    c.add("net", *net).add("adam", adam).add("step", step);
    return c;
  }
  torch::Tensor weights() const {
    return torch::nn::utils::parameters_to_vector(net->parameters()).detach();
  }
};

int main() {
  const std::string path = "save_and_resume.checkpoint", model = "save_and_resume.safetensors";
  torch::manual_seed(1);
  Run first;
  first.train(50);
  first.checkpoint().save(path);  // whole or not at all
  first.train(100);

  torch::manual_seed(99);  // another process would start anywhere
  Run second;
  second.checkpoint().load(path);
  std::cout << "resumed at step " << second.step << '\n';
  second.train(100);
  const bool same = first.weights().equal(second.weights());
  std::cout << (same ? "the same weights as without the stop\n" : "the weights differ\n");

  torch::save(first.net, model);  // what safetensors reads
  torch::nn::Sequential loaded{torch::nn::Linear(8, 16), torch::nn::Tanh(), torch::nn::Dropout(0.5),
                               torch::nn::Linear(16, 1)};
  torch::load(loaded, model);
  first.net->eval();
  loaded->eval();
  const torch::Tensor x = torch::ones({2, 8});
  const bool equal = first.net->forward(x).equal(loaded->forward(x));
  std::cout << (equal ? "the saved model computes the same\n" : "the saved model differs\n");
  std::remove(path.c_str());
  std::remove(model.c_str());
  return same && equal ? 0 : 1;
}
