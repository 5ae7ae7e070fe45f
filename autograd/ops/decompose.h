// Decompositions of batches of matrices [*, m, n] of float32 or float64: QR, singular values,
// eigenvalues of symmetric ones, and what is made of them. Who computes is said in
// autograd/ops/linalg.h.
//
// Derivatives are those of Giles (2008) and of Townsend, "Differentiating the singular value
// decomposition" (2016). They divide by differences of values: values nearer to each other than 8
// epsilon times the largest (of the tensor's type) count as equal.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/decompose.inc"

/// Q R = A with orthonormal columns of Q [*, m, k] and an upper triangle R [*, k, n]: k = min(m, n)
/// for mode "reduced", m for "complete"; "r" is the reduced R with an empty Q. Signs are not
/// defined. Differentiable where the first min(m, n) columns of A are independent, with "complete"
/// for m <= n, with "r" not at all.
RAMET_API std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode = "reduced");

/// U, S, Vh with A = U diag(S) Vh; S [*, k] of k = min(m, n), largest first, U [*, m, m] and Vh
/// [*, n, n] with `full_matrices`, else [*, m, k] and [*, k, n]. Signs are not defined, nor which
/// vectors span the space of equal values. The gradient through U and Vh leaves pairs of equal
/// singular values out, and (1 / S) is that of a pseudo-inverse: right where the loss does not
/// depend on what is not defined. Of full
/// matrices the gradient of the first k vectors alone is taken, as by LibTorch. NaN or infinities
/// in A are a LinAlgError.
RAMET_API std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices = true);
/// The older form: U, S, V (not its transpose), reduced with `some`; zeros for U and V without
/// `compute_uv`.
RAMET_API std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some = true,
                                                 bool compute_uv = true);

/// Eigenvalues [*, n], smallest first, and eigenvectors, the columns of [*, n, n], of symmetric A,
/// of which the triangle UPLO ("L" or "U") is read. Signs are not defined. The gradient through the
/// vectors leaves pairs of equal eigenvalues out, as svd's.
RAMET_API std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& A, std::string_view UPLO = "L");

/// How many singular values are above `tol` (default: max(m, n) times the largest times the type's
/// epsilon): int64 [*].
RAMET_API Tensor linalg_matrix_rank(const Tensor& A, std::optional<double> tol = std::nullopt,
                                    bool hermitian = false);

namespace linalg {
inline std::tuple<Tensor, Tensor> qr(const Tensor& A, std::string_view mode = "reduced") {
  return linalg_qr(A, mode);
}
inline std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& A, bool full_matrices = true) {
  return linalg_svd(A, full_matrices);
}
inline Tensor svdvals(const Tensor& A) { return linalg_svdvals(A); }
inline std::tuple<Tensor, Tensor> eigh(const Tensor& A, std::string_view UPLO = "L") {
  return linalg_eigh(A, UPLO);
}
inline Tensor eigvalsh(const Tensor& A, std::string_view UPLO = "L") {
  return linalg_eigvalsh(A, UPLO);
}
inline Tensor pinv(const Tensor& A, double rcond = 1e-15, bool hermitian = false) {
  return linalg_pinv(A, rcond, hermitian);
}
inline Tensor matrix_rank(const Tensor& A, std::optional<double> tol = std::nullopt,
                          bool hermitian = false) {
  return linalg_matrix_rank(A, tol, hermitian);
}
}  // namespace linalg

}  // namespace ramet
