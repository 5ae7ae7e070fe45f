// Rows of the operation table: inverses, equations, determinants and decompositions, against plain
// loops. What depends on signs is compared by what does not: |Q|, U S^3 V^T = A A^T A.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

using Matrix = std::vector<std::vector<double>>;
size_t row_count(const Matrix& a) { return a.size(); }
size_t columns_of(const Matrix& a) { return a.empty() ? 0 : a[0].size(); }
Matrix zeros_of(size_t m, size_t n) { return Matrix(m, std::vector<double>(n)); }
Matrix identity(size_t n) {
  Matrix out = zeros_of(n, n);
  for (size_t i = 0; i < n; ++i) out[i][i] = 1;
  return out;
}
Matrix turned(const Matrix& a) {
  Matrix out = zeros_of(columns_of(a), row_count(a));
  for (size_t i = 0; i < row_count(a); ++i)
    for (size_t j = 0; j < columns_of(a); ++j) out[j][i] = a[i][j];
  return out;
}
Matrix times(const Matrix& a, const Matrix& b) {
  Matrix out = zeros_of(row_count(a), columns_of(b));
  for (size_t i = 0; i < row_count(a); ++i)
    for (size_t k = 0; k < row_count(b); ++k)
      for (size_t j = 0; j < columns_of(b); ++j) out[i][j] += a[i][k] * b[k][j];
  return out;
}

// f of each matrix. All results have one size, which needs no matrix of x. It is that of f of an
// identity (or, where m != n, of a matrix of halves).
Plain each(const Plain& x, bool scalar, const std::function<Matrix(const Matrix&)>& f) {
  const size_t m = size_t(x.size(-2)), n = size_t(x.size(-1)), all = x.v.size();
  Index sizes(x.sizes.begin(), x.sizes.end() - 2);
  const size_t batch = size_t(count(sizes));
  const Matrix like = f(m == n ? identity(m) : Matrix(m, std::vector<double>(n, .5)));
  Plain out;
  for (size_t b = 0; b < batch; ++b) {
    Matrix a = zeros_of(m, n);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j) a[i][j] = all ? x.v[(b * m + i) * n + j] : 0;
    for (const std::vector<double>& line : f(a))
      out.v.insert(out.v.end(), line.begin(), line.end());
  }
  if (!scalar) {
    if (row_count(like) != 1 || m == 1) sizes.push_back(int64_t(row_count(like)));
    sizes.push_back(int64_t(columns_of(like)));
  }
  out.sizes = std::move(sizes);
  return out;
}

