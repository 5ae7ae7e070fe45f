#include "autograd/ops/matrix/products.h"

#include <algorithm>

#include "autograd/ops/front/arithmetic_internal.h"
#include "autograd/ops/front/matmul_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/matrix/addmm.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/ternary.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/rearrange.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

int64_t product_of(const char* op, IntArrayRef sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n = checked_mul(op, "size", n, s);
  return n;
}

void check_expands(const char* op, const Tensor& self, IntArrayRef sizes) {
  RAMET_CHECK(broadcast_sizes(op, self.sizes(), sizes) == sizes, op, "self: got ", describe(self),
              ", expected a shape that expands to ", sizes);
}

}  // namespace

// ---- tensordot, inner ---------------------------------------------------------------------------

namespace {

// One side of a contraction: the dimensions that stay, those that are summed, and their sizes.
struct Side {
  Tensor t;
  std::vector<int64_t> free, summed, sizes;
  Side(const char* op, const Tensor& x, IntArrayRef dims) : t(x) {
    uint64_t seen = 0;
    for (const int64_t dim : dims) {
      const int64_t d = wrap_dim(op, dim, x.dim());
      RAMET_CHECK(!(seen >> d & 1), op, "dim ", d,
                  " appears multiple times in the list of dims: got ", dims);
      seen |= uint64_t{1} << d;
      if (x.dim() > 0) summed.push_back(d);
    }
    for (int64_t d = 0; d < x.dim(); ++d)
      if (!(seen >> d & 1)) free.push_back(d), sizes.push_back(x.size(d));
  }
  Tensor matrix(bool free_first, int64_t rows, int64_t cols) const {
    std::vector<int64_t> order = free_first ? free : summed;
    const std::vector<int64_t>& last = free_first ? summed : free;
    order.insert(order.end(), last.begin(), last.end());
    return t.permute(order).reshape({rows, cols});
  }
};

}  // namespace

static Tensor tensordot_body(const Tensor& self, const Tensor& other, IntArrayRef dims_self,
                             IntArrayRef dims_other) {
  const char* op = "tensordot";
  check_factors(op, self, other);
  RAMET_CHECK(dims_self.size() == dims_other.size(), op,
              "both dimension lists should have same length: got ", dims_self, " and ", dims_other);
  Side a(op, self, dims_self), b(op, other, dims_other);
  int64_t n = 1;
  for (size_t i = 0; i < std::min(a.summed.size(), b.summed.size()); ++i) {
    const int64_t p = a.summed[i], q = b.summed[i], s = self.size(p), t = other.size(q);
    RAMET_CHECK(s == t || s == 1 || t == 1, op,
                "contracted dimensions need to match, but first has size ", s, " in dim ", p,
                " and second has size ", t, " in dim ", q);
    // One element times each of several elements is that element times their sum.
    if (s != t && s == 1) b.t = b.t.sum(OptionalIntArrayRef(q), true, b.t.scalar_type());
    if (s != t && t == 1) a.t = a.t.sum(OptionalIntArrayRef(p), true, a.t.scalar_type());
    n = checked_mul(op, "size", n, s == t ? s : 1);
  }
  const int64_t rows = product_of(op, a.sizes), cols = product_of(op, b.sizes);
  std::vector<int64_t> sizes = a.sizes;
  sizes.insert(sizes.end(), b.sizes.begin(), b.sizes.end());
  return mm(a.matrix(true, rows, n), b.matrix(false, n, cols)).reshape(sizes);
}

static Tensor inner_body(const Tensor& self, const Tensor& other) {
  const char* op = "inner";
  check_operands(op, self, other);
  if (self.dim() == 0 || other.dim() == 0) return self.mul(other);
  check_factors(op, self, other);
  RAMET_CHECK(self.size(-1) == other.size(-1), op,
              "the last dimension must match on both input tensors but got shapes ", self.sizes(),
              " and ", other.sizes());
  return tensordot(self, other, {-1}, {-1});
}

// ---- products added to a tensor -----------------------------------------------------------------

static Tensor addmv_body(const Tensor& self, const Tensor& mat, const Tensor& vec,
                         const Scalar& beta, const Scalar& alpha) {
  const char* op = "addmv";
  check_factors(op, mat, vec);
  check_factors(op, self, mat);
  RAMET_CHECK(mat.dim() == 2 && vec.dim() == 1 && mat.size(1) == vec.size(0), op, "shapes: got ",
              describe(mat), " and ", describe(vec), ", expected [m, k] and [k]");
  check_expands(op, self, mat.size(0));
  return addmm(self.dim() == 0 ? self : self.unsqueeze(1), mat, vec.unsqueeze(1), beta, alpha)
      .squeeze(1);
}

