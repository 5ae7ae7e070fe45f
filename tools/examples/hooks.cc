// Hooks: on a tensor's gradient, on a parameter once its gradient is there, around a module's
// forward.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

int main() {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));

  // Of a module: it sees the tensors that go in and come out, and may replace them.
  double largest = 0;
  const unsigned handle = net[1]->register_forward_hook([&](torch::nn::Module& module,
                                                            const std::vector<torch::Tensor>&,
                                                            std::vector<torch::Tensor>& outputs) {
    largest = outputs[0].max().item<double>();
    std::cout << module.name() << " gives at most " << largest << '\n';
    outputs[0] = outputs[0].clamp_max(1);
  });

  // Of a tensor: called with its gradient before that goes on; what it returns goes on instead.
  torch::Tensor x = torch::randn({3, 4}).mul(3).requires_grad_();
  torch::Tensor hidden = net->forward(x);
  hidden.retain_grad();  // not a leaf: its gradient would not be kept
  hidden.register_hook([](const torch::Tensor& grad) { return grad.clamp(-0.1, 0.1); });

  // Of a parameter: called when its gradient is complete. Here every parameter takes its own step
  // at once, and its gradient is dropped: no backward holds all gradients at a time.
  int steps = 0;
  for (const torch::Tensor& parameter : net->parameters())
    parameter.register_post_accumulate_grad_hook([&](const torch::Tensor& p) {
      torch::NoGradGuard no_grad;
      torch::Tensor value = p;
      value.sub_(p.grad(), 0.1);
      value.mutable_grad().reset();
      ++steps;
    });
  hidden.pow(2).sum().backward();
  std::cout << "clipped gradient of the result\n"
            << hidden.grad() << '\n'
            << steps << " parameters took a step\n";

  net[1]->remove_forward_hook(handle);
  const double before = largest;
  net->forward(x.detach() * 10);
  const bool right = hidden.grad().abs().max().item<float>() <= 0.1f && steps == 4 &&
                     largest == before && !net->parameters()[0].grad().defined();
  return right ? 0 : 1;
}