// Gauss and Jordan: the inverse, and the determinant.
Matrix inverted(Matrix a, double* det = nullptr) {
  const size_t n = row_count(a);
  Matrix out = identity(n);
  double d = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t p = k;
    for (size_t i = k; i < n; ++i)
      if (std::fabs(a[i][k]) > std::fabs(a[p][k])) p = i;
    if (p != k) std::swap(a[p], a[k]), std::swap(out[p], out[k]), d = -d;
    d *= a[k][k];
    const double pivot = a[k][k];
    for (size_t j = 0; j < n; ++j) a[k][j] /= pivot, out[k][j] /= pivot;
    for (size_t i = 0; i < n; ++i) {
      const double share = a[i][k];
      for (size_t j = 0; j < n && i != k; ++j)
        a[i][j] -= share * a[k][j], out[i][j] -= share * out[k][j];
    }
  }
  if (det) *det = d;
  return out;
}
double determinant(const Matrix& a) {
  double d = 1;
  inverted(a, &d);
  return d;
}
Matrix cholesky_of(const Matrix& a) {
  const size_t n = row_count(a);
  Matrix l = zeros_of(n, n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double s = a[i][j];
      for (size_t k = 0; k < j; ++k) s -= l[i][k] * l[j][k];
      l[i][j] = i == j ? std::sqrt(s) : s / l[j][j];
    }
  }
  return l;
}
// |R| and |Q| of Gram and Schmidt, of independent columns.
Matrix absolute_q(const Matrix& a, Matrix* r = nullptr) {
  const size_t m = row_count(a), n = columns_of(a), k = std::min(m, n);
  Matrix q = zeros_of(m, k), upper = zeros_of(k, n);
  for (size_t j = 0; j < n; ++j) {
    std::vector<double> column(m);
    for (size_t i = 0; i < m; ++i) column[i] = a[i][j];
    for (size_t l = 0; l < std::min(j, k); ++l) {
      for (size_t i = 0; i < m; ++i) upper[l][j] += q[i][l] * a[i][j];
      for (size_t i = 0; i < m; ++i) column[i] -= upper[l][j] * q[i][l];
    }
    if (j >= k) continue;
    for (double x : column) upper[j][j] += x * x;
    upper[j][j] = std::sqrt(upper[j][j]);
    for (size_t i = 0; i < m; ++i) q[i][j] = column[i] / upper[j][j];
  }
  for (Matrix* x : {&q, &upper})
    for (std::vector<double>& line : *x)
      for (double& v : line) v = std::fabs(v);
  if (r) *r = upper;
  return q;
}
// Jacobi's rotations: the eigenvalues of a symmetric matrix, smallest first.
std::vector<double> eigenvalues(Matrix a) {
  const size_t n = row_count(a);
  for (int sweep = 0; sweep < 30; ++sweep) {
    for (size_t p = 0; p < n; ++p) {
      for (size_t q = p + 1; q < n; ++q) {
        const double angle = .5 * std::atan2(2 * a[p][q], a[q][q] - a[p][p]), c = std::cos(angle),
                     s = std::sin(angle);
        for (size_t k = 0; k < n; ++k) {
          const double x = a[k][p], y = a[k][q];
          a[k][p] = c * x - s * y, a[k][q] = s * x + c * y;
        }
        for (size_t k = 0; k < n; ++k) {
          const double x = a[p][k], y = a[q][k];
          a[p][k] = c * x - s * y, a[q][k] = s * x + c * y;
        }
      }
    }
  }
  std::vector<double> out;
  for (size_t i = 0; i < n; ++i) out.push_back(a[i][i]);
  std::sort(out.begin(), out.end());
  return out;
}

// What is inverted: x + 5, with a dominant diagonal; and symmetric, x x^T + 1.
Tensor one_like(const Tensor& x) {
  return eye(x.size(-1), TensorOptions(x.scalar_type()).device(x.device()));
}
Tensor heavy(const Tensor& x) { return x.add(one_like(x), 5); }
Tensor definite(const Tensor& x) {
  return x.matmul(x.transpose(-2, -1)).add(one_like(x.matmul(x.transpose(-2, -1))));
}
Matrix heavy_of(Matrix a) {
  for (size_t i = 0; i < row_count(a); ++i) a[i][i] += 5;
  return a;
}
Matrix positive_of(const Matrix& a) {
  Matrix out = times(a, turned(a));
  for (size_t i = 0; i < row_count(out); ++i) out[i][i] += 1;
  return out;
}

constexpr const char *kHost = "the host factors matrices", *kPivots = "a NaN spreads by pivots";
Row& common_of(Row& row) {
  return row.by_host(kHost).small(kHost).narrow(kHost).tame(kPivots).within(64);
}

