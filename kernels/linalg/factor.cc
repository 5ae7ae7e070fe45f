#include "kernels/linalg/factor.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/Householder>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "runtime/base/thread_pool.h"

namespace ramet {
namespace kernels {
namespace linalg {

namespace {

// One matrix type for all, so that each factorisation is compiled once. It has Eigen's own layout,
// by columns.
using Matrix = Eigen::MatrixXd;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
Matrix read(const double* a, int64_t m, int64_t n) { return Eigen::Map<const Rows>(a, m, n); }
void write(double* out, const Matrix& x) { Eigen::Map<Rows>(out, x.rows(), x.cols()) = x; }

constexpr int64_t kNoMemory = -1;

// f(i) for each matrix; f returns the place of the failure, or 0. `flops`: of one matrix, about.
template <class F> Failure each(int64_t batch, int64_t flops, const F& f) {
  if (batch == 0) return {};
  std::vector<int64_t> failed(static_cast<size_t>(batch));
  const int64_t together = std::max<int64_t>(1, 8 * parallel_grain() / std::max<int64_t>(1, flops)),
                tasks = (batch + together - 1) / together;
  parallel_tasks(tasks, [&](int64_t task, int) {
    for (int64_t i = task * together; i < std::min(batch, (task + 1) * together); ++i) {
      try {
        failed[static_cast<size_t>(i)] = f(i);
      } catch (const std::bad_alloc&) {  // an exception must not leave a task
        failed[static_cast<size_t>(i)] = kNoMemory;
      }
    }
  });
  const auto at = std::find_if(failed.begin(), failed.end(), [](int64_t x) { return x != 0; });
  if (at == failed.end()) return {};
  if (*at == kNoMemory) throw std::bad_alloc();
  return {at - failed.begin(), *at};
}

using Lu = Eigen::PartialPivLU<Matrix>;
// The first pivot that is 0, counted from 1; 0 if there is none.
int64_t zero_pivot(const Lu& lu) {
  const auto& m = lu.matrixLU();
  for (Eigen::Index i = 0; i < m.rows(); ++i)
    if (m(i, i) == 0) return i + 1;
  return 0;
}

}  // namespace

Failure inverse(int64_t batch, int64_t n, const double* a, double* out) {
  if (n == 0) return {};
  return each(batch, 2 * n * n * n, [&](int64_t i) -> int64_t {
    const Lu lu(read(a + i * n * n, n, n));
    if (const int64_t pivot = zero_pivot(lu)) return pivot;
    write(out + i * n * n, lu.inverse());
    return 0;
  });
}

Failure solve(int64_t batch, int64_t n, int64_t k, const double* a, const double* b, double* x) {
  if (n == 0) return {};
  return each(batch, n * n * (n + 2 * k), [&](int64_t i) -> int64_t {
    const Lu lu(read(a + i * n * n, n, n));
    if (const int64_t pivot = zero_pivot(lu)) return pivot;
    write(x + i * n * k, lu.solve(read(b + i * n * k, n, k)));
    return 0;
  });
}

void solve_triangular(int64_t batch, int64_t n, int64_t k, bool upper, bool unit, const double* a,
                      const double* b, double* x) {
  if (n == 0) return;
  each(batch, n * n * k, [&](int64_t i) -> int64_t {
    const Matrix t = read(a + i * n * n, n, n);
    Matrix y = read(b + i * n * k, n, k);
    if (upper && unit) t.triangularView<Eigen::UnitUpper>().solveInPlace(y);
    else if (upper) t.triangularView<Eigen::Upper>().solveInPlace(y);
    else if (unit) t.triangularView<Eigen::UnitLower>().solveInPlace(y);
    else t.triangularView<Eigen::Lower>().solveInPlace(y);
    write(x + i * n * k, y);
    return 0;
  });
}

void determinant(int64_t batch, int64_t n, const double* a, double* sign, double* logabs,
                 double* det) {
  each(batch, n * n * n, [&](int64_t i) -> int64_t {
    double s = 1, log = 0, product = 1;  // times 2^exponent, because a part of it may overflow
    int64_t exponent = 0;
    if (n > 0) {
      const Lu lu(read(a + i * n * n, n, n));
      s = static_cast<double>(lu.permutationP().determinant());
      product = s;
      for (int64_t k = 0; k < n; ++k) {
        const double pivot = lu.matrixLU()(k, k);
        int power = 0, again = 0;
        product = std::frexp(product * std::frexp(pivot, &power), &again);
        exponent += power + again;
        log += std::log(std::fabs(pivot));
        s *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;  // of 0 and NaN itself
      }
    }
    constexpr int64_t kMost = 1 << 20;  // far beyond a double's exponents
    sign[i] = s, logabs[i] = log;
    det[i] = std::ldexp(product, static_cast<int>(std::clamp(exponent, -kMost, kMost)));
    return 0;
  });
}

Failure cholesky(int64_t batch, int64_t n, const double* a, double* l) {
  if (n == 0) return {};
  return each(batch, n * n * n, [&](int64_t i) -> int64_t {
    const Matrix m = read(a + i * n * n, n, n);
    const Eigen::LLT<Matrix> llt(m);
    if (llt.info() != Eigen::Success) {
      // Which minor: the first one that fails by itself.
      for (int64_t k = 1; k <= n; ++k)
        if (Eigen::LLT<Matrix>(m.topLeftCorner(k, k)).info() != Eigen::Success) return k;
      return n;
    }
    write(l + i * n * n, llt.matrixL());
    return 0;
  });
}

namespace {

// The reflection 1 - tau v v^T, v_0 = 1, that takes x to (beta, 0, 0, ...). v's other elements and
// beta are left in x. Squares of numbers above 1e154 have no double, so x is scaled to about 1
// first. (Eigen's own reflections are not.) The power of 2 changes no digit.
template <class Vector> double reflect(Vector x) {
  const Eigen::Index n = x.size() - 1;
  auto tail = x.tail(n);
  if (n == 0 || (tail.array() == 0).all()) return 0;
  int power = 0;
  const double largest = x.cwiseAbs().maxCoeff();
  if (largest > 0 && std::isfinite(largest)) std::frexp(largest, &power);
  for (double& e : x) e = std::ldexp(e, -power);
  const double first = x(0), norm = std::sqrt(first * first + tail.squaredNorm()),
               beta = first >= 0 ? -norm : norm;
  tail /= first - beta;
  x(0) = std::ldexp(beta, power);
  return (beta - first) / beta;
}

// Reflections as Eigen::HouseholderQR leaves them: r above, the vectors below the diagonal. First
// some columns by themselves, then all others by these together.
void reflect_columns(Matrix& a, Eigen::VectorXd& taus) {
  constexpr Eigen::Index kTogether = 48;
  const Eigen::Index k = std::min(a.rows(), a.cols());
  taus.resize(k);
  Eigen::VectorXd work(a.cols());
  for (Eigen::Index first = 0; first < k; first += kTogether) {
    const Eigen::Index rows = a.rows() - first, width = std::min(kTogether, k - first),
                       others = a.cols() - first - width;
    auto columns = a.block(first, first, rows, width);
    for (Eigen::Index j = 0; j < width; ++j) {
      const Eigen::Index left = rows - j;
      const double tau = taus(first + j) = reflect(columns.col(j).tail(left));
      columns.bottomRightCorner(left, width - j - 1)
          .applyHouseholderOnTheLeft(columns.col(j).tail(left - 1), tau, work.data());
    }
    if (others > 0)
      a.block(first, first + width, rows, others)
          .applyOnTheLeft(
              Eigen::householderSequence(columns, taus.segment(first, width)).transpose());
  }
}

}  // namespace

void qr(int64_t batch, int64_t m, int64_t n, int64_t columns, const double* a, double* q,
        double* r) {
  each(batch, m * n * std::min(m, n), [&](int64_t i) -> int64_t {
    Matrix left = Matrix::Identity(m, columns), right = Matrix::Zero(columns, n);
    if (m > 0 && n > 0) {
      Matrix x = read(a + i * m * n, m, n);
      Eigen::VectorXd taus;
      reflect_columns(x, taus);
      if (q) left.applyOnTheLeft(Eigen::householderSequence(x, taus));
      const int64_t k = std::min(m, n);
      right.topRows(k) = x.topRows(k).triangularView<Eigen::Upper>();
    }
    if (q) write(q + i * m * columns, left);
    write(r + i * columns * n, right);
    return 0;
  });
}

Failure svd(int64_t batch, int64_t m, int64_t n, bool full, const double* a, double* u, double* s,
            double* vh) {
  const int64_t k = std::min(m, n), left = full ? m : k, right = full ? n : k;
  return each(batch, 8 * m * n * k, [&](int64_t i) -> int64_t {
    if (k == 0) {
      if (u) write(u + i * m * left, Matrix::Identity(m, left));
      if (vh) write(vh + i * right * n, Matrix::Identity(right, n));
      return 0;
    }
    const Matrix x = read(a + i * m * n, m, n);
    if (!x.allFinite()) return 1;
    const unsigned vectors = full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                                  : Eigen::ComputeThinU | Eigen::ComputeThinV;
    // Rotations, after a product of reflections if x is not square. Divide and conquer would take
    // four times the compilation and code (30 s, 380 KB), and is not faster up to some hundred
    // columns.
    const Eigen::JacobiSVD<Matrix, Eigen::HouseholderQRPreconditioner> done(x,
                                                                            u || vh ? vectors : 0u);
    if (done.info() != Eigen::Success) return 1;
    Eigen::Map<Eigen::VectorXd>(s + i * k, k) = done.singularValues();
    if (u) write(u + i * m * left, done.matrixU());
    if (vh) write(vh + i * right * n, done.matrixV().transpose());
    return 0;
  });
}

Failure eigh(int64_t batch, int64_t n, const double* a, double* w, double* v) {
  if (n == 0) return {};
  return each(batch, 9 * n * n * n, [&](int64_t i) -> int64_t {
    const Matrix x = read(a + i * n * n, n, n);
    if (!x.triangularView<Eigen::Lower>().toDenseMatrix().allFinite()) return 1;
    const Eigen::SelfAdjointEigenSolver<Matrix> done(
        x, v ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
    if (done.info() != Eigen::Success) return 1;
    Eigen::Map<Eigen::VectorXd>(w + i * n, n) = done.eigenvalues();
    if (v) write(v + i * n * n, done.eigenvectors());
    return 0;
  });
}

}  // namespace linalg
}  // namespace kernels
}  // namespace ramet
