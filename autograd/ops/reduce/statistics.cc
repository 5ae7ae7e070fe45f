#include "autograd/ops/reduce/statistics.h"

#include <algorithm>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/sort_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/matrix/diagonals.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/multiply.h"
#include "autograd/ops/pointwise/ternary.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/reduce/extremum.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"

namespace ramet {

using namespace autograd;

// ---- reductions ---------------------------------------------------------------------------------

Tensor nansum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
              std::optional<ScalarType> dtype) {
  check_defined("nansum", self);
  if (!is_floating(self.scalar_type())) return sum(self, dim, keepdim, dtype);
  return sum(self.masked_fill(isnan(self), 0), dim, keepdim, dtype);
}

Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
               std::optional<ScalarType> dtype) {
  check_defined("nanmean", self);
  RAMET_CHECK(is_floating(self.scalar_type()), "nanmean",
              "expected input to have floating point or complex dtype but got ",
              self.scalar_type());
  const ScalarType t = dtype.value_or(self.scalar_type()), wide = compute_type(t);
  const Tensor count = sum(isnan(self).logical_not(), dim, keepdim);
  return nansum(self, dim, keepdim, wide).div(count.to(wide)).to(t);
}

Tensor count_nonzero(const Tensor& self, IntArrayRef dim) {
  check_defined("count_nonzero", self);
  return sum(self.ne(0), dim);
}
Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim) {
  check_defined("count_nonzero", self);
  return dim ? sum(self.ne(0), *dim) : sum(self.ne(0));
}

std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  check_defined("aminmax", self);
  const IntArrayRef dims = dim ? IntArrayRef(*dim) : IntArrayRef();
  return {amin(self, dims, keepdim), amax(self, dims, keepdim)};
}
std::tuple<Tensor&, Tensor&> aminmax_out(Tensor& min, Tensor& max, const Tensor& self,
                                         std::optional<int64_t> dim, bool keepdim) {
  const char* op = "aminmax_out";
  check_defined(op, self);
  check_defined(op, min);
  check_defined(op, max);
  check_out_history(op, min, recording(self));
  RAMET_CHECK(max.scalar_type() == self.scalar_type(), op, "Expected out tensor to have dtype ",
              name_of(self.scalar_type()), ", but got ", name_of(max.scalar_type()));
  check_out_device(op, max, self.device());
  const NoGradGuard off;
  const auto [low, high] = aminmax(self, dim, keepdim);
  deliver(op, min, low, OutType::kSame);
  deliver(op, max, high, OutType::kSame);
  return {min, max};
}

// ---- quantiles ----------------------------------------------------------------------------------