static Tensor addr_body(const Tensor& self, const Tensor& vec1, const Tensor& vec2,
                        const Scalar& beta, const Scalar& alpha) {
  const char* op = "addr";
  check_operands(op, vec1, vec2);
  check_operands(op, self, vec1);
  RAMET_CHECK(vec1.dim() == 1 && vec2.dim() == 1, op, "expected two vectors: got ", describe(vec1),
              " and ", describe(vec2));
  const int64_t sizes[] = {vec1.size(0), vec2.size(0)};
  check_expands(op, self, sizes);
  const ScalarType dtype = result_type(self, vec1, vec2);
  for (const Scalar& number : {beta, alpha}) {
    RAMET_CHECK(!is_integral(dtype) || !number.isFloatingPoint(), op,
                "For integral input tensors, beta and alpha must not be floating point numbers: "
                "got ",
                number);
    RAMET_CHECK(!number.isBoolean() || dtype == kBool, op,
                "Boolean beta and alpha are only supported for Boolean results: got ", number);
  }
  Tensor out;
  {
    const NoGradGuard off;
    const Tensor column = vec1.shallow().unsqueeze(1), row = vec2.shallow(), old = self.shallow();
    const ScalarType t = compute_type(dtype);  // several operations, one rounding
    if (dtype == kBool) {
      Tensor truth = column.logical_and(row);
      if (alpha.equal(0)) truth.zero_();
      out = beta.equal(0) ? truth : truth.logical_or_(old);
    } else if (beta.equal(0)) {
      out = times(column.to(t).mul(row.to(t)), alpha).to(dtype);
    } else {
      out = addcmul(times(old.to(t), beta).expand(sizes), column.to(t), row.to(t), alpha).to(dtype);
    }
  }
  if (!recording(self, vec1, vec2)) return out;
  return record("AddrBackward0", {self, vec1, vec2}, std::move(out),
                [ms = Meta(self), m1 = Meta(vec1), m2 = Meta(vec2), beta, alpha,
                 s1 = save_if(wants_grad(vec2), vec1),
                 s2 = save_if(wants_grad(vec1), vec2)](const Node& node, const Tensor& g) {
                  const ScalarType t = g.scalar_type();
                  std::array<Tensor, 3> r;
                  if (node.needs(0)) r[0] = ms.reduce(times(g, beta));
                  if (node.needs(1)) r[1] = m1.reduce(times(mv(g, s2.get(node).to(t)), alpha));
                  if (node.needs(2)) r[2] = m2.reduce(times(mv(g.t(), s1.get(node).to(t)), alpha));
                  return r;
                });
}

static Tensor addbmm_body(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                          const Scalar& beta, const Scalar& alpha) {
  const char* op = "addbmm";
  check_bmm(op, batch1, batch2);
  check_factors(op, self, batch1);
  const int64_t sizes[] = {batch1.size(1), batch2.size(2)},
                n = checked_mul(op, "size", batch1.size(0), batch1.size(2));
  check_expands(op, self, sizes);
  // A sum of products is one product of matrices placed next to each other.
  return addmm(self, batch1.transpose(0, 1).reshape({sizes[0], n}), batch2.reshape({n, sizes[1]}),
               beta, alpha);
}

// ---- kron, cross --------------------------------------------------------------------------------

Tensor kron(const Tensor& self, const Tensor& other) {
  check_operands("kron", self, other);
  const int64_t rank = std::max(self.dim(), other.dim());
  std::vector<int64_t> outer, inner, sizes;
  for (int64_t d = 0; d < rank; ++d) {
    const auto extent = [&](const Tensor& t) {
      return d < rank - t.dim() ? 1 : t.size(d - rank + t.dim());
    };
    outer.insert(outer.end(), {extent(self), 1});
    inner.insert(inner.end(), {1, extent(other)});
    sizes.push_back(checked_mul("kron", "size", extent(self), extent(other)));
  }
  return self.reshape(outer).mul(other.reshape(inner)).reshape(sizes);
}

