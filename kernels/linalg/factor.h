// Factorisations of batches of matrices on the host, by Eigen: no kernels (a GPU's matrices are
// brought here), compiled once and for the baseline, since Eigen's weak templates must not carry
// instructions that the processor may lack.
//
// Matrices are of doubles, row by row, one behind the other; `a` is never an output. Matrices of a
// batch are cut among threads; each is one thread's, so bits do not depend on their number. Where a
// matrix has no such factorisation, the result says which and why; of the others everything is
// written.
#pragma once
#include <cstdint>

namespace ramet {
namespace kernels {
namespace linalg {

/// The first matrix that cannot be factored, -1 where all can, and what of it stood in the way.
struct Failure {
  int64_t matrix = -1;
  int64_t at = 0;  ///< a pivot of 0, or the order of the leading minor that is not positive, from 1
};

/// out = a^-1, n x n. A failure: singular.
Failure inverse(int64_t batch, int64_t n, const double* a, double* out);
/// a x = b for x, n x k. A failure: singular.
Failure solve(int64_t batch, int64_t n, int64_t k, const double* a, const double* b, double* x);
/// a x = b for x, n x k, where only a triangle of a is read, and with `unit` not its diagonal, of
/// ones. A diagonal with zeros gives infinities.
void solve_triangular(int64_t batch, int64_t n, int64_t k, bool upper, bool unit, const double* a,
                      const double* b, double* x);
/// det a = sign e^logabs; sign is 1, -1 or, of a singular matrix, 0.
void determinant(int64_t batch, int64_t n, const double* a, double* sign, double* logabs,
                 double* det);
/// a = l l^T of symmetric a, of which the lower triangle is read. A failure: not positive definite.
Failure cholesky(int64_t batch, int64_t n, const double* a, double* l);
/// a = q r, m x n, with `columns` orthonormal columns of q and rows of r: min(m, n) or m. q may be
/// null.
void qr(int64_t batch, int64_t m, int64_t n, int64_t columns, const double* a, double* q,
        double* r);
/// a = u diag(s) vh, m x n, s of min(m, n) values, largest first. u is m x m and vh n x n with
/// `full`, else m x min(m, n) and min(m, n) x n; both may be null. A failure: no convergence, as of
/// what has a NaN or infinities.
Failure svd(int64_t batch, int64_t m, int64_t n, bool full, const double* a, double* u, double* s,
            double* vh);
/// a = v diag(w) v^T of symmetric a, of which the lower triangle is read; w from the smallest on.
/// v may be null. A failure: no convergence, as svd.
Failure eigh(int64_t batch, int64_t n, const double* a, double* w, double* v);

}  // namespace linalg
}  // namespace kernels
}  // namespace ramet