namespace {

// The order of the elements of each row of x, [rows, n]. It sorts whole numbers in the same order:
// a positive element's bits with the sign bit set, a negative one's bits inverted; NaNs last.
Tensor sorted_places(const Tensor& x) {
  const NoGradGuard off;
  const bool wide = x.scalar_type() == kDouble;
  const Tensor bits = x.detach().contiguous().view(wide ? kLong : kInt);
  const int64_t top = wide ? INT64_MIN : INT32_MIN;
  const Tensor turned = where(bits.lt(0), bitwise_xor(bits, -1), bitwise_xor(bits, top));
  Tensor keys = turned.to(kLong);
  if (!wide) keys.bitwise_and_(int64_t{0xffffffff});
  keys.masked_fill_(isnan(x), wide ? int64_t{-1} : int64_t{0xffffffff});
  return sorted_positions(keys, wide ? 64 : 32);
}

enum class Between : uint8_t { kLinear, kLower, kHigher, kMidpoint, kNearest };
Between between(const char* op, std::string_view name) {
  if (name == "linear") return Between::kLinear;
  if (name == "lower") return Between::kLower;
  if (name == "higher") return Between::kHigher;
  if (name == "midpoint") return Between::kMidpoint;
  RAMET_CHECK(name == "nearest", op,
              "interpolation must be one of linear, lower, higher, midpoint or nearest, but got ",
              name);
  return Between::kNearest;
}

// lerp(a, b, w); where one of a and b is infinite, that one, because the formula would have inf -
// inf or 0 inf. For infinities of both signs it is NaN.
Tensor lerp_to_infinity(const Tensor& a, const Tensor& b, const Tensor& w) {
  Tensor y;
  {
    const NoGradGuard off;
    y = where(isinf(a).logical_or(isinf(b)), a.add(b), lerp(a, b, w));
  }
  if (!recording(a, b, w)) return y;
  return record("LerpBackward1", {a, b, w}, std::move(y),
                [sa = save(a), sb = save(b), sw = save(w)](const Node& self, const Tensor& g) {
                  const Tensor a = sa.get(self), b = sb.get(self), w = sw.get(self);
                  std::array<Tensor, 3> r;
                  if (self.needs(0)) r[0] = g.mul(w.neg().add(1));
                  if (self.needs(1)) r[1] = g.mul(w);
                  if (self.needs(2)) r[2] = g.mul(b.sub(a).masked_fill(a.eq(b), 0));
                  return r;
                });
}

Tensor quantiles(const char* op, const Tensor& self, const Tensor& q, std::optional<int64_t> dim,
                 bool keepdim, std::string_view interpolation, bool skips) {
  const Between way = between(op, interpolation);
  check_defined(op, self);
  check_defined(op, q);
  RAMET_CHECK(self.numel() > 0, op, "input tensor must be non-empty: got ", describe(self));
  RAMET_CHECK(q.dim() <= 1, op, "q must be a scalar or 1D tensor: got ", describe(q));
  RAMET_CHECK(self.scalar_type() == kFloat || self.scalar_type() == kDouble, op,
              "input tensor must be either float or double dtype: got ", describe(self));
  RAMET_CHECK(self.scalar_type() == q.scalar_type(), op,
              "q tensor must be same dtype as the input tensor: got ", describe(q));
  check_same_device(op, self, q);
  const int64_t d = dim ? wrap_dim(op, *dim, self.dim()) : 0;
  report_unless(op, logical_and(q.detach().ge(0), q.detach().le(1)), q.detach(),
                "q values must be in the range [0, 1]");
  // The rows to reduce, and the shape of the result in their place.
  const Tensor lines = !dim              ? self.reshape(-1)
                       : self.dim() == 0 ? self.reshape(1)
                                         : self.movedim(d, -1);
  std::vector<int64_t> shape;
  if (dim && self.dim() > 0) {
    shape = self.sizes().vec();
    if (keepdim) shape[static_cast<size_t>(d)] = 1;
    else shape.erase(shape.begin() + d);
  } else if (keepdim) {
    shape.assign(static_cast<size_t>(self.dim()), 1);
  }
  const int64_t n = lines.size(-1);
  const Tensor x = lines.reshape({-1, n}), order = sorted_places(x);
  const int64_t rows = x.size(0);

  // The position of each quantile among the sorted elements: [rows, quantiles].
  const Tensor nan = isnan(x.detach()),
               last = skips ? nan.logical_not().sum(1, true).sub(1).clamp_min(0).to(q.scalar_type())
                            : full({rows, 1}, n - 1, q.options().requires_grad(false));
  Tensor rank = q.reshape({1, -1}).mul(last);
  if (!skips) rank = rank.masked_fill(nan.any(1, true), static_cast<double>(n - 1));
  const auto at = [&](const Tensor& places) {
    return x.gather(1, order.gather(1, places.detach().to(kLong).clamp_max(n - 1)));
  };
  Tensor values;
  if (way == Between::kNearest) {
    values = at(round(rank));
  } else if (way == Between::kHigher) {
    values = at(ceil(rank));
  } else {
    const Tensor below = floor(rank.detach());
    values = at(below);
    if (way != Between::kLower) {
      const Tensor above = at(ceil(rank));
      const Tensor share =
          way == Between::kMidpoint ? full_like(below, .5).expand_as(values) : rank.sub(below);
      values = lerp_to_infinity(values, above, share);
    }
  }
  if (q.dim() == 0) return values.reshape(shape);
  shape.insert(shape.begin(), q.numel());
  return values.t().reshape(shape);
}

Tensor quantiles(const char* op, const Tensor& self, double q, std::optional<int64_t> dim,
                 bool keepdim, std::string_view interpolation, bool skips) {
  check_defined(op, self);
  RAMET_CHECK(q >= 0 && q <= 1, op, "q must be in the range [0, 1] but got ", q);
  return quantiles(op, self, full({}, q, self.options().requires_grad(false)), dim, keepdim,
                   interpolation, skips);
}

}  // namespace

