// Products of linear layers with what comes before or after them: GELU, its derivative, and the
// gradient of a bias. A GPU computes these with the product where cuBLASLt can (Note [GELU and sums
// in cuBLASLt] in runtime/cuda/blas.h). Elsewhere the kernels of matmul.h and pointwise.h run one
// after the other.
#pragma once
#include "kernels/matrix/matmul.h"
#include "kernels/pointwise/pointwise.h"

namespace ramet {
namespace kernels {

/// `product` has one matrix, a floating dtype, its C too, and no ReLU. Its C is dense: c_row is n.
/// Its workspace is matmul's. `other` is m x n, dense, of the product's dtype, and overlaps no
/// operand.
struct LinearGeluArgs {
  MatmulArgs product;
  void* other;
  void* sums;
};

/// other = A B + bias, C = gelu(other), the form with tanh. `sums` is ignored. With cuBLASLt gelu
/// is of the sum before it is rounded to 16 bits.
RAMET_KERNEL(product_gelu, LinearGeluArgs);
/// C = A B gelu'(other), and unless `sums` is null sums[j] = the sum of C's column j, n values.
/// There is no bias. With cuBLASLt only the products with gelu' are rounded, and sums are of values
/// that are not.
RAMET_KERNEL(product_gelu_backward, LinearGeluArgs);
/// C = A B, and sums[i] = the sum of row i of A, m values. `other` is ignored; there is no bias.
/// REQUIRES: A's elements in a column are adjacent (a_row 1, or m at most 1).
RAMET_KERNEL(product_row_sums, LinearGeluArgs);

/// out = f(a, b) for dense matrices of C's size.
RAMET_PLAN PointwiseArgs on_matrix(const MatmulArgs& g, const void* a, const void* b, void* out) {
  PointwiseArgs p{};
  p.a = a, p.b = b, p.out = out, p.n = g.m * g.n;
  p.a_type = p.b_type = p.c_type = p.out_type = g.dtype;
  p.compute = g.dtype == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  return p;
}

}  // namespace kernels
}  // namespace ramet
