#include "autograd/ops/matrix/linalg.h"

#include <array>
#include <limits>
#include <string>

#include "autograd/ops/front/linalg_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/matrix/decompose.h"
#include "autograd/ops/matrix/diagonals.h"
#include "autograd/ops/matrix/triangle.h"
#include "autograd/ops/shape/cat.h"
#include "kernels/linalg/factor.h"

namespace ramet {

using namespace autograd;

namespace factor = kernels::linalg;

// ---- inverses and equations ---------------------------------------------------------------------

static Tensor linalg_inv_body(const Tensor& A) {
  const char* op = "linalg_inv";
  check_matrices(op, A, true);
  const HostMatrices a(op, A);
  const Tensor x = host_result(A.sizes());
  check_factored(op, A, factor::inverse(a.batch, a.n, a.data(), numbers(x)), [](int64_t at) {
    return "The diagonal element " + std::to_string(at) +
           " is zero, the inversion could not be completed because the input matrix is singular";
  });
  Tensor out = back(x, A);
  if (!recording(A)) return out;
  return record("LinalgInvExBackward0", {A}, std::move(out),
                [y = save_output(out)](const Node& self, const Tensor& g) {
                  const Tensor t = transposed(y.get(self));
                  return t.matmul(g).matmul(t).neg();
                });
}
static Tensor inverse_body(const Tensor& self) {
  refuse_capture("inverse");
  return linalg_inv(self);
}

namespace {

// solve for matrices with the same leading dimensions.
Tensor solved(const Tensor& A, const Tensor& B) {
  const char* op = "linalg_solve";
  const HostMatrices a(op, A), b(op, B);
  const Tensor x = host_result(B.sizes());
  check_factored(op, A, factor::solve(a.batch, a.n, b.n, a.data(), b.data(), numbers(x)),
                 [](int64_t) { return "The solver failed because the input matrix is singular"; });
  Tensor out = back(x, B);
  if (!recording(A, B)) return out;
  return record(
      "LinalgSolveExBackward0", {A, B}, std::move(out),
      [sa = save(A), y = save_output(out)](const Node& self, const Tensor& g) {
        const Tensor gb = solved(transposed(sa.get(self)), g);
        return std::array{self.needs(0) ? gb.matmul(transposed(y.get(self))).neg() : Tensor(), gb};
      });
}

Tensor triangle_solved(const Tensor& A, const Tensor& B, bool upper, bool unit) {
  const char* op = "linalg_solve_triangular";
  const HostMatrices a(op, A), b(op, B);
  const Tensor x = host_result(B.sizes());
  factor::solve_triangular(a.batch, a.n, b.n, upper, unit, a.data(), b.data(), numbers(x));
  Tensor out = back(x, B);
  if (!recording(A, B)) return out;
  return record(
      "LinalgSolveTriangularBackward0", {A, B}, std::move(out),
      [sa = save(A), y = save_output(out), upper, unit](const Node& self, const Tensor& g) {
        const Tensor gb = triangle_solved(transposed(sa.get(self)), g, !upper, unit);
        Tensor ga;
        if (self.needs(0)) {
          ga = gb.matmul(transposed(y.get(self))).neg();
          ga = upper ? ga.triu(unit) : ga.tril(-int64_t{unit});
        }
        return std::array{ga, gb};
      });
}

// f(A, B), with the leading dimensions of both broadcast.
template <class F> Tensor broadcast(const char* op, const Tensor& A, const Tensor& B, const F& f) {
  const auto lead = [](const Tensor& t) {
    return t.sizes().slice(0, static_cast<size_t>(t.dim() - 2));
  };
  const std::vector<int64_t> both = broadcast_sizes(op, lead(A), lead(B));
  const auto grown = [&](const Tensor& t) {
    std::vector<int64_t> sizes = both;
    sizes.insert(sizes.end(), {t.size(-2), t.size(-1)});
    return t.expand(sizes);
  };
  return f(grown(A), grown(B));
}

void check_equation(const char* op, const Tensor& A, const Tensor& B, bool left) {
  check_same_device(op, A, B);
  RAMET_CHECK(A.scalar_type() == B.scalar_type(), op,
              "Expected A and B to have the same dtype, but found A of type ",
              name_of(A.scalar_type()), " and B of type ", name_of(B.scalar_type()), " instead");
  RAMET_CHECK(B.size(left ? -2 : -1) == A.size(-1), op,
              "Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B",
              ": got ", describe(A), " and ", describe(B));
}

}  // namespace

static Tensor linalg_solve_body(const Tensor& A, const Tensor& B, bool left) {
  const char* op = "linalg_solve";
  check_matrices(op, A, true);
  check_defined(op, B);
  const bool vector = B.dim() == 1 || B.sizes() == A.sizes().slice(0, A.sizes().size() - 1);
  RAMET_CHECK(left || !vector, op, "B: got ", describe(B),
              ", vectors, expected matrices where left is false");
  const Tensor b = vector ? B.unsqueeze(-1) : B;
  check_matrices(op, b, false);
  check_equation(op, A, b, left);
  if (!left) return transposed(broadcast(op, transposed(A), transposed(b), solved));
  const Tensor x = broadcast(op, A, b, solved);
  return vector ? x.squeeze(-1) : x;
}

Tensor linalg_solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool left,
                               bool unitriangular) {
  const char* op = "linalg_solve_triangular";
  check_matrices(op, A, true);
  check_matrices(op, B, false);
  check_equation(op, A, B, left);
  const auto solve = [&](const Tensor& a, const Tensor& b) {
    return triangle_solved(a, b, upper == left, unitriangular);
  };
  if (!left) return transposed(broadcast(op, transposed(A), transposed(B), solve));
  return broadcast(op, A, B, solve);
}

