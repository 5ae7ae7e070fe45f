// Inverses, equations and determinants of batches of matrices [*, m, n] of float32 or float64. They
// are LibTorch's at::linalg_* and its older functions; namespace linalg has torch::linalg::inv and
// so on.
//
// The host factors the matrices, in double, whatever the tensor's type (kernels/linalg/factor.h). A
// GPU's matrices are copied to the host, and the result back. So each call waits for the device,
// and is refused while a capture is made. All are differentiable to any order. The formulas are
// those of Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
// differentiation" (2008). Where they have no value, the comment of a function says what it does.
#pragma once
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/linalg.inc"

namespace linalg {
inline Tensor inv(const Tensor& A) { return linalg_inv(A); }
inline Tensor det(const Tensor& A) { return linalg_det(A); }
inline std::tuple<Tensor, Tensor> slogdet(const Tensor& A) { return linalg_slogdet(A); }
inline Tensor solve(const Tensor& A, const Tensor& B, bool left = true) {
  return linalg_solve(A, B, left);
}
inline Tensor solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool left = true,
                               bool unitriangular = false) {
  return linalg_solve_triangular(A, B, upper, left, unitriangular);
}
inline Tensor cholesky(const Tensor& A) { return linalg_cholesky(A); }
inline Tensor matrix_power(const Tensor& A, int64_t n) { return linalg_matrix_power(A, n); }
}  // namespace linalg

}  // namespace ramet
