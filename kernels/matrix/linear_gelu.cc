#include "kernels/matrix/linear_gelu.h"

namespace ramet::kernels::RAMET_VARIANT {

void product_gelu(const LinearGeluArgs& a) {
  MatmulArgs g = a.product;
  g.c = a.other;
  matmul(g);
  gelu_tanh(on_matrix(g, a.other, nullptr, a.product.c));
}

void product_gelu_backward(const LinearGeluArgs& a) {
  const MatmulArgs& g = a.product;
  matmul(g);
  gelu_tanh_backward(on_matrix(g, g.c, a.other, g.c));
  if (a.sums) sum_rows({g.c, a.sums, g.m, g.n, g.c_row, g.dtype, g.dtype});
}

void product_row_sums(const LinearGeluArgs& a) {
  const MatmulArgs& g = a.product;
  matmul(g);
  sum_rows({g.a, a.sums, g.k, g.m, g.a_col, g.dtype, g.dtype});
}

}  // namespace ramet::kernels::RAMET_VARIANT
