#include "autograd/ops/matrix/distance.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/linalg_internal.h"
#include "autograd/ops/front/matmul_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/make/grids.h"
#include "autograd/ops/matrix/decompose.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/matrix/triangle.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/multiply.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/reduce/extremum.h"
#include "autograd/ops/reduce/moments.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"

namespace ramet {

using namespace autograd;

namespace {

void check_floating(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "Expected a floating point tensor as input. Got ",
              describe(x));
}

}  // namespace

// ---- norms --------------------------------------------------------------------------------------

static Tensor dist_body(const Tensor& self, const Tensor& other, const Scalar& p) {
  check_operands("dist", self, other);
  return norm(sub(self, other), p);
}

static Tensor renorm_body(const Tensor& self, const Scalar& p_, int64_t dim,
                          const Scalar& maxnorm) {
  const char* op = "renorm";
  check_floating(op, self);
  const double p = p_.toDouble(), most = maxnorm.toDouble();
  RAMET_CHECK(p > 0, op, "non-positive-norm not supported: got p ", p);
  RAMET_CHECK(most >= 0, op, "expected maxnorm to be >= 0 but got ", most);
  RAMET_CHECK(self.dim() > 1, op, "input needs at least 2 dimensions, got ", self.dim(),
              " dimensions");
  const int64_t d = wrap_dim(op, dim, self.dim());
  std::vector<int64_t> others;
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != d) others.push_back(i);
  const ScalarType t = compute_type(self.scalar_type());
  const Tensor norms = linalg_vector_norm(self, p, OptionalIntArrayRef(others), true, t);
  // Scale by a little less, so that the result is not above.
  const Tensor factor = where(norms.gt(most), norms.add(1e-7).reciprocal().mul(most), 1);
  return self.mul(factor).to(self.scalar_type());
}

namespace {

// The checks that every norm begins with.
void check_norm(const char* op, const Tensor& self, std::optional<ScalarType> dtype) {
  check_floating(op, self);
  RAMET_CHECK(!dtype || is_floating(*dtype), op, "dtype should be floating point, but got ",
              name_of(*dtype));
}
Tensor vector_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  const std::optional<Scalar> p = ord;
  return dtype ? norm(self, p, dim, keepdim, *dtype) : norm(self, p, dim, keepdim);
}
// The two dimensions of a matrix norm, wrapped.
std::array<int64_t, 2> matrix_dims(const char* op, const Tensor& self, IntArrayRef dim,
                                   std::optional<ScalarType> dtype) {
  check_norm(op, self, dtype);
  RAMET_CHECK(self.dim() >= 2, op, "The input tensor A must have at least 2 dimensions: got ",
              describe(self));
  RAMET_CHECK(dim.size() == 2, op, "dim must be a 2-tuple of ints: got ", dim);
  const std::array<int64_t, 2> dims{wrap_dim(op, dim[0], self.dim()),
                                    wrap_dim(op, dim[1], self.dim())};
  RAMET_CHECK(dims[0] != dims[1], op, "dims must be different. Got ", dim);
  return dims;
}
// The largest of no elements is 0 here: the elements are not negative.
Tensor largest(const Tensor& x, int64_t dim, bool keepdim) {
  return x.size(dim) == 0 ? x.sum(dim, keepdim) : amax(x, dim, keepdim);
}
enum class Singular { kLargest, kSmallest, kSum };
Tensor singular_norm(const char* op, const Tensor& self, std::array<int64_t, 2> dims,
                     std::optional<ScalarType> dtype, Singular which, bool keepdim) {
  refuse_capture(op);
  const ScalarType type = dtype.value_or(self.scalar_type());
  RAMET_CHECK(!is_narrow(type), op, "Low precision dtypes not supported. Got ", name_of(type));
  const Tensor s = linalg_svdvals(self.to(type).movedim(dims, {-2, -1}));
  RAMET_CHECK(which != Singular::kSmallest || s.size(-1) > 0, op,
              "the smallest singular value of none: got ", describe(self));
  const Tensor out = which == Singular::kSum       ? s.sum(-1)
                     : which == Singular::kLargest ? largest(s, -1, false)
                                                   : amin(s, -1);
  if (!keepdim) return out;
  return out.unsqueeze(std::min(dims[0], dims[1])).unsqueeze(std::max(dims[0], dims[1]));
}

}  // namespace

