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
#include "autograd/ops/where.h"

namespace ramet {

using namespace autograd;

namespace factor = kernels::linalg;

// Note [Results of decompositions]
// Each result has a node of its own, whose gradient is that of the others' being 0: gradients add
// up. A node needs all results; it keeps them without history, so that no two nodes keep each other
// alive, and where the gradient itself is recorded decomposes A once more, which gives the same
// bits.

namespace {

double epsilon_of(const Tensor& x) {
  return x.scalar_type() == kDouble ? std::numeric_limits<double>::epsilon()
                                    : std::numeric_limits<float>::epsilon();
}

// 1 / (x_j - x_i) [*, k, k] of x [*, k] in order; 0 where they count as equal.
Tensor gaps(const Tensor& x, const Tensor& difference) {
  if (x.size(-1) == 0) return difference;  // of nothing there is no largest
  const Tensor plain = x.detach(), between = plain.unsqueeze(-2).sub(plain.unsqueeze(-1)).abs(),
               largest = plain.abs().amax(-1, true).unsqueeze(-1),
               equal = between.le(largest.mul(8 * epsilon_of(x)));
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

void check_driver(const char* op, const Tensor& A, std::optional<std::string_view> driver) {
  check_defined(op, A);
  if (!driver) return;
  RAMET_CHECK(!A.is_cpu(), op,
              "keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend: "
              "got ",
              *driver, " for ", describe(A));
  RAMET_CHECK(*driver == "gesvd" || *driver == "gesvdj" || *driver == "gesvda", op,
              "unknown svd driver ", *driver, ": expected one of gesvd, gesvdj, gesvda");
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

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices,
                                              std::optional<std::string_view> driver) {
  check_driver("linalg_svd", A, driver);
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
std::tuple<Tensor&, Tensor&, Tensor&> linalg_svd_out(Tensor& U, Tensor& S, Tensor& Vh,
                                                     const Tensor& A, bool full_matrices,
                                                     std::optional<std::string_view> driver) {
  return three_out("linalg_svd_out", U, S, Vh, A,
                   [&] { return linalg_svd(A, full_matrices, driver); });
}
Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver) {
  check_driver("linalg_svdvals", A, driver);
  if (recording(A)) return std::get<1>(linalg_svd(A, false));
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
std::tuple<Tensor&, Tensor&, Tensor&> svd_out(Tensor& U, Tensor& S, Tensor& V, const Tensor& self,
                                              bool some, bool compute_uv) {
  return three_out("svd_out", U, S, V, self, [&] { return svd(self, some, compute_uv); });
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

// A number for every matrix of A.
std::optional<Tensor> for_each(const char* op, const Tensor& A, std::optional<double> x) {
  check_defined(op, A);
  if (!x) return std::nullopt;
  return full({}, *x, TensorOptions(kDouble).device(A.device()));
}

// Which singular values count as 0.
class Tolerance {
 public:
  using Given = std::optional<Tensor>;
  Tolerance(const char* op, const Tensor& A, const Given& atol, const Given& rtol)
      : atol_(atol), rtol_(rtol), lead_(A.sizes().vec()) {
    lead_.resize(lead_.size() - 2);
    for (const Given* x : {&atol, &rtol}) {
      if (!*x) continue;
      common_device(op, A, **x);
      if (A.numel()) lead_ = broadcast_sizes(op, lead_, (*x)->sizes());
    }
    if (!rtol_) {
      const double usual = epsilon_of(A) * static_cast<double>(std::max(A.size(-2), A.size(-1)));
      rtol_ = for_each(op, A, usual);
      if (atol_) rtol_ = where(atol_->gt(0), 0, *rtol_);
    }
  }
  /// The leading dimensions of A and the tolerances together.
  const std::vector<int64_t>& lead() const { return lead_; }
  /// Which of s [*, k] are above; k > 0.
  Tensor above(const Tensor& s) const {
    const Tensor share = rtol_->unsqueeze(-1).mul(s.amax(-1, true));
    return s.gt(atol_ ? maximum(atol_->unsqueeze(-1), share) : share);
  }

 private:
  Given atol_, rtol_;
  std::vector<int64_t> lead_;
};

Tensor pinv_of(const Tensor& A, const Tolerance& tolerance) {
  Tensor out;
  {
    const NoGradGuard off;
    const Svd d = svd_of("linalg_pinv", A, false, true);
    if (A.numel() == 0) {
      out = zeros(with_matrix(A, A.size(-1), A.size(-2)), A.options().requires_grad(false));
    } else {
      const Tensor none = tolerance.above(d.s).logical_not(),
                   inverse = d.s.masked_fill(none, 1).reciprocal().masked_fill(none, 0);
      out = own(transposed(d.vh).mul(inverse.unsqueeze(-2)).matmul(transposed(d.u)));
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

Tensor linalg_pinv(const Tensor& A, const std::optional<Tensor>& atol,
                   const std::optional<Tensor>& rtol, bool hermitian) {
  const char* op = "linalg_pinv";
  check_matrices(op, A, hermitian);
  check_constant(op, "atol", atol.value_or(Tensor()));
  check_constant(op, "rtol", rtol.value_or(Tensor()));
  const Tolerance tolerance(op, A, atol, rtol);
  std::vector<int64_t> sizes = tolerance.lead();
  sizes.insert(sizes.end(), {A.size(-2), A.size(-1)});
  const Tensor all = A.sizes() == IntArrayRef(sizes) ? A : A.expand(sizes);
  return pinv_of(hermitian ? mirrored(all) : all, tolerance);
}
Tensor linalg_pinv(const Tensor& A, std::optional<double> atol, std::optional<double> rtol,
                   bool hermitian) {
  const char* op = "linalg_pinv";
  return linalg_pinv(A, for_each(op, A, atol), for_each(op, A, rtol), hermitian);
}
Tensor linalg_pinv(const Tensor& A, double rcond, bool hermitian) {
  return linalg_pinv(A, std::optional<double>(0), rcond, hermitian);
}
Tensor linalg_pinv(const Tensor& A, const Tensor& rcond, bool hermitian) {
  return linalg_pinv(A, for_each("linalg_pinv", A, 0), rcond, hermitian);
}
Tensor pinverse(const Tensor& self, double rcond) {
  refuse_capture("pinverse");
  return linalg_pinv(self, rcond);
}

Tensor linalg_matrix_rank(const Tensor& A, const std::optional<Tensor>& atol,
                          const std::optional<Tensor>& rtol, bool hermitian) {
  const char* op = "linalg_matrix_rank";
  check_matrices(op, A, hermitian);
  const Tolerance tolerance(op, A, atol, rtol);
  const NoGradGuard off;
  if (A.numel() == 0) return zeros(tolerance.lead(), TensorOptions(kLong).device(A.device()));
  const Tensor s = hermitian ? linalg_eigvalsh(A).abs() : linalg_svdvals(A);
  return tolerance.above(s).sum(-1);
}
Tensor linalg_matrix_rank(const Tensor& A, std::optional<double> atol, std::optional<double> rtol,
                          bool hermitian) {
  const char* op = "linalg_matrix_rank";
  return linalg_matrix_rank(A, for_each(op, A, atol), for_each(op, A, rtol), hermitian);
}
Tensor linalg_matrix_rank(const Tensor& A, double tol, bool hermitian) {
  return linalg_matrix_rank(A, std::optional<double>(tol), 0, hermitian);
}
Tensor linalg_matrix_rank(const Tensor& A, const Tensor& tol, bool hermitian) {
  return linalg_matrix_rank(A, tol, for_each("linalg_matrix_rank", A, 0), hermitian);
}

namespace {
constexpr OutRule kCounts{OutType::kCastable, /*recorded=*/false};
}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/decompose.inc"

}  // namespace ramet