void add_inverses(Table& t) {
  const Samples squares = shapes({{3, 3}, {2, 4, 4}, {1, 1}, {0, 3, 3}, {0, 0}}, -1, 1);
  const Sample many = {real({2000, 3, 3}, -1, 1)};
#define INVERSE(name, calls, reference)                                  \
  common_of(t.row(name, kWide, squares, calls, [](P x) {                 \
    return each(x[0], false, [](const Matrix& a) { return reference; }); \
  })).big(many, 1)
  INVERSE("linalg_inv", CALL_OUT(linalg_inv, heavy(x[0])), inverted(heavy_of(a)));
  INVERSE("inverse", CALL_OUT(inverse, heavy(x[0])), inverted(heavy_of(a)));
  INVERSE("linalg_matrix_power", CALL_OUT(linalg_matrix_power, heavy(x[0]), -2),
          times(inverted(heavy_of(a)), inverted(heavy_of(a))));
  INVERSE("linalg_cholesky", CALL_OUT(linalg_cholesky, definite(x[0])),
          cholesky_of(positive_of(a)));
  INVERSE("cholesky_inverse", CALL_OUT(cholesky_inverse, linalg_cholesky(definite(x[0]))),
          inverted(positive_of(a)))
      .refused_as("linalg_cholesky");
#undef INVERSE
  t.row(
       "matrix_power", kNumbers, squares, CALL_OUT(matrix_power, x[0], 3),
       [](P x) { return each(x[0], false, [](const Matrix& a) { return times(a, times(a, a)); }); })
      .big({real({70, 23, 23}, -1, 1)}, 1)
      .small("products of small matrices")
      .within(16);
}

void add_equations(Table& t) {
  const Samples both = {{real({3, 3}, -1, 1), real({3, 2})},
                        {real({2, 3, 3}, -1, 1), real({3, 1})},
                        {real({3, 3}, -1, 1), real({2, 3, 2})},
                        {real({0, 0}), real({0, 2})}};
  const Sample many = {real({2000, 3, 3}, -1, 1), real({2000, 3, 2})};
  // a^-1 b, matrix by matrix.
  const auto reference = [](Matrix (*of)(Matrix)) {
    return [of](P x) {
      const Plain inverses = each(x[0], false, [&](const Matrix& a) { return of(a); });
      const int64_t n = x[0].size(-1);
      Index sizes = common(Index(x[0].sizes.begin(), x[0].sizes.end() - 2),
                           Index(x[1].sizes.begin(), x[1].sizes.end() - 2));
      sizes.push_back(n);
      sizes.push_back(x[1].size(-1));
      return made(sizes, [&](const Index& i) {
        double s = 0;
        for (int64_t k = 0; k < n; ++k) {
          Index left = i, right = i;
          left.back() = k, right[right.size() - 2] = k;
          left.erase(left.begin(), left.end() - inverses.rank());
          right.erase(right.begin(), right.end() - x[1].rank());
          s += inverses.at(left) * x[1].at(right);
        }
        return s;
      });
    };
  };
  const auto inverse_of_heavy = [](Matrix a) { return inverted(heavy_of(a)); };
  const auto inverse_of_lower = [](Matrix a) {
    a = heavy_of(a);
    for (size_t i = 0; i < row_count(a); ++i)
      for (size_t j = i + 1; j < row_count(a); ++j) a[i][j] = 0;
    return inverted(a);
  };
  const auto inverse_of_positive = [](Matrix a) { return inverted(positive_of(a)); };
  common_of(t.row("linalg_solve", kWide, both, CALL_OUT(linalg_solve, heavy(x[0]), x[1]),
                  reference(inverse_of_heavy)))
      .big(many, 3);
  common_of(t.row("linalg_solve_triangular", kWide, both,
                  CALL_OUT(linalg_solve_triangular, heavy(x[0]), x[1], false),
                  reference(inverse_of_lower)))
      .big(many, 3);
  common_of(t.row("cholesky_solve", kWide, both,
                  CALL_OUT(cholesky_solve, x[1], linalg_cholesky(definite(x[0]))),
                  reference(inverse_of_positive)))
      .big(many, 3)
      .refused_as("linalg_cholesky");
}

void add_numbers(Table& t) {
  const Samples squares = shapes({{3, 3}, {2, 4, 4}, {1, 1}, {0, 3, 3}, {0, 0}}, -1, 1);
  const Sample many = {real({2000, 3, 3}, -1, 1)};
#define NUMBER(name, calls, number)                                            \
  common_of(t.row(name, kWide, squares, calls, [](P x) {                       \
    return each(x[0], true, [](const Matrix& a) { return Matrix{{number}}; }); \
  })).big(many, 1)
  NUMBER("linalg_det", CALL_OUT(linalg_det, heavy(x[0])), determinant(heavy_of(a)));
  NUMBER("det", CALL(det, x[0]), determinant(a));
  NUMBER("logdet", CALL(logdet, heavy(x[0])), std::log(determinant(heavy_of(a))));
  NUMBER("linalg_slogdet", SECOND_OUT(linalg_slogdet, heavy(x[0])),
         std::log(determinant(heavy_of(a))));
  NUMBER("slogdet", SECOND_OUT(slogdet, heavy(x[0]).neg()), std::log(determinant(heavy_of(a))));
#undef NUMBER
}