static Tensor linalg_vector_norm_body(const Tensor& self, const Scalar& ord,
                                      OptionalIntArrayRef dim, bool keepdim,
                                      std::optional<ScalarType> dtype) {
  check_norm("linalg_vector_norm", self, dtype);
  return vector_norm(self, ord, dim.has_value() ? dim.value() : IntArrayRef(), keepdim, dtype);
}

static Tensor linalg_matrix_norm_body(const Tensor& self, const Scalar& ord_, IntArrayRef dim,
                                      bool keepdim, std::optional<ScalarType> dtype) {
  const char* op = "linalg_matrix_norm";
  const auto [rows, columns] = matrix_dims(op, self, dim, dtype);
  const double ord = ord_.toDouble(), size = std::fabs(ord);
  if (size == 2)
    return singular_norm(op, self, {rows, columns}, dtype,
                         ord > 0 ? Singular::kLargest : Singular::kSmallest, keepdim);
  RAMET_CHECK(size == 1 || std::isinf(size), op, "Order ", ord_, " not supported.");
  const int64_t first = size == 1 ? rows : columns;
  int64_t second = size == 1 ? columns : rows;
  if (!keepdim && first < second) --second;
  const Tensor sums = vector_norm(self, 1, first, keepdim, dtype);
  return ord > 0 ? largest(sums, second, keepdim) : amin(sums, second, keepdim);
}

static Tensor linalg_matrix_norm_body(const Tensor& self, std::string_view ord, IntArrayRef dim,
                                      bool keepdim, std::optional<ScalarType> dtype) {
  const char* op = "linalg_matrix_norm";
  const std::array<int64_t, 2> dims = matrix_dims(op, self, dim, dtype);
  if (ord == "nuc") return singular_norm(op, self, dims, dtype, Singular::kSum, keepdim);
  RAMET_CHECK(ord == "fro", op, "Order ", ord, " not supported.");
  return vector_norm(self, 2, dims, keepdim, dtype);
}

Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim,
                   bool keepdim, std::optional<ScalarType> dtype) {
  const char* op = "linalg_norm";
  check_norm(op, self, dtype);
  const size_t dims = dim.has_value() ? dim.value().size() : 0;
  if (dim.has_value()) {
    RAMET_CHECK(dims == 1 || dims == 2, op,
                "If dim is specified, it must be of length 1 or 2. Got ", dim.value());
  } else if (ord) {
    RAMET_CHECK(self.dim() == 1 || self.dim() == 2, op,
                "If dim is not specified but ord is, the input must be 1D or 2D. Got ",
                describe(self));
  }
  if (!ord || dims == 1 || (dims == 0 && self.dim() == 1))
    return linalg_vector_norm(self, ord.value_or(2), dim, keepdim, dtype);
  if (std::fabs(ord->toDouble()) == 2) refuse_capture(op);
  const int64_t last[] = {-2, -1};
  return linalg_matrix_norm(self, *ord, dims ? dim.value() : IntArrayRef(last), keepdim, dtype);
}

Tensor linalg_norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  const char* op = "linalg_norm";
  check_norm(op, self, dtype);
  RAMET_CHECK(dim.has_value() ? dim.value().size() == 2 : self.dim() == 2, op, "order ", ord,
              " is of matrices: it takes two dimensions, or a matrix. Got ", describe(self));
  if (ord == "nuc") refuse_capture(op);
  const int64_t last[] = {-2, -1};
  return linalg_matrix_norm(self, ord, dim.has_value() ? dim.value() : IntArrayRef(last), keepdim,
                            dtype);
}

static Tensor nuclear_norm_body(const Tensor& self, IntArrayRef dim, bool keepdim) {
  const char* op = "nuclear_norm";
  return singular_norm(op, self, matrix_dims(op, self, dim, std::nullopt), std::nullopt,
                       Singular::kSum, keepdim);
}
static Tensor nuclear_norm_body(const Tensor& self, bool keepdim) {
  check_floating("nuclear_norm", self);
  RAMET_CHECK(self.dim() == 2, "nuclear_norm", "Expected a tensor with 2 dimensions, but got ",
              describe(self));
  return nuclear_norm(self, {0, 1}, keepdim);
}