namespace {

Tensor crossed(const char* op, const Tensor& a, const Tensor& b, int64_t dim) {
  check_factors(op, a, b);
  RAMET_CHECK(a.dim() == b.dim(), op, "inputs must have the same number of dimensions: got ",
              describe(a), " and ", describe(b));
  const int64_t d = wrap_dim(op, dim, a.dim());
  RAMET_CHECK(a.dim() > 0 && a.size(d) == 3 && b.size(d) == 3, op, "inputs dimension ", dim,
              " must have length 3: got ", describe(a), " and ", describe(b));
  broadcast_sizes(op, a.sizes(), b.sizes());
  Tensor out;
  {
    const NoGradGuard off;
    const bool narrow = is_narrow(a.scalar_type());  // three operations, one rounding
    const Tensor x = narrow ? a.to(kFloat) : a.shallow(), y = narrow ? b.to(kFloat) : b.shallow();
    const auto turned = [d](const Tensor& t, int64_t by) { return roll(t, -by, d); };
    out = turned(x, 1).mul(turned(y, 2)).sub_(turned(x, 2).mul(turned(y, 1))).to(a.scalar_type());
  }
  if (!recording(a, b)) return out;
  return record("LinalgCrossBackward0", {a, b}, std::move(out),
                [d, ma = Meta(a), mb = Meta(b), sa = save_if(wants_grad(b), a),
                 sb = save_if(wants_grad(a), b)](const Node& node, const Tensor& g) {
                  std::array<Tensor, 2> r;
                  if (node.needs(0)) r[0] = ma.reduce(linalg_cross(sb.get(node), g, d));
                  if (node.needs(1)) r[1] = mb.reduce(linalg_cross(g, sa.get(node), d));
                  return r;
                });
}

}  // namespace

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  return crossed("linalg_cross", self, other, dim);
}
static Tensor cross_body(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  check_defined("cross", self);
  if (dim) return crossed("cross", self, other, *dim);
  const IntArrayRef sizes = self.sizes();
  const auto* first = std::find(sizes.begin(), sizes.end(), 3);
  RAMET_CHECK(first != sizes.end(), "cross", "no dimension of size 3 in input: got ",
              describe(self));
  return crossed("cross", self, other, first - sizes.begin());
}

// ---- chains of products -------------------------------------------------------------------------

namespace {

// The product of matrices first to last (inclusive), split where `cuts` says.
Tensor chained(const std::vector<Tensor>& m, const std::vector<std::vector<size_t>>& cuts,
               size_t first, size_t last) {
  if (first == last) return m[first];
  const size_t cut = cuts[first][last];
  return mm(chained(m, cuts, first, cut), chained(m, cuts, cut + 1, last));
}

// The product of matrices of fitting sizes. Finds the best brackets by dynamic programming (Cormen
// et al., Introduction to Algorithms, matrix-chain multiplication).
Tensor cheapest(const std::vector<Tensor>& m) {
  const size_t n = m.size();
  const auto extent = [&](size_t i) {
    return static_cast<double>(i == 0 ? m[0].size(0) : m[i - 1].size(1));
  };
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> cuts(n, std::vector<size_t>(n, 0));
  for (size_t length = 2; length <= n; ++length) {
    for (size_t i = 0, j = length - 1; j < n; ++i, ++j) {
      for (size_t k = i; k < j; ++k) {
        const double c = cost[i][k] + cost[k + 1][j] + extent(i) * extent(k + 1) * extent(j + 1);
        // For equal costs as LibTorch: three matrices from the left, more from the right.
        if (k == i || c < cost[i][j] || (n == 3 && c == cost[i][j])) cost[i][j] = c, cuts[i][j] = k;
      }
    }
  }
  return chained(m, cuts, 0, n - 1);
}

}  // namespace

static Tensor linalg_multi_dot_body(TensorList tensors) {
  const char* op = "linalg_multi_dot";
  const size_t n = tensors.size();
  RAMET_CHECK(n >= 2, op, "expected at least 2 tensors but got ", n);
  std::vector<Tensor> matrices;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& t = tensors[i];
    check_factors(op, tensors[0], t);
    const bool end = i == 0 || i + 1 == n;
    RAMET_CHECK(t.dim() == 2 || (end && t.dim() == 1), op, "tensor ", i,
                " must be a matrix, or at an end a vector: got ", describe(t));
    matrices.push_back(t.dim() == 2 ? t : t.unsqueeze(i == 0 ? 0 : 1));
    if (t.dim() == 2 && i == 0) sizes.push_back(t.size(0));
    if (t.dim() == 2 && i + 1 == n) sizes.push_back(t.size(1));
    RAMET_CHECK(i == 0 || matrices[i - 1].size(1) == matrices[i].size(0), op, "tensors ", i - 1,
                " and ", i, " cannot be multiplied: got ", describe(tensors[i ? i - 1 : 0]),
                " and ", describe(t));
  }
  return cheapest(matrices).reshape(sizes);
}

static Tensor chain_matmul_body(TensorList matrices) {
  RAMET_CHECK(!matrices.empty(), "chain_matmul", "Expected one or more matrices: got none");
  for (const Tensor& m : matrices) {
    check_defined("chain_matmul", m);
    RAMET_CHECK(m.dim() == 2, "chain_matmul", "Tensor dimension is ", m.dim(),
                ", expected 2 instead: got ", describe(m));
  }
  return matrices.size() == 1 ? matrices[0] : linalg_multi_dot(matrices);
}

namespace {
constexpr OperandsRule kSameOperands{{OutType::kSame}};
}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/matrix/products.inc"

}  // namespace ramet
