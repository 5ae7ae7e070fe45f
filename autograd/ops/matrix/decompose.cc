#include "autograd/ops/matrix/decompose.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/linalg_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/matrix/decompose_internal.h"
#include "autograd/ops/matrix/diagonals.h"
#include "autograd/ops/matrix/linalg.h"
#include "autograd/ops/matrix/triangle.h"
#include "autograd/ops/reduce/moments.h"
#include "autograd/ops/shape/cat.h"

namespace ramet {

using namespace autograd;

namespace factor = kernels::linalg;

// Note [Results of decompositions]
// One node has all results. It keeps them without history, so that they do not keep each other
// alive. Where the gradient itself is recorded, the backward decomposes A once more, which gives
// the same bits.

// Note [Derivatives of vectors]
// Two vectors turn into each other by (difference of their gradients) / (difference of their
// values). Both are computed in double, for float32 matrices too. Values count as equal where the
// factorisation cannot separate them, or where their type cannot, because the loss sees rounded
// values. Where the values are equal and the gradients' difference is lost in rounding, the
// quotient is unknown:
// - A loss of the vectors alone that does not change when they turn has no derivative there: 0.
// - A loss that also takes the values, such as V f(L) V^T, may have any derivative there: NaN.
//   Where all gradients of these vectors and values are exactly 0, it is 0. In all other cases the
//   quotient is computed, also with a divisor of 0: then the derivative is infinite.

namespace {

// ---- QR -----------------------------------------------------------------------------------------

struct Qr {
  Tensor q, r;  // q is undefined where the caller does not want it
};
Qr decomposed(const char* op, const Tensor& A, int64_t columns, bool with_q) {
  const HostMatrices a(op, A);
  const Tensor r = host_result(with_matrix(A, columns, a.n));
  Tensor q;
  if (with_q) q = host_result(with_matrix(A, a.m, columns));
  factor::qr(a.batch, a.m, a.n, columns, a.data(), with_q ? numbers(q) : nullptr, numbers(r));
  return {with_q ? back(q, A) : Tensor(), back(r, A)};
}

// The gradient of A = q r, with q [*, m, k] and r [*, k, k]; gq or gr may be undefined. With M = r
// gr^T - gq^T q it is (gq + q (M's lower triangle, mirrored)) r^-T.
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
// Where n > m, the columns after the mth are q times those of r.
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

static std::tuple<Tensor, Tensor> linalg_qr_body(const Tensor& A, std::string_view mode) {
  const char* op = "linalg_qr";
  check_matrices(op, A, false);
  RAMET_CHECK(mode == "reduced" || mode == "complete" || mode == "r", op,
              "qr received unrecognized mode '", mode,
              "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = A.size(-2), n = A.size(-1), columns = mode == "complete" ? m : std::min(m, n);
  const Qr out = decomposed(op, A, columns, mode != "r");
  std::vector<Tensor> both = {out.q, out.r};
  if (recording(A)) {
    record_results("LinalgQrBackward0", {A}, both,
                   [sa = save(A), sq = save_if(mode != "r", out.q.shallow()),
                    sr = save(out.r.shallow()), again = std::string(mode)](
                       const Node& self, const std::vector<Tensor>& v, std::vector<Tensor>& grads) {
                     RAMET_CHECK(again != "r", "linalg_qr",
                                 "mode 'r' is not differentiable: expected 'reduced'");
                     Tensor q = sq.get(self), r = sr.get(self);
                     RAMET_CHECK(
                         again != "complete" || r.size(-2) <= r.size(-1), "linalg_qr",
                         "mode 'complete' is not differentiable with more rows than columns: got ",
                         r.size(-2), " and ", r.size(-1));
                     if (GradMode::is_enabled()) std::tie(q, r) = linalg_qr(sa.get(self), again);
                     grads[0] = qr_gradient(v[0], v[1], q, r);
                   });
  }
  return {mode == "r" ? empty({0}, A.options().requires_grad(false)) : both[0], both[1]};
}

// ---- derivatives of vectors ---------------------------------------------------------------------

namespace {

Tensor skew(const Tensor& x) { return x.sub(transposed(x)); }
Tensor as_double(const Tensor& x) { return x.defined() ? x.to(kDouble) : x; }
// A result of the host in the form that backward needs, on A's device.
Tensor kept(const Tensor& host, const Tensor& A) {
  const NoGradGuard off;
  return host.shallow().to(A.device());
}

// The quotients of Note [Derivatives of vectors], for values x [*, k]. First call add_vectors()
// with gradients [*, n, k], one column for each vector, then add_values() with that of x. Either
// may be undefined.
class Quotients {
 public:
  Quotients(const Tensor& x, double epsilon)
      : near_(8 * std::sqrt(static_cast<double>(std::max<int64_t>(x.size(-1), 1)))),
        epsilon_(epsilon),
        size_(x.detach().abs()),
        error_(size_.amax(-1, true).mul(near_ * std::numeric_limits<double>::epsilon())),
        scale_(zeros_like(size_)) {}

  void add_vectors(const Tensor& g) {
    if (g.defined()) scale_ = scale_.add(g.detach().norm(2, -2));
  }
  void add_values(const Tensor& g) {
    if (g.defined()) used_ = scale_.ne(0).logical_or(g.detach().ne(0));
  }

  // over / under, for pairs [*, k, k]; `under` is a difference or sum of values.
  Tensor of_pairs(const Tensor& over, const Tensor& under) const {
    const auto both = [](const Tensor& t, const auto& f) {
      return f(t.unsqueeze(-2), t.unsqueeze(-1));
    };
    const auto sum = [](const Tensor& a, const Tensor& b) { return a.add(b); };
    const Tensor rounding = both(size_.mul(near_ * epsilon_), sum),
                 equal = under.detach().abs().le(rounding.maximum(error_.unsqueeze(-1)));
    Tensor unknown;
    if (used_.defined()) {
      unknown = both(used_, [](const Tensor& a, const Tensor& b) { return a.logical_or(b); });
      unknown = unknown.tril(-1).logical_or(unknown.triu(1));  // for a vector and itself: 0
    }
    return of(over, under, equal, both(scale_, sum), unknown);
  }
  // over / x, for the vectors' parts [*, n, k] outside of the space that the vectors span.
  Tensor of_vectors(const Tensor& over, const Tensor& x) const {
    const Tensor equal = x.detach().le(error_).unsqueeze(-2);
    return of(over, x.unsqueeze(-2), equal, scale_.unsqueeze(-2),
              used_.defined() ? used_.unsqueeze(-2) : Tensor());
  }

 private:
  Tensor of(const Tensor& over, const Tensor& under, const Tensor& equal, const Tensor& scale,
            const Tensor& unknown) const {
    const Tensor lost = over.detach().abs().le(scale.mul(near_ * epsilon_)).logical_and(equal),
                 y = over.masked_fill(lost, 0).div(under.masked_fill(lost, 1));
    return unknown.defined() ? y.masked_fill(lost.logical_and(unknown), std::nan("")) : y;
  }
  double near_, epsilon_;
  Tensor size_, error_, scale_, used_;
};

}  // namespace

// ---- singular values ----------------------------------------------------------------------------

Svd autograd::host_svd(const char* op, const Tensor& A, bool full, bool vectors) {
  check_matrices(op, A, false);
  const HostMatrices a(op, A);
  const int64_t k = std::min(a.m, a.n);
  std::vector<int64_t> values = A.sizes().vec();
  values.pop_back();
  values.back() = k;
  Svd d;
  d.s = host_result(values);
  if (vectors) {
    d.u = host_result(with_matrix(A, a.m, full ? a.m : k));
    d.vh = host_result(with_matrix(A, full ? a.n : k, a.n));
  }
  check_factored(op, A,
                 factor::svd(a.batch, a.m, a.n, full, a.data(), vectors ? numbers(d.u) : nullptr,
                             numbers(d.s), vectors ? numbers(d.vh) : nullptr),
                 [](int64_t) {
                   return "The algorithm failed to converge because the input matrix contained "
                          "non-finite values";
                 });
  return d;
}

namespace {

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

// The gradient of A. g has the gradients of d's parts; any may be undefined. a is U^T gU less its
// transpose, and b is Vh gVh^T less its transpose. The vectors' part is U ((a + b) / (s_j - s_i) +
// (a - b) / (s_j + s_i)) Vh / 2.
Tensor svd_gradient(const Svd& g, const Svd& d, double epsilon) {
  const Tensor &u = d.u, &s = d.s, &vh = d.vh;
  if (s.size(-1) == 0) return u.matmul(vh);  // no values: zeros
  if (!g.u.defined() && !g.vh.defined()) return u.mul(g.s.unsqueeze(-2)).matmul(vh);
  Quotients quotients(s, epsilon);
  quotients.add_vectors(g.u);
  if (g.vh.defined()) quotients.add_vectors(transposed(g.vh));
  quotients.add_values(g.s);
  const Tensor row = s.unsqueeze(-2), column = s.unsqueeze(-1);
  Tensor ug, vg, sum, difference;
  if (g.u.defined()) {
    ug = transposed(u).matmul(g.u);
    sum = difference = skew(ug);
  }
  if (g.vh.defined()) {
    vg = vh.matmul(transposed(g.vh));
    const Tensor b = skew(vg);
    sum = sum.defined() ? sum.add(b) : b;
    difference = difference.defined() ? difference.sub(b) : b.neg();
  }
  Tensor inner = quotients.of_pairs(sum, row.sub(column))
                     .add(quotients.of_pairs(difference, row.add(column)))
                     .mul(.5);
  if (g.s.defined()) inner = inner.add(diag_embed(g.s));
  Tensor left = u.matmul(inner);
  if (ug.defined() && u.size(-2) > s.size(-1))
    left = left.add(quotients.of_vectors(g.u.sub(u.matmul(ug)), s));
  Tensor out = left.matmul(vh);
  if (vg.defined() && vh.size(-1) > s.size(-1)) {
    const Tensor beyond = transposed(g.vh).sub(transposed(vh).matmul(vg));
    out = out.add(u.matmul(transposed(quotients.of_vectors(beyond, s))));
  }
  return out;
}

}  // namespace

static std::tuple<Tensor, Tensor, Tensor> linalg_svd_body(const Tensor& A, bool full_matrices,
                                                          std::optional<std::string_view> driver) {
  check_driver("linalg_svd", A, driver);
  const Svd host = host_svd("linalg_svd", A, full_matrices, true);
  std::vector<Tensor> all = {back(host.u, A), back(host.s, A), back(host.vh, A)};
  if (recording(A)) {
    const int64_t k = all[1].size(-1);
    const auto first = [k](const Tensor& g, int64_t dim) {
      return g.defined() ? as_double(g.narrow(dim, 0, k)) : g;
    };
    record_results(
        "LinalgSvdBackward0", {A}, all,
        [sa = save(A), su = save(kept(host.u, A).narrow(-1, 0, k)), ss = save(kept(host.s, A)),
         sv = save(kept(host.vh, A).narrow(-2, 0, k)),
         first](const Node& self, const std::vector<Tensor>& v, std::vector<Tensor>& grads) {
          const Tensor a = sa.get(self);
          Svd d{su.get(self), ss.get(self), sv.get(self)};
          if (GradMode::is_enabled()) std::tie(d.u, d.s, d.vh) = linalg_svd(as_double(a), false);
          const Svd g{first(v[0], -1), as_double(v[1]), first(v[2], -2)};
          grads[0] = svd_gradient(g, d, epsilon_of(a)).to(a.scalar_type());
        });
  }
  return {all[0], all[1], all[2]};
}
std::tuple<Tensor&, Tensor&, Tensor&> linalg_svd_out(Tensor& U, Tensor& S, Tensor& Vh,
                                                     const Tensor& A, bool full_matrices,
                                                     std::optional<std::string_view> driver) {
  return three_out("linalg_svd_out", U, S, Vh, A,
                   [&] { return linalg_svd(A, full_matrices, driver); });
}
static Tensor linalg_svdvals_body(const Tensor& A, std::optional<std::string_view> driver) {
  check_driver("linalg_svdvals", A, driver);
  if (recording(A)) return std::get<1>(linalg_svd(A, false));
  return back(host_svd("linalg_svdvals", A, false, false).s, A);
}
static std::tuple<Tensor, Tensor, Tensor> svd_body(const Tensor& self, bool some, bool compute_uv) {
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

// ---- eigenvalues --------------------------------------------------------------------------------

namespace {

struct Eigh {
  Tensor w, v;
};
// Decomposes the lower triangles; the results are doubles on the host.
Eigh host_eigh(const char* op, const Tensor& A, bool vectors) {
  const HostMatrices a(op, A);
  std::vector<int64_t> values = A.sizes().vec();
  values.pop_back();
  const Tensor w = host_result(values);
  Tensor v;
  if (vectors) v = host_result(A.sizes());
  check_factored(op, A,
                 factor::eigh(a.batch, a.n, a.data(), numbers(w), vectors ? numbers(v) : nullptr),
                 [](int64_t) { return "The algorithm failed to converge"; });
  return {w, v};
}

// The gradient of A = V diag(w) V^T. g has the gradients of d's parts; any may be undefined.
Tensor eigh_gradient(const Eigh& g, const Eigh& d, double epsilon) {
  const Tensor t = transposed(d.v);
  if (d.w.size(-1) == 0) return d.v.matmul(t);  // no values: zeros
  if (!g.v.defined()) return d.v.mul(g.w.unsqueeze(-2)).matmul(t);
  Quotients quotients(d.w, epsilon);
  quotients.add_vectors(g.v);
  quotients.add_values(g.w);
  Tensor inner =
      quotients.of_pairs(skew(t.matmul(g.v)), d.w.unsqueeze(-2).sub(d.w.unsqueeze(-1))).mul(.5);
  if (g.w.defined()) inner = inner.add(diag_embed(g.w));
  return d.v.matmul(inner).matmul(t);
}

// A; or its transpose where the caller chooses the upper triangle.
Tensor lower_of(const char* op, const Tensor& A, std::string_view UPLO) {
  check_matrices(op, A, true);
  const bool lower = UPLO == "L" || UPLO == "l";
  RAMET_CHECK(lower || UPLO == "U" || UPLO == "u", op,
              "Expected UPLO argument to be 'L' or 'U', but got ", UPLO);
  return lower ? A : transposed(A);
}

}  // namespace

static std::tuple<Tensor, Tensor> linalg_eigh_body(const Tensor& A, std::string_view UPLO) {
  const Tensor lower = lower_of("linalg_eigh", A, UPLO);
  const Eigh host = host_eigh("linalg_eigh", lower, true);
  std::vector<Tensor> both = {back(host.w, A), back(host.v, A)};
  if (recording(A)) {
    record_results("LinalgEighBackward0", {lower}, both,
                   [sa = save(lower), sw = save(kept(host.w, A)), sv = save(kept(host.v, A))](
                       const Node& self, const std::vector<Tensor>& v, std::vector<Tensor>& grads) {
                     const Tensor a = sa.get(self);
                     Eigh d{sw.get(self), sv.get(self)};
                     if (GradMode::is_enabled())
                       std::tie(d.w, d.v) = linalg_eigh(as_double(a), "L");
                     grads[0] = eigh_gradient({as_double(v[0]), as_double(v[1])}, d, epsilon_of(a))
                                    .to(a.scalar_type());
                   });
  }
  return {both[0], both[1]};
}
static Tensor linalg_eigvalsh_body(const Tensor& A, std::string_view UPLO) {
  if (A.defined() && recording(A)) return std::get<0>(linalg_eigh(A, UPLO));
  return back(host_eigh("linalg_eigvalsh", lower_of("linalg_eigvalsh", A, UPLO), false).w, A);
}

namespace {
constexpr OutRule kCounts{OutType::kCastable, /*recorded=*/false};
}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/matrix/decompose.inc"

}  // namespace ramet