static Tensor frobenius_norm_body(const Tensor& self, IntArrayRef dim, bool keepdim) {
  check_norm("frobenius_norm", self, std::nullopt);
  RAMET_CHECK(dim.size() <= 2, "frobenius_norm", "Expected at most 2 dimensions, but got ",
              dim.size(), " dimensions instead.");
  return vector_norm(self, 2, dim, keepdim, std::nullopt);
}

// ---- distances ----------------------------------------------------------------------------------

namespace {

// The distances of each row of x1 to each row of x2, over the last dimension.
Tensor differences_norm(const Tensor& x1, const Tensor& x2, double p) {
  return norm(x1.unsqueeze(-2).sub(x2.unsqueeze(-3)), std::optional<Scalar>(p), -1, false);
}

// sqrt(|a|^2 - 2 a b + |b|^2), as one product.
Tensor by_product(const Tensor& x1, const Tensor& x2) {
  const Tensor a = x1.to(compute_type(x1.scalar_type())), b = x2.to(a.scalar_type());
  const auto squares = [](const Tensor& x) { return x.square().sum(-1, true); };
  const auto one_each = [](const Tensor& x) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = 1;
    return ones(sizes, TensorOptions(x.scalar_type()).device(x.device()));
  };
  const Tensor left = cat({a.mul(-2), squares(a), one_each(a)}, -1),
               right = cat({b, one_each(b), squares(b)}, -1);
  return matmul(left, right.transpose(-2, -1)).clamp_min_(0).sqrt_().to(x1.scalar_type());
}

// Splits x1's rows into pieces, so that the differences of a piece to all rows of x2 take a few MB.
template <class F> Tensor by_rows(const Tensor& x1, const Tensor& x2, const F& f) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const int64_t rows = x1.size(-2), per_row = std::max<int64_t>(x1.numel() / rows, 1) * x2.size(-2),
                piece = std::max<int64_t>(kMost / std::max<int64_t>(per_row, 1), 1);
  if (piece >= rows) return f(x1, x2);
  std::vector<Tensor> pieces;
  for (const Tensor& part : x1.split(piece, -2)) pieces.push_back(f(part, x2));
  return cat(pieces, -2);
}

Tensor euclidean(const Tensor& x1, const Tensor& x2, bool product) {
  Tensor out;
  {
    const NoGradGuard off;
    out = product ? by_product(x1, x2)
                  : by_rows(x1.shallow(), x2.shallow(), [](const Tensor& a, const Tensor& b) {
                      return differences_norm(a, b, 2);
                    });
  }
  if (!recording(x1, x2)) return out;
  // d = |a - b|: a gets the sum of g (a - b) / d, by products too.
  return record("EuclideanDistBackward0", {x1, x2}, std::move(out),
                [m1 = Meta(x1), m2 = Meta(x2), s1 = save(x1), s2 = save(x2), sy = save_output(out)](
                    const Node& node, const Tensor& g) {
                  const Tensor &a = s1.get(node), &b = s2.get(node), &y = sy.get(node);
                  const Tensor zero = y.eq(0),
                               ratio = g.div(y.masked_fill(zero, 1)).masked_fill(zero, 0);
                  std::array<Tensor, 2> r;
                  if (node.needs(0))
                    r[0] = m1.reduce(a.mul(ratio.sum(-1, true)).sub(matmul(ratio, b)));
                  if (node.needs(1)) {
                    const Tensor across = ratio.transpose(-2, -1);
                    r[1] = m2.reduce(b.mul(across.sum(-1, true)).sub(matmul(across, a)));
                  }
                  return r;
                });
}

// f({x...}), computed again in the backward: the differences take more memory than all else.
template <class F, class... T> Tensor made_again(const char* node, F f, const T&... x) {
  Tensor out;
  {
    const NoGradGuard off;
    out = f(std::vector<Tensor>{x.shallow()...});
  }
  return recording(x...) ? record_composed(node, std::move(out), std::move(f), x...) : out;
}

}  // namespace

