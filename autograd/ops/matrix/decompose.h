// Decompositions of batches of matrices [*, m, n] of float32 or float64: QR, singular values,
// eigenvalues of symmetric ones, and functions composed of them. autograd/ops/matrix/linalg.h says
// which device computes.
//
// Derivatives are those of Giles (2008) and of Townsend, "Differentiating the singular value
// decomposition" (2016). They divide by differences of values, in float64 for float32 matrices too.
// Between equal values, the gradient through vectors depends on the loss. Where the loss takes
// vectors alone and does not change when these vectors turn, it is 0. Where the loss also takes the
// values it is NaN, because their gradients do not determine it. V f(L) V^T and most second
// derivatives are such losses. Where all gradients of both vectors and values are exactly 0 it is
// 0.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/decompose.inc"

RAMET_API std::tuple<Tensor&, Tensor&, Tensor&> linalg_svd_out(
    Tensor& U, Tensor& S, Tensor& Vh, const Tensor& A, bool full_matrices = true,
    std::optional<std::string_view> driver = std::nullopt);
RAMET_API std::tuple<Tensor&, Tensor&, Tensor&> svd_out(Tensor& U, Tensor& S, Tensor& V,
                                                        const Tensor& self, bool some = true,
                                                        bool compute_uv = true);

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
  return tol ? linalg_matrix_rank(A, *tol, hermitian)
             : linalg_matrix_rank(A, std::optional<Tensor>(), std::nullopt, hermitian);
}
}  // namespace linalg

}  // namespace ramet
