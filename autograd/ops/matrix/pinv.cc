// Pseudo-inverses and ranks, by singular values. decompose.inc has their rows.
#include <algorithm>

#include "autograd/ops/front/linalg_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/matrix/decompose.h"
#include "autograd/ops/matrix/decompose_internal.h"
#include "autograd/ops/matrix/triangle.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/shape/view.h"

namespace ramet {

using namespace autograd;

namespace {

// A symmetric matrix: the lower triangle and its mirror image.
Tensor mirrored(const Tensor& A) { return A.tril().add(transposed(A.tril(-1))); }

// A number for every matrix of A.
std::optional<Tensor> for_each(const char* op, const Tensor& A, std::optional<double> x) {
  check_defined(op, A);
  if (!x) return std::nullopt;
  return full({}, *x, TensorOptions(kDouble).device(A.device()));
}

// Decides which singular values count as 0.
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
  /// The leading dimensions of A and of the tolerances, broadcast together.
  const std::vector<int64_t>& lead() const { return lead_; }
  /// Which of s [*, k] are above the tolerance; k > 0.
  Tensor above(const Tensor& s) const {
    const Tensor share = rtol_->unsqueeze(-1).mul(s.amax(-1, true));
    return s.gt(atol_ ? maximum(atol_->unsqueeze(-1), share) : share);
  }

 private:
  Given atol_, rtol_;
  std::vector<int64_t> lead_;
};

// x y z for x [m, n], y [n, m] and z [m, n]: first the product with the smaller result.
Tensor through(const Tensor& x, const Tensor& y, const Tensor& z) {
  return x.size(-2) > x.size(-1) ? x.matmul(y.matmul(z)) : x.matmul(y).matmul(z);
}

Tensor pinv_of(const Tensor& A, const Tolerance& tolerance) {
  Tensor out;
  {
    const NoGradGuard off;
    const Svd host = host_svd("linalg_pinv", A, false, true),
              d{back(host.u, A), back(host.s, A), back(host.vh, A)};
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
                               gt = transposed(g), ptgt = through(pt, p, gt),
                               gtp = through(gt, p, pt);
                  return gtp.sub(through(a, p, gtp))
                      .add(ptgt.sub(through(ptgt, p, a)))
                      .sub(through(pt, g, pt));
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
Tensor pinverse_body(const Tensor& self, double rcond) {
  refuse_capture("pinverse");
  return linalg_pinv(self, rcond);
}

Tensor linalg_matrix_rank_body(const Tensor& A, const std::optional<Tensor>& atol,
                               const std::optional<Tensor>& rtol, bool hermitian) {
  const char* op = "linalg_matrix_rank";
  check_matrices(op, A, hermitian);
  const Tolerance tolerance(op, A, atol, rtol);
  const NoGradGuard off;
  if (A.numel() == 0) return zeros(tolerance.lead(), TensorOptions(kLong).device(A.device()));
  const Tensor s = hermitian ? linalg_eigvalsh(A).abs() : linalg_svdvals(A);
  return tolerance.above(s).sum(-1);
}
Tensor linalg_matrix_rank_body(const Tensor& A, std::optional<double> atol,
                               std::optional<double> rtol, bool hermitian) {
  const char* op = "linalg_matrix_rank";
  return linalg_matrix_rank(A, for_each(op, A, atol), for_each(op, A, rtol), hermitian);
}
Tensor linalg_matrix_rank_body(const Tensor& A, double tol, bool hermitian) {
  return linalg_matrix_rank(A, std::optional<double>(tol), 0, hermitian);
}
Tensor linalg_matrix_rank_body(const Tensor& A, const Tensor& tol, bool hermitian) {
  return linalg_matrix_rank(A, tol, for_each("linalg_matrix_rank", A, 0), hermitian);
}

}  // namespace ramet
