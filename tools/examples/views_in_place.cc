// Writing through a view: the histories of the base and of all its views follow.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

int main() {
  const torch::Tensor w = torch::ones({4}).requires_grad_();
  torch::Tensor all = w * 2;
  const torch::Tensor matrix = all.view({2, 2});  // a view made before
  all.slice(0, 2, 4).mul_(10);                    // written through another one
  matrix[1].sum().backward();                     // ... and seen here
  std::cout << "last node of the base: " << all.grad_fn()->name() << "\nw.grad\n"
            << w.grad() << "\n";
  const bool right = w.grad().equal(torch::tensor({0.f, 0.f, 20.f, 20.f}));

  try {
    w.add_(1);  // a leaf that requires grad
    return 1;
  } catch (const torch::Error& e) { std::cout << "refused: " << e.what() << "\n"; }
  torch::NoGradGuard no_grad;
  w.add_(1);  // as an optimizer does
  return right ? 0 : 1;
}