static Tensor cdist_body(const Tensor& x1, const Tensor& x2, double p,
                         std::optional<int64_t> compute_mode) {
  const char* op = "cdist";
  check_floating(op, x1);
  check_floating(op, x2);
  check_factors(op, x1, x2);
  RAMET_CHECK(x1.dim() >= 2 && x2.dim() >= 2, op, "only supports at least 2D tensors, got ",
              describe(x1), " and ", describe(x2));
  RAMET_CHECK(x1.size(-1) == x2.size(-1), op,
              "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
              " X2: ", x2.size(-1));
  RAMET_CHECK(p >= 0, op, "only supports non-negative p values: got ", p);
  const int64_t mode = compute_mode.value_or(0);
  RAMET_CHECK(mode >= 0 && mode <= 2, op, "possible modes: 0, 1, 2, but was: ", mode);
  const IntArrayRef lead1 = x1.sizes().slice(0, static_cast<size_t>(x1.dim() - 2)),
                    lead2 = x2.sizes().slice(0, static_cast<size_t>(x2.dim() - 2));
  std::vector<int64_t> lead = broadcast_sizes(op, lead1, lead2);
  if (x1.numel() == 0 || x2.numel() == 0) return matmul(x1, x2.transpose(-2, -1));  // zeros
  if (p == 2)
    return euclidean(x1, x2, mode == 1 || (mode == 0 && (x1.size(-2) > 25 || x2.size(-2) > 25)));
  return by_rows(x1, x2, [p](const Tensor& a, const Tensor& b) {
    return made_again(
        "CdistBackward0",
        [p](const std::vector<Tensor>& x) { return differences_norm(x[0], x[1], p); }, a, b);
  });
}

// The distances of each of the first `rows` rows to all later rows, pair by pair. None is that of a
// row to itself, which has no second derivative.
static Tensor behind_norm(const Tensor& x, int64_t rows, double p) {
  const Tensor at = triu_indices(rows, x.size(0), 1, TensorOptions(kLong).device(x.device()));
  const auto side = [&](int64_t k) { return x.index_select(0, at.select(0, k)); };
  const Tensor apart = side(0).sub(side(1));
  return apart.numel() == 0 ? apart.sum(1) : norm(apart, std::optional<Scalar>(p), 1, false);
}

static Tensor pdist_body(const Tensor& self, double p) {
  const char* op = "pdist";
  check_floating(op, self);
  RAMET_CHECK(self.dim() == 2, op, "only supports 2D tensors, got: ", self.dim(), "D");
  RAMET_CHECK(p >= 0, op, "only supports non-negative p values: got ", p);
  const int64_t n = self.size(0), width = std::max<int64_t>(self.size(1), 1);
  if (n < 2) return self.narrow(0, 0, 0).sum(1);
  // Take some rows at a time, each with all later rows: their differences stay in a cache.
  constexpr int64_t kMost = int64_t{1} << 18;
  std::vector<Tensor> pieces;
  for (int64_t i = 0; i < n - 1;) {
    const int64_t left = n - i, rows = std::clamp<int64_t>(kMost / width / left, 1, left - 1);
    if (rows == n - 1) return behind_norm(self, rows, p);
    pieces.push_back(made_again(
        "PdistBackward0",
        [p, rows](const std::vector<Tensor>& x) { return behind_norm(x[0], rows, p); },
        self.narrow(0, i, left)));
    i += rows;
  }
  return cat(pieces, 0);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  check_operands("pairwise_distance", x1, x2);
  return norm(x1.sub(x2).add(eps), std::optional<Scalar>(p), -1, keepdim);
}

static Tensor cosine_similarity_body(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const char* op = "cosine_similarity";
  check_operands(op, x1, x2);
  const ScalarType dtype = result_type(x1, x2);
  RAMET_CHECK(is_floating(dtype), op,
              "expected common dtype to be floating point, yet common dtype is ", name_of(dtype));
  const std::vector<int64_t> sizes = broadcast_sizes(op, x1.sizes(), x2.sizes());
  const auto unit = [&](const Tensor& x) {
    const Tensor y = x.to(dtype).expand(sizes);
    // A norm below eps counts as eps, but keeps its own derivative, as in LibTorch.
    const Tensor n = y.norm(2, dim, /*keepdim=*/true), own = n.detach();
    return y.div(n.add(own.clamp_min(eps).sub(own)));
  };
  return unit(x1).mul(unit(x2)).sum(dim);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/matrix/distance.inc"

}  // namespace ramet
