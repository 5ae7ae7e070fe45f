#include "autograd/ops/decompose.h"

#include <algorithm>
#include <array>
#include <limits>

#include "autograd/ops/diagonals.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/front/linalg_front.h"
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/linalg.h"
#include "autograd/ops/shape_joins.h"
#include "autograd/ops/triangle.h"

namespace ramet {

using namespace autograd;

namespace factor = kernels::linalg;

// Note [Results of decompositions]
// Each result has a node of its own, whose gradient is that of the others' being 0: gradients add
// up. A node needs all results; it keeps them without history, so that no two nodes keep each other
// alive, and where the gradient itself is recorded decomposes A once more, which gives the same
// bits.

namespace {

// 1 / (x_j - x_i) [*, k, k] of x [*, k] in order; 0 where they count as equal.
Tensor gaps(const Tensor& x, const Tensor& difference) {
  if (x.size(-1) == 0) return difference;  // of nothing there is no largest
  const double epsilon = x.scalar_type() == kDouble ? std::numeric_limits<double>::epsilon()
                                                    : std::numeric_limits<float>::epsilon();
  const Tensor plain = x.detach(), between = plain.unsqueeze(-2).sub(plain.unsqueeze(-1)).abs(),
               largest = plain.abs().amax(-1, true).unsqueeze(-1),
               equal = between.le(largest.mul(8 * epsilon));
  return difference.masked_fill(equal, 1).reciprocal().masked_fill(equal, 0);
}

// ---- QR -----------------------------------------------------------------------------------------

struct Qr {
  Tensor q, r;
};
Qr decomposed(const char* op, const Tensor& A, int64_t columns, bool with_q) {
  const HostMatrices a(op, A);
  const Tensor r = host_result(with_matrix(A, columns, a.n));
  Tensor q;
  if (with_q) q = host_result(with_matrix(A, a.m, columns));
  factor::qr(a.batch, a.m, a.n, columns, a.data(), with_q ? numbers(q) : nullptr, numbers(r));
  return {with_q ? back(q, A) : Tensor(), back(r, A)};
}

// The gradient of A = q r, q [*, m, k] and r [*, k, k]; one of gq and gr may be undefined. With M =
// r gr^T - gq^T q: (gq + q (M's lower triangle, mirrored)) r^-T.
Tensor square_qr_gradient(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r) {
  Tensor m;
  if (gr.defined()) m = r.matmul(transposed(gr));
  if (gq.defined()) {
    const Tensor product = transposed(gq).matmul(q);
    m = m.defined() ? m.sub(product) : product.neg();
  }
  Tensor right = q.matmul(m.tril().add(transposed(m.tril(-1))));
  if (gq.defined()) right = gq.add(right);
  return linalg_solve_triangular(transposed(r), right, false, false);
}
// With n > m the columns beyond the mth are q times theirs of r.
Tensor qr_gradient(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r) {
  const int64_t k = r.size(-2), more = r.size(-1) - k;
  if (more <= 0) return square_qr_gradient(gq, gr, q, r);
  const Tensor left = r.narrow(-1, 0, k), right = r.narrow(-1, k, more);
  if (!gr.defined()) {
    const Tensor first = square_qr_gradient(gq, gr, q, left);
    return cat({first, zeros_like(right)}, -1);
  }
  const Tensor g = gr.narrow(-1, k, more), through = q.matmul(right).matmul(transposed(g)),
               total = gq.defined() ? gq.add(through) : through;
  return cat({square_qr_gradient(total, gr.narrow(-1, 0, k), q, left), q.matmul(g)}, -1);
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode) {
  const char* op = "linalg_qr";
  check_matrices(op, A, false);
  RAMET_CHECK(mode == "reduced" || mode == "complete" || mode == "r", op,
              "qr received unrecognized mode '", mode,
              "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = A.size(-2), n = A.size(-1), columns = mode == "complete" ? m : std::min(m, n);
  Qr out = decomposed(op, A, columns, mode != "r");
  if (mode == "r") out.q = empty({0}, A.options().requires_grad(false));
  if (!recording(A)) return {out.q, out.r};
  const auto recorded = [&, again = std::string(mode)](Tensor result, bool is_q) {
    return record("LinalgQrBackward0", {A}, std::move(result),
                  [sa = save(A), sq = save(out.q.shallow()), sr = save(out.r.shallow()), again,
                   is_q](const Node& self, const Tensor& g) {
                    Tensor q = sq.get(self), r = sr.get(self);
                    RAMET_CHECK(again != "r", "linalg_qr",
                                "mode 'r' is not differentiable: expected 'reduced'");
                    RAMET_CHECK(again != "complete" || r.size(-2) <= r.size(-1), "linalg_qr",
                                "mode 'complete' is not differentiable with more rows than "
                                "columns: got ",
                                r.size(-2), " and ", r.size(-1));
                    if (GradMode::is_enabled()) std::tie(q, r) = linalg_qr(sa.get(self), again);
                    return is_q ? qr_gradient(g, Tensor(), q, r) : qr_gradient(Tensor(), g, q, r);
                  });
  };
  const Tensor r = recorded(out.r.shallow(), false);
  return {mode == "r" ? out.q : recorded(out.q.shallow(), true), r};
}

// ---- singular values ----------------------------------------------------------------------------

namespace {

struct Svd {
  Tensor u, s, vh;
};
Svd svd_of(const char* op, const Tensor& A, bool full, bool vectors) {
  check_matrices(op, A, false);
  const HostMatrices a(op, A);
  const int64_t k = std::min(a.m, a.n);
  std::vector<int64_t> values = A.sizes().vec();
  values.pop_back();
  values.back() = k;
  const Tensor s = host_result(values);
  Tensor u, vh;
  if (vectors) {
    u = host_result(with_matrix(A, a.m, full ? a.m : k));
    vh = host_result(with_matrix(A, full ? a.n : k, a.n));
  }
  check_factored(op, A,
                 factor::svd(a.batch, a.m, a.n, full, a.data(), vectors ? numbers(u) : nullptr,
                             numbers(s), vectors ? numbers(vh) : nullptr),
                 [](int64_t) {
                   return "The algorithm failed to converge because the input matrix contained "
                          "non-finite values";
                 });
  return {vectors ? back(u, A) : u, back(s, A), vectors ? back(vh, A) : vh};
}

Tensor skew(const Tensor& x) { return x.sub(transposed(x)); }

// The gradient of A where one of gu [*, m, k], gs [*, k] and gvh [*, k, n] is defined.
Tensor svd_gradient(const Tensor& gu, const Tensor& gs, const Tensor& gvh, const Svd& d) {
  const Tensor &u = d.u, &s = d.s, &vh = d.vh;
  if (gs.defined()) return u.mul(gs.unsqueeze(-2)).matmul(vh);
  const int64_t k = s.size(-1);
  const Tensor row = s.unsqueeze(-2), column = s.unsqueeze(-1),
               gap = gaps(s, row.sub(column).mul(row.add(column))), none = s.eq(0),
               inverse = s.masked_fill(none, 1).reciprocal().masked_fill(none, 0);
  if (gu.defined()) {
    const Tensor ug = transposed(u).matmul(gu), inner = skew(ug).mul(gap).mul(row);
    Tensor left = u.matmul(inner);
    if (u.size(-2) > k) left = left.add(gu.sub(u.matmul(ug)).mul(inverse.unsqueeze(-2)));
    return left.matmul(vh);
  }
  const Tensor vg = vh.matmul(transposed(gvh)), inner = column.mul(skew(vg).mul(gap));
  Tensor right = inner.matmul(vh);
  if (vh.size(-1) > k)
    right = right.add(inverse.unsqueeze(-1).mul(gvh.sub(transposed(vg).matmul(vh))));
  return u.matmul(right);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices) {
  const Svd all = svd_of("linalg_svd", A, full_matrices, true);
  if (!recording(A)) return {all.u, all.s, all.vh};
  const int64_t k = all.s.size(-1);
  const Svd kept{all.u.narrow(-1, 0, k), all.s, all.vh.narrow(-2, 0, k)};
  const auto recorded = [&](const Tensor& result, int which) {
    return record("LinalgSvdBackward0", {A}, result.shallow(),
                  [sa = save(A), su = save(kept.u.shallow()), ss = save(kept.s.shallow()),
                   sv = save(kept.vh.shallow()), which, k](const Node& self, const Tensor& g) {
                    Svd d{su.get(self), ss.get(self), sv.get(self)};
                    if (GradMode::is_enabled())
                      std::tie(d.u, d.s, d.vh) = linalg_svd(sa.get(self), false);
                    return svd_gradient(which == 0 ? g.narrow(-1, 0, k) : Tensor(),
                                        which == 1 ? g : Tensor(),
                                        which == 2 ? g.narrow(-2, 0, k) : Tensor(), d);
                  });
  };
  return {recorded(all.u, 0), recorded(all.s, 1), recorded(all.vh, 2)};
}
Tensor linalg_svdvals(const Tensor& A) {
  if (A.defined() && recording(A)) return std::get<1>(linalg_svd(A, false));
  return svd_of("linalg_svdvals", A, false, false).s;
}
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  if (!compute_uv) {
    const Tensor s = linalg_svdvals(self);
    const auto none = [&](int64_t n) {
      return zeros(with_matrix(self, n, n), self.options().requires_grad(false));
    };
    return {none(self.size(-2)), s, none(self.size(-1))};
  }
  const auto [u, s, vh] = linalg_svd(self, !some);
  return {u, s, transposed(vh)};
}
std::tuple<Tensor, Tensor, Tensor> Tensor::svd(bool some, bool compute_uv) const {
  return ramet::svd(*this, some, compute_uv);
}

// ---- eigenvalues --------------------------------------------------------------------------------

namespace {

struct Eigh {
  Tensor w, v;
};
// Of the lower triangles.
Eigh eigh_of(const char* op, const Tensor& A, bool vectors) {
  const HostMatrices a(op, A);
  std::vector<int64_t> values = A.sizes().vec();
  values.pop_back();
  const Tensor w = host_result(values);
  Tensor v;
  if (vectors) v = host_result(A.sizes());
  check_factored(op, A,
                 factor::eigh(a.batch, a.n, a.data(), numbers(w), vectors ? numbers(v) : nullptr),
                 [](int64_t) { return "The algorithm failed to converge"; });
  return {back(w, A), vectors ? back(v, A) : v};
}

// A, or its transpose where the upper triangle is to be read.
Tensor lower_of(const char* op, const Tensor& A, std::string_view UPLO) {
  check_matrices(op, A, true);
  const bool lower = UPLO == "L" || UPLO == "l";
  RAMET_CHECK(lower || UPLO == "U" || UPLO == "u", op,
              "Expected UPLO argument to be 'L' or 'U', but got ", UPLO);
  return lower ? A : transposed(A);
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& A, std::string_view UPLO) {
  const Tensor lower = lower_of("linalg_eigh", A, UPLO);
  const Eigh out = eigh_of("linalg_eigh", lower, true);
  if (!recording(A)) return {out.w, out.v};
  const auto recorded = [&](const Tensor& result, bool values) {
    return record("LinalgEighBackward0", {lower}, result.shallow(),
                  [sa = save(lower), sw = save(out.w.shallow()), sv = save(out.v.shallow()),
                   values](const Node& self, const Tensor& g) {
                    Eigh d{sw.get(self), sv.get(self)};
                    if (GradMode::is_enabled()) std::tie(d.w, d.v) = linalg_eigh(sa.get(self), "L");
                    const Tensor t = transposed(d.v);
                    if (values) return d.v.mul(g.unsqueeze(-2)).matmul(t);
                    const Tensor gap = gaps(d.w, d.w.unsqueeze(-2).sub(d.w.unsqueeze(-1)));
                    return d.v.matmul(t.matmul(g).mul(gap)).matmul(t);
                  });
  };
  return {recorded(out.w, true), recorded(out.v, false)};
}
Tensor linalg_eigvalsh(const Tensor& A, std::string_view UPLO) {
  if (A.defined() && recording(A)) return std::get<0>(linalg_eigh(A, UPLO));
  return eigh_of("linalg_eigvalsh", lower_of("linalg_eigvalsh", A, UPLO), false).w;
}

// ---- what is made of them -----------------------------------------------------------------------

namespace {

// Symmetric: the lower triangle and its mirror image.
Tensor mirrored(const Tensor& A) { return A.tril().add(transposed(A.tril(-1))); }

Tensor pinv_of(const Tensor& A, double rcond) {
  Tensor out;
  {
    const NoGradGuard off;
    const Svd d = svd_of("linalg_pinv", A, false, true);
    if (d.s.numel() == 0) {
      out = zeros(with_matrix(A, A.size(-1), A.size(-2)), A.options());
    } else {
      const Tensor none = d.s.le(d.s.amax(-1, true).mul(rcond)),
                   inverse = d.s.masked_fill(none, 1).reciprocal().masked_fill(none, 0);
      out = transposed(d.vh).mul(inverse.unsqueeze(-2)).matmul(transposed(d.u));
    }
  }
  if (!recording(A)) return out;
  // dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P: Golub and Pereyra, "The
  // differentiation of pseudo-inverses" (1973).
  return record("LinalgPinvBackward0", {A}, std::move(out),
                [sa = save(A), y = save_output(out)](const Node& self, const Tensor& g) {
                  const Tensor a = sa.get(self), p = y.get(self), pt = transposed(p),
                               gt = transposed(g), ptgt = pt.matmul(p).matmul(gt),
                               gtp = gt.matmul(p).matmul(pt);
                  return gtp.sub(a.matmul(p).matmul(gtp))
                      .add(ptgt.sub(ptgt.matmul(p).matmul(a)))
                      .sub(pt.matmul(g).matmul(pt));
                });
}

}  // namespace

Tensor linalg_pinv(const Tensor& A, double rcond, bool hermitian) {
  check_matrices("linalg_pinv", A, hermitian);
  return pinv_of(hermitian ? mirrored(A) : A, rcond);
}
Tensor pinverse(const Tensor& self, double rcond) { return linalg_pinv(self, rcond); }

Tensor linalg_matrix_rank(const Tensor& A, std::optional<double> tol, bool hermitian) {
  check_matrices("linalg_matrix_rank", A, hermitian);
  const NoGradGuard off;
  const Tensor s = hermitian ? linalg_eigvalsh(A).abs() : linalg_svdvals(A);
  if (tol || s.numel() == 0) return s.gt(tol.value_or(0)).sum(-1);
  const double epsilon = A.scalar_type() == kDouble ? std::numeric_limits<double>::epsilon()
                                                    : std::numeric_limits<float>::epsilon(),
               share = epsilon * static_cast<double>(std::max(A.size(-2), A.size(-1)));
  return s.gt(s.amax(-1, true).mul(share)).sum(-1);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/decompose.inc"

}  // namespace ramet