// ---- determinants -------------------------------------------------------------------------------

namespace {

struct Determinants {
  Tensor sign, logabs, det;
};
Determinants determinants(const char* op, const Tensor& A) {
  check_matrices(op, A, true);
  const HostMatrices a(op, A);
  const IntArrayRef lead = A.sizes().slice(0, static_cast<size_t>(A.dim() - 2));
  const Tensor sign = host_result(lead), logabs = host_result(lead), det = host_result(lead);
  factor::determinant(a.batch, a.n, a.data(), numbers(sign), numbers(logabs), numbers(det));
  return {back(sign, A), back(logabs, A), back(det, A)};
}

// p_ij [*, n, n]: the product of all values except the ith and the jth, and 0 for i = j. No
// division.
Tensor products_of_others(const Tensor& values) {
  const int64_t n = values.size(-1);
  const Tensor one = ones_like(values.narrow(-1, 0, 1)),
               before = cat({one, values.narrow(-1, 0, n - 1)}, -1).cumprod(-1),
               after =
                   cat({one, values.flip({-1}).narrow(-1, 0, n - 1)}, -1).cumprod(-1).flip({-1}),
               later = ones({n, n}, values.options().requires_grad(false)).triu(1).eq(0),
               run = values.unsqueeze(-2).masked_fill(later, 1).cumprod(-1),
               between = cat({ones_like(run.narrow(-1, 0, 1)), run.narrow(-1, 0, n - 1)}, -1);
  const Tensor upper = before.unsqueeze(-1).mul(between).mul(after.unsqueeze(-2)).triu(1);
  return upper.add(transposed(upper));
}

struct Factors {
  Tensor u, s, vh, sign;  // sign = det u det vh
};
Factors factors_of(const Tensor& A) {
  const auto [u, s, vh] = linalg_svd(A.to(kDouble), false);
  const NoGradGuard off;
  const Tensor sign = linalg_det(u.detach()).mul(linalg_det(vh.detach()));
  return {u, s, vh, sign.unsqueeze(-1).unsqueeze(-1)};
}

// d det / dA, the cofactors, for matrices of any rank: sign U diag(p) Vh. p_i is the product of all
// singular values except the ith. The second derivative does not divide either. It comes
// from det(S + E) = det S + ... + the sum of p_ij (E_ii E_jj - E_ij E_ji) over i < j.
Tensor cofactors(const Tensor& A) {
  Tensor out;
  {
    const NoGradGuard off;
    const Factors f = factors_of(A);
    const Tensor own = eye(A.size(-1), f.s.options()).to(kBool),
                 others = f.s.unsqueeze(-2).masked_fill(own, 1).prod(-1);
    out = f.u.mul(others.unsqueeze(-2)).matmul(f.vh).mul(f.sign).to(A.scalar_type());
  }
  if (!recording(A)) return out;
  return record(
      "CofactorsBackward0", {A}, std::move(out), [sa = save(A)](const Node& self, const Tensor& g) {
        const Tensor a = sa.get(self);
        const Factors f = factors_of(a);
        const Tensor h = transposed(f.u).matmul(g.to(kDouble)).matmul(transposed(f.vh)).mul(f.sign);
        const Tensor p = products_of_others(f.s),
                     own = p.matmul(h.diagonal(0, -2, -1).unsqueeze(-1)).squeeze(-1),
                     inner = diag_embed(own).sub(p.mul(transposed(h)));
        return f.u.matmul(inner).matmul(f.vh).to(a.scalar_type());
      });
}

// The smallest positive number of x's type with full precision.
double smallest_of(const Tensor& x) {
  return x.scalar_type() == kDouble ? std::numeric_limits<double>::min()
                                    : std::numeric_limits<float>::min();
}
Tensor each_matrix(const Tensor& x) { return x.unsqueeze(-1).unsqueeze(-1); }

}  // namespace

