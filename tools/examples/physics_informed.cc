// A network that solves a differential equation (Raissi et al. 2019): no data, but a loss that says
// how far it is from u_xx + u_yy = f in a square, with u = 0 around it. Second derivatives come
// from autograd, and the loss's own gradient goes through them. Adam begins, L-BFGS ends.
#include <cmath>
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

// sin(pi x) sin(pi y) solves it; the network does not know that.
torch::Tensor solution(const torch::Tensor& at) { return (at * M_PI).sin().prod(1); }
torch::Tensor f(const torch::Tensor& at) { return solution(at) * (-2 * M_PI * M_PI); }

struct Problem {
  torch::nn::Sequential net{torch::nn::Linear(2, 20), torch::nn::Tanh(), torch::nn::Linear(20, 20),
                            torch::nn::Tanh(), torch::nn::Linear(20, 1)};
  torch::Tensor inside = torch::rand({300, 2}), border;

  Problem() {
    // 20 points on each side.
    const torch::Tensor t = torch::rand({20}), zero = torch::zeros({20}), one = torch::ones({20});
    border = torch::cat({torch::stack({t, zero}, 1), torch::stack({t, one}, 1),
                         torch::stack({zero, t}, 1), torch::stack({one, t}, 1)});
    inside.requires_grad_();
  }
  torch::Tensor loss() {
    const auto derivative = [&](const torch::Tensor& of) {
      return torch::autograd::grad({of.sum()}, {inside}, {}, /*retain_graph=*/true,
                                   /*create_graph=*/true)[0];
    };
    const torch::Tensor first = derivative(net->forward(inside));
    const torch::Tensor laplacian =
        derivative(first.select(1, 0)).select(1, 0) + derivative(first.select(1, 1)).select(1, 1);
    return (laplacian - f(inside.detach())).square().mean() +
           net->forward(border).square().mean() * 100;
  }
  double error() {  // against the solution, where it was not trained
    const torch::NoGradGuard off;
    const torch::Tensor at = torch::rand({1000, 2}), exact = solution(at);
    return std::sqrt(((net->forward(at).squeeze(1) - exact).square().sum() / exact.square().sum())
                         .item<double>());
  }
};

int main() {
  torch::manual_seed(3);
  Problem problem;
  torch::optim::Adam adam(problem.net->parameters(), torch::optim::AdamOptions(0.01));
  for (int step = 0; step < 200; ++step) {
    adam.zero_grad();
    problem.loss().backward();
    adam.step();
  }
  const double after_adam = problem.error();
  std::cout << "after 200 steps of Adam: relative error " << after_adam << '\n';

  torch::optim::LBFGS lbfgs(
      problem.net->parameters(),
      torch::optim::LBFGSOptions().max_iter(100).history_size(20).line_search_fn("strong_wolfe"));
  double error = after_adam;
  int calls = 0;
  for (int step = 1; step <= 10; ++step) {
    const torch::Tensor loss = lbfgs.step([&] {
      lbfgs.zero_grad();
      torch::Tensor l = problem.loss();
      l.backward();
      ++calls;
      return l;
    });
    error = problem.error();
    if (step % 2 == 0)
      std::cout << "step " << step << " of L-BFGS, from loss " << loss.item<float>()
                << ": relative error " << error << ", " << calls << " losses\n";
  }
  return error < 0.002 && error < after_adam ? 0 : 1;
}
