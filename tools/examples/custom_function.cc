// An operation of one's own, checked numerically, differentiated twice.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// y = x^3, with a hand-written gradient.
struct Cube : torch::autograd::Function<Cube> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    const torch::Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * 3 * x * x};
  }
};

int main() {
  const torch::Tensor x = torch::tensor({1.0, -2.0, 0.5}, torch::kDouble).requires_grad_();
  const torch::Tensor y = Cube::apply(x);
  std::cout << "made by " << y.grad_fn()->name() << "\n" << y << "\n";

  const torch::Tensor first =
      torch::autograd::grad({y.sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  const torch::Tensor second = torch::autograd::grad({first.sum()}, {x})[0];
  std::cout << "dy/dx\n" << first << "\nd2y/dx2\n" << second << "\n";

  auto f = [](const std::vector<torch::Tensor>& in) {
    return std::vector<torch::Tensor>{Cube::apply(in[0])};
  };
  const bool right = torch::autograd::gradcheck(f, {x}) && torch::autograd::gradgradcheck(f, {x});
  std::cout << (right ? "gradients agree with finite differences\n" : "gradients are wrong\n");
  return right ? 0 : 1;
}