void add_decompositions(Table& t) {
  const Samples some = shapes({{4, 3}, {2, 3, 3}, {2, 4}, {1, 2}, {1, 1}, {0, 3, 2}}, -1, 1),
                squares = shapes({{3, 3}, {2, 4, 4}, {1, 1}, {0, 3, 3}}, -1, 1);
  const Sample many = {real({2000, 4, 3}, -1, 1)}, many_squares = {real({2000, 3, 3}, -1, 1)};
#define MATRIX(name, samples, large, f, reference)                       \
  common_of(t.row(name, kWide, samples, EXPRESSION(f), [](P x) {         \
    return each(x[0], false, [](const Matrix& a) { return reference; }); \
  })).big(large, 1)
  MATRIX("linalg_qr", some, many, std::get<0>(linalg_qr(x[0])).abs(), absolute_q(a))
      .writes([](Tensor& o, V x) {
        Tensor r = empty({0}, x[0].options());
        return std::get<0>(linalg_qr_out(o, r, x[0])).abs_();
      });
  MATRIX("linalg_qr.r", some, many, std::get<1>(linalg_qr(x[0])).abs(), ([&] {
           Matrix r;
           absolute_q(a, &r);
           return r;
         }()));
#undef MATRIX
  const auto third_power = [](P x) {
    return each(x[0], false, [](const Matrix& a) { return times(times(a, turned(a)), a); });
  };
  common_of(t.row(
                "linalg_svd", kWide, some,
                [](V x) {
                  const auto [u, s, vh] = linalg_svd(x[0], false);
                  return u.mul(s.pow(3).unsqueeze(-2)).matmul(vh);
                },
                third_power))
      .big(many, 1)
      .writes([](Tensor& o, V x) {
        Tensor u = empty({0}, x[0].options()), s = u.clone(), vh = u.clone();
        linalg_svd_out(u, s, vh, x[0], false);
        return matmul_out(o, u.mul(s.pow(3).unsqueeze(-2)), vh);
      });
  common_of(t.row(
                "svd", kWide, some,
                [](V x) {
                  const auto [u, s, v] = svd(x[0]);
                  return u.mul(s.pow(3).unsqueeze(-2)).matmul(v.transpose(-2, -1));
                },
                third_power))
      .big(many, 1)
      .writes([](Tensor& o, V x) {
        Tensor u = empty({0}, x[0].options()), s = u.clone(), v = u.clone();
        svd_out(u, s, v, x[0]);
        return matmul_out(o, u.mul(s.pow(3).unsqueeze(-2)), v.transpose(-2, -1));
      });
  const auto singular = [](const Matrix& a) {
    const bool tall = row_count(a) >= columns_of(a);
    std::vector<double> w = eigenvalues(tall ? times(turned(a), a) : times(a, turned(a)));
    std::reverse(w.begin(), w.end());
    for (double& x : w) x = std::sqrt(std::max(x, 0.));
    return Matrix{w};
  };
  common_of(t.row("linalg_svdvals", kWide, some, CALL(linalg_svdvals, x[0]),
                  [singular](P x) {
                    Plain out = each(x[0], false, singular);
                    out.sizes = Index(x[0].sizes.begin(), x[0].sizes.end() - 1);
                    out.sizes.back() = std::min(x[0].size(-1), x[0].size(-2));
                    return out;
                  }))
      .big(many, 1)
      .writes(OUT(linalg_svdvals, x[0]));
  common_of(t.row(
                "linalg_eigh", kWide, squares,
                [](V x) {
                  const auto [w, v] = linalg_eigh(definite(x[0]));
                  return v.mul(w.pow(3).unsqueeze(-2)).matmul(v.transpose(-2, -1));
                },
                [](P x) {
                  return each(x[0], false, [](const Matrix& a) {
                    const Matrix p = positive_of(a);
                    return times(p, times(p, p));
                  });
                }))
      .big(many_squares, 1)
      .writes([](Tensor& o, V x) {
        Tensor w = empty({0}, x[0].options()), v = w.clone();
        linalg_eigh_out(w, v, definite(x[0]));
        return matmul_out(o, v.mul(w.pow(3).unsqueeze(-2)), v.transpose(-2, -1));
      });
  const auto norm_row = [&](const char* name, const Call& f, double (*of)(std::vector<double>&)) {
    common_of(t.row(name, kWide, some, f, [=](P x) {
      return each(x[0], true, [=](const Matrix& a) { return Matrix{{of(singular(a)[0])}}; });
    })).big(many, 1);
  };
  norm_row("linalg_matrix_norm.largest", CALL(linalg_matrix_norm, x[0], 2),
           [](std::vector<double>& s) { return s.front(); });
  norm_row(
      "linalg_norm.smallest",
      [](V x) {
        const int64_t rows = x[0].dim() == 2 ? -1 : -2;
        return linalg_norm(x[0].transpose(0, -1), Scalar(-2), OptionalIntArrayRef({rows, 0}), true)
            .squeeze(0)
            .squeeze(0);
      },
      [](std::vector<double>& s) { return s.back(); });
  const auto sum = [](std::vector<double>& s) { return std::accumulate(s.begin(), s.end(), 0.); };
  norm_row("linalg_matrix_norm.sum", CALL(linalg_matrix_norm, x[0], "nuc"), sum);
  norm_row("nuclear_norm", CALL(nuclear_norm, x[0], {-1, -2}), sum);
  t["nuclear_norm"].writes(OUT(nuclear_norm, x[0], {-1, -2}));
  common_of(t.row("linalg_eigvalsh", kWide, squares, CALL(linalg_eigvalsh, definite(x[0]), "U"),
                  [](P x) {
                    Plain out = each(x[0], false, [](const Matrix& a) {
                      return Matrix{eigenvalues(positive_of(a))};
                    });
                    out.sizes = Index(x[0].sizes.begin(), x[0].sizes.end() - 1);
                    return out;
                  }))
      .big(many_squares, 1)
      .writes(OUT(linalg_eigvalsh, definite(x[0]), "U"));
  const auto pseudo = [](P x) {
    return each(x[0], false, [](const Matrix& a) {
      return row_count(a) >= columns_of(a) ? times(inverted(times(turned(a), a)), turned(a))
                                           : times(turned(a), inverted(times(a, turned(a))));
    });
  };
  common_of(t.row("linalg_pinv", kWide, some, CALL_OUT(linalg_pinv, x[0]), pseudo))
      .big(many, 1)
      .within(4096);
  common_of(t.row("pinverse", kWide, some, CALL(pinverse, x[0]), pseudo)).big(many, 1).within(4096);
  common_of(t.row(
                "linalg_matrix_rank", kWide, some,
                [](V x) {
                  const Tensor first = x[0].narrow(-1, 0, 1);
                  return linalg_matrix_rank(cat({first, first}, -1));
                },
                [](P x) { return each(x[0], true, [](const Matrix&) { return Matrix{{1}}; }); }))
      .big({real({5000, 4, 3}, -1, 1)}, 1)
      .gives(positions)
      .no_gradient()
      .writes([](Tensor& o, V x) {
        const Tensor first = x[0].narrow(-1, 0, 1);
        return linalg_matrix_rank_out(o, cat({first, first}, -1));
      });
}

RAMET_OP_TABLE(add_inverses, add_equations, add_numbers, add_decompositions);

}  // namespace
}  // namespace op_table
}  // namespace ramet