static Tensor quantile_body(const Tensor& self, const Tensor& q, std::optional<int64_t> dim,
                            bool keepdim, std::string_view interpolation) {
  return quantiles("quantile", self, q, dim, keepdim, interpolation, false);
}
static Tensor quantile_body(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                            std::string_view interpolation) {
  return quantiles("quantile", self, q, dim, keepdim, interpolation, false);
}
static Tensor nanquantile_body(const Tensor& self, const Tensor& q, std::optional<int64_t> dim,
                               bool keepdim, std::string_view interpolation) {
  return quantiles("nanquantile", self, q, dim, keepdim, interpolation, true);
}
static Tensor nanquantile_body(const Tensor& self, double q, std::optional<int64_t> dim,
                               bool keepdim, std::string_view interpolation) {
  return quantiles("nanquantile", self, q, dim, keepdim, interpolation, true);
}

// ---- covariances --------------------------------------------------------------------------------

namespace {

// Checks the weights of `n` observations; none may be negative.
void check_weights(const char* name, const Tensor& w, const Tensor& self, int64_t n) {
  check_same_device("cov", self, w);
  RAMET_CHECK(w.dim() == 1 && w.numel() == n, "cov", "expected ", name,
              " to be a vector with one weight for each of ", n, " observations: got ",
              describe(w));
  report_unless("cov", w.detach().ge(0), w.detach(), "fweights and aweights cannot be negative");
}

}  // namespace

Tensor cov(const Tensor& self, int64_t correction, const std::optional<Tensor>& fweights,
           const std::optional<Tensor>& aweights) {
  const char* op = "cov";
  check_defined(op, self);
  RAMET_CHECK(self.dim() <= 2, op,
              "expected input to have two or fewer dimensions but got an input with ", self.dim(),
              " dimensions");
  RAMET_CHECK(self.scalar_type() != kBool, op, "bool dtype is not supported for input");
  const ScalarType own = is_floating(self.scalar_type()) ? self.scalar_type() : get_default_dtype();
  const Tensor x = (self.dim() < 2 ? self.reshape({1, -1}) : self).to(compute_type(own));
  const int64_t n = x.size(1);
  Tensor w;
  if (fweights && fweights->defined()) {
    check_weights("fweights", *fweights, self, n);
    RAMET_CHECK(is_integral(fweights->scalar_type(), false), op,
                "expected fweights to have integral dtype but got fweights with ",
                fweights->scalar_type(), " dtype");
    w = *fweights;
  }
  const bool with_a = aweights && aweights->defined();
  if (with_a) {
    check_weights("aweights", *aweights, self, n);
    RAMET_CHECK(is_floating(aweights->scalar_type()), op,
                "expected aweights to have floating point dtype but got aweights with ",
                aweights->scalar_type(), " dtype");
    w = w.defined() ? w.mul(*aweights) : *aweights;
  }
  if (!w.defined()) {
    const Tensor apart = x.sub(mean(x, 1, true));
    const double left = std::max(static_cast<double>(n) - static_cast<double>(correction), 0.);
    return mm(apart, apart.t()).div(left).to(own).squeeze();
  }
  w = w.to(x.scalar_type());
  const Tensor total = w.sum();
  report_where(op, total.detach().eq(0).reshape(1), "weights sum to zero, can't be normalized");
  const Tensor apart = x.sub(x.mul(w).sum(1, true).div(total));
  const double c = static_cast<double>(correction);
  const Tensor left = with_a && correction != 0
                          ? total.sub(w.mul(*aweights).sum().mul(c).div(total))
                          : total.sub(c);
  return mm(apart, apart.mul(w).t()).div(left.clamp_min(0)).to(own).squeeze();
}

