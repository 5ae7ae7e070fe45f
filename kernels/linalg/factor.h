// Factorisations of batches of matrices on the host, by Eigen. They are no kernels (a GPU's
// matrices are copied to the host). They are compiled once and for the baseline, because Eigen's
// weak templates must not contain instructions that the processor may lack.
//
// Matrices are of doubles, row by row, one after the other; `a` is never an output. The matrices of
// a batch are divided among threads. One thread computes a matrix, so bits do not depend on the
// number of threads. If a matrix has no such factorisation, the result says which one and why. The
// results of the other matrices are complete.
#pragma once
#include <cstdint>

namespace ramet {
namespace kernels {
namespace linalg {

/// The first matrix that cannot be factored, -1 if all can, and the reason.
struct Failure {
  int64_t matrix = -1;
  int64_t at = 0;  ///< a pivot of 0, or the order of the leading minor that is not positive, from 1
};

/// out = a^-1, n x n. A failure: singular.
Failure inverse(int64_t batch, int64_t n, const double* a, double* out);
/// a x = b for x, n x k. A failure: singular.
Failure solve(int64_t batch, int64_t n, int64_t k, const double* a, const double* b, double* x);
/// a x = b for x, n x k, where only a triangle of a is read. With `unit` its diagonal is not read
/// and counts as ones. A diagonal with zeros gives infinities.
void solve_triangular(int64_t batch, int64_t n, int64_t k, bool upper, bool unit, const double* a,
                      const double* b, double* x);
/// det a = sign e^logabs; sign is 1, -1 or, for a singular matrix, 0.
void determinant(int64_t batch, int64_t n, const double* a, double* sign, double* logabs,
                 double* det);
/// a = l l^T for symmetric a. Only its lower triangle is read. A failure: not positive definite.
Failure cholesky(int64_t batch, int64_t n, const double* a, double* l);
/// a = q r, m x n, with `columns` orthonormal columns of q and rows of r: min(m, n) or m. q may be
/// null.
void qr(int64_t batch, int64_t m, int64_t n, int64_t columns, const double* a, double* q,
        double* r);
/// a = u diag(s) vh, m x n, s of min(m, n) values, largest first. With `full` u is m x m and vh n x
/// n. Otherwise u is m x min(m, n) and vh min(m, n) x n. Both may be null. A failure: no
/// convergence, for example if a has a NaN or infinities.
Failure svd(int64_t batch, int64_t m, int64_t n, bool full, const double* a, double* u, double* s,
            double* vh);
/// a = v diag(w) v^T for symmetric a. Only its lower triangle is read. w is ascending; v may be
/// null. A failure: no convergence, as for svd.
Failure eigh(int64_t batch, int64_t n, const double* a, double* w, double* v);

}  // namespace linalg
}  // namespace kernels
}  // namespace ramet
