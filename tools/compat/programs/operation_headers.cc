// One header an operation, as code for LibTorch's own sources is written.
#include <ATen/ops/_sample_dirichlet.h>
#include <ATen/ops/add.h>
#include <ATen/ops/linalg_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/size.h>
#include <ATen/ops/uniform.h>
#include <ATen/ops/view.h>
#include <ATen/ops/zeros_like.h>

#include <iostream>

int main() {
  at::Tensor x = at::matmul(at::ones({2, 3}), at::ones({3, 2}));
  at::add_out(x, x, at::zeros_like(x));
  std::cout << x.sizes() << " " << at::size(x, 1) << " " << at::linalg_norm(x).item<float>() << " "
            << x.view({4}).sizes() << "\n";
}