Tensor corrcoef(const Tensor& self) {
  check_defined("corrcoef", self);
  RAMET_CHECK(self.dim() <= 2, "corrcoef",
              "expected input to have two or fewer dimensions but got an input with ", self.dim(),
              " dimensions");
  const Tensor c = cov(self);
  if (c.dim() == 0) return c.div(c);
  const Tensor deviations = sqrt(diagonal(c, 0, 0, 1));
  return c.div(deviations.unsqueeze(1))
      .div(deviations)
      .clamp(std::optional<Scalar>(-1), std::optional<Scalar>(1));
}

// ---- integrals ----------------------------------------------------------------------------------

namespace {

// Checks y; returns the wrapped dimension.
int64_t check_samples(const char* op, const Tensor& y, int64_t dim) {
  check_defined(op, y);
  const int64_t d = wrap_dim(op, dim, y.dim());
  RAMET_CHECK(y.dim() > 0, op, "expected at least one dimension of samples: got ", describe(y));
  RAMET_CHECK(y.scalar_type() != kBool, op, "received a bool input for `y`, but bool is not ",
              "supported");
  return d;
}
// The distances of samples at x, in a shape that broadcasts to the trapezoids.
Tensor widths(const char* op, const Tensor& y, const Tensor& x, int64_t d) {
  check_defined(op, x);
  check_same_device(op, y, x);
  RAMET_CHECK(x.scalar_type() != kBool, op, "received a bool input for `x`, but bool is not ",
              "supported");
  if (x.dim() != 1) {
    std::vector<int64_t> sizes = x.sizes().vec();
    if (x.dim() < y.dim()) sizes.insert(sizes.begin(), static_cast<size_t>(y.dim() - x.dim()), 1);
    return diff(x.reshape(sizes), 1, d);
  }
  RAMET_CHECK(x.numel() == y.size(d), op, "There must be one `x` value for each sample point: got ",
              describe(x), " for ", y.size(d));
  std::vector<int64_t> line(static_cast<size_t>(y.dim()), 1);
  line[static_cast<size_t>(d)] = -1;
  return diff(x, 1, 0).reshape(line);
}
// The sums of each sample and the next one.
Tensor pairs_of(const Tensor& y, int64_t d) { return slice(y, d, 0, -1).add(slice(y, d, 1)); }

}  // namespace

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const char* op = "trapezoid";
  const int64_t d = check_samples(op, y, dim);
  if (y.size(d) == 0) return sum(y, d, false, y.scalar_type());
  return pairs_of(y, d).mul(widths(op, y, x, d)).sum(d).div(2);
}
Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  const int64_t d = check_samples("trapezoid", y, dim);
  if (y.size(d) == 0) return sum(y, d, false, y.scalar_type());
  return y.sum(d).sub(select(y, d, 0).add(select(y, d, -1)).mul(0.5)).mul(dx);
}
Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim) { return trapezoid(y, x, dim); }
Tensor trapz(const Tensor& y, double dx, int64_t dim) { return trapezoid(y, Scalar(dx), dim); }

Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const char* op = "cumulative_trapezoid";
  const int64_t d = check_samples(op, y, dim);
  return pairs_of(y, d).mul(widths(op, y, x, d)).cumsum(d).div(2);
}
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  const int64_t d = check_samples("cumulative_trapezoid", y, dim);
  return pairs_of(y, d).mul(dx.toDouble() / 2).cumsum(d);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/reduce/statistics.inc"

}  // namespace ramet
