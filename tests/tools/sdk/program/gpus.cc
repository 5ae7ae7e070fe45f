// A sum on a GPU, and its gradient.
#include <ramet.h>

#include <cstdio>

int main() {
  if (!ramet::cuda::is_available()) return std::puts("no GPU"), 1;
  ramet::Tensor x = ramet::arange(6, ramet::dtype(ramet::kFloat).device(ramet::kCUDA));
  x.requires_grad_(true);
  (x * x).sum().backward();
  const ramet::Tensor expected = ramet::arange(6, ramet::kFloat) * 2;
  return ramet::equal(x.grad().cpu(), expected) ? 0 : 1;
}