Tensor linalg_det(const Tensor& A) {
  Tensor out = determinants("linalg_det", A).det;
  if (!recording(A)) return out;
  return record("LinalgDetBackward0", {A}, std::move(out),
                [sa = save(A), y = save_output(out)](const Node& self, const Tensor& g) {
                  const Tensor a = sa.get(self), d = y.get(self);
                  // Where det says nothing of its parts, or not all: singular, beyond its type.
                  const Tensor size = d.detach().abs();
                  if (size.lt(smallest_of(d)).logical_or(size.isinf()).any().item<bool>())
                    return each_matrix(g).mul(cofactors(a));
                  return each_matrix(g.mul(d)).mul(transposed(linalg_inv(a)));
                });
}
Tensor det(const Tensor& self) { return linalg_det(self); }

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) {
  Determinants r = determinants("linalg_slogdet", A);
  if (!recording(A)) return {r.sign, r.logabs};
  return {r.sign, record("LinalgSlogdetBackward0", {A}, std::move(r.logabs),
                         [sa = save(A)](const Node& self, const Tensor& g) {
                           return each_matrix(g).mul(transposed(linalg_inv(sa.get(self))));
                         })};
}
std::tuple<Tensor, Tensor> slogdet(const Tensor& self) { return linalg_slogdet(self); }

Tensor logdet(const Tensor& self) {
  refuse_capture("logdet");
  const auto [sign, logabs] = linalg_slogdet(self);
  return logabs.add(sign.log());  // log 1, NaN of -1
}

// ---- cholesky -----------------------------------------------------------------------------------

namespace {

Tensor lower_factor(const char* op, const Tensor& A) {
  check_matrices(op, A, true);
  const HostMatrices a(op, A);
  const Tensor l = host_result(A.sizes());
  check_factored(op, A, factor::cholesky(a.batch, a.n, a.data(), numbers(l)), [](int64_t at) {
    return "The factorization could not be completed because the input is not positive-definite "
           "(the leading minor of order " +
           std::to_string(at) + " is not positive-definite)";
  });
  Tensor out = back(l, A);
  if (!recording(A)) return out;
  return record("LinalgCholeskyExBackward0", {A}, std::move(out),
                [y = save_output(out)](const Node& self, const Tensor& g) {
                  const Tensor factor = y.get(self), t = transposed(factor),
                               product = t.matmul(g).tril();
                  const Tensor half = product.sub(diag_embed(product.diagonal(0, -2, -1)).mul(.5));
                  const Tensor s = linalg_solve_triangular(
                      factor, linalg_solve_triangular(t, half, true), false, false);
                  return s.add(transposed(s)).mul(.5);
                });
}

}  // namespace

static Tensor linalg_cholesky_body(const Tensor& A, bool upper) {
  if (!upper) return lower_factor("linalg_cholesky", A);
  check_matrices("linalg_cholesky", A, true);
  return transposed(lower_factor("linalg_cholesky", transposed(A)));
}

static Tensor cholesky_solve_body(const Tensor& self, const Tensor& L, bool upper) {
  const char* op = "cholesky_solve";
  check_matrices(op, self, false);
  check_matrices(op, L, true);
  check_equation(op, L, self, true);
  const Tensor lower = upper ? transposed(L) : L;
  return linalg_solve_triangular(transposed(lower), linalg_solve_triangular(lower, self, false),
                                 true);
}
static Tensor cholesky_inverse_body(const Tensor& self, bool upper) {
  check_matrices("cholesky_inverse", self, true);
  return cholesky_solve(eye(self.size(-1), self.options().requires_grad(false)), self, upper);
}

// ---- powers -------------------------------------------------------------------------------------

Tensor linalg_matrix_power(const Tensor& A, int64_t n) {
  const char* op = "linalg_matrix_power";
  check_defined(op, A);
  check_square(op, A);
  if (n < 0) {
    refuse_capture(op);
    // Not -n: INT64_MIN has no negative.
    const Tensor inverse = linalg_inv(A);
    return n == -1 ? inverse : linalg_matrix_power(inverse, -(n + 1)).matmul(inverse);
  }
  Tensor power, square = A;
  for (uint64_t left = static_cast<uint64_t>(n); left > 0; left >>= 1) {
    if (left & 1) power = power.defined() ? power.matmul(square) : square;
    if (left > 1) square = square.matmul(square);
  }
  if (n == 0) return eye(A.size(-1), A.options().requires_grad(false)).expand(A.sizes()).clone();
  return n == 1 ? A.clone() : power;
}
Tensor matrix_power(const Tensor& self, int64_t n) { return linalg_matrix_power(self, n); }

#include "autograd/forms/definitions.inc"
#include "autograd/ops/matrix/linalg.inc"

}  // namespace ramet
