#include "autograd/ops/index/search.h"

#include <cmath>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/sort_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/index/search.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

namespace {

bool from_the_right(const char* op, bool right, const std::optional<std::string_view>& side) {
  if (!side) return right;
  RAMET_CHECK(*side == "left" || *side == "right", op,
              "side can only be 'left' or 'right' but got ", *side);
  RAMET_CHECK(!right || *side == "right", op,
              "side and right can't be set to opposites, got side of left while right was True");
  return *side == "right";
}

void check_search(const char* op, const Tensor& sequence, const Tensor& x,
                  const std::optional<Tensor>& sorter) {
  check_same_device(op, sequence, x);
  const int64_t rank = sequence.dim();
  RAMET_CHECK(x.dim() > 0 || rank == 1, op,
              "input value can be a scalar only when boundaries tensor dimension is 1: got "
              "boundaries ",
              describe(sequence), " and input ", describe(x));
  RAMET_CHECK(rank > 0, op, "boundaries tensor should have positive dimension: got ",
              describe(sequence));
  bool fits = rank == 1 || rank == x.dim();
  for (int64_t d = 0; fits && rank > 1 && d + 1 < rank; ++d) fits = sequence.size(d) == x.size(d);
  RAMET_CHECK(fits, op,
              "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
              "tensor and input value tensor must match: got boundaries ",
              describe(sequence), " and input ", describe(x));
  if (!sorter || !sorter->defined()) return;
  check_same_device(op, sequence, *sorter, "sorter");
  RAMET_CHECK(sorter->sizes() == sequence.sizes(), op,
              "boundary and sorter must have the same size: got ", describe(sequence), " and ",
              describe(*sorter));
  RAMET_CHECK(sorter->scalar_type() == kLong, op, "sorter must be a tensor of long dtype: got ",
              describe(*sorter));
  check_indices(op, *sorter, 0, sequence.size(-1), "sorter index out of range");
}

Tensor places_among(const char* op, const Tensor& sequence, const Tensor& x, bool narrow,
                    bool right, const std::optional<Tensor>& sorter) {
  check_defined(op, sequence);
  check_defined(op, x);
  check_search(op, sequence, x, sorter);
  const int64_t n = sequence.size(-1);
  RAMET_CHECK(!narrow || n < INT32_MAX, op, "the size of boundaries' last dimension: got ", n,
              ", expected less than INT_MAX");
  const NoGradGuard off;
  // Round to the common dtype, then convert to the compute type.
  const ScalarType common = result_type(sequence, x), dtype = compute_type(common);
  const auto dense = [&](const Tensor& t) { return t.shallow().to(common).to(dtype).contiguous(); };
  const Tensor boundaries = dense(sequence), values = dense(x);
  Tensor out(TensorBase::empty(x.sizes(), narrow ? kInt : kLong, x.device()));
  if (x.numel() == 0) return out;
  if (n == 0) return fill_values(out, 0), out;
  Tensor order;
  if (sorter && sorter->defined()) order = sorter->contiguous();
  kernels::search_sorted(
      x.stream(), {boundaries.ptr(), static_cast<int64_t*>(pointer(order)), values.ptr(), out->data,
                   x.numel(), sequence.dim() == 1 ? 0 : x.size(-1), n, dtype, narrow, right});
  return out;
}
const Tensor& vector_of(const Tensor& boundaries) {
  check_defined("bucketize", boundaries);
  RAMET_CHECK(boundaries.dim() == 1, "bucketize", "boundaries tensor must be 1 dimension: got ",
              describe(boundaries));
  return boundaries;
}

Tensor zeros_of(int64_t n, ScalarType dtype, Device device) {
  Tensor z(TensorBase::empty(n, dtype, device));
  fill_values(z, 0);
  return z;
}

}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  return places_among("searchsorted", sorted_sequence, self, out_int32,
                      from_the_right("searchsorted", right, side), sorter);
}
Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  check_defined("searchsorted", sorted_sequence);
  return searchsorted(sorted_sequence, scalar_to_tensor(self, sorted_sequence.device()), out_int32,
                      right, side, sorter);
}
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  return places_among("bucketize", vector_of(boundaries), self, out_int32, right, std::nullopt);
}
Tensor bucketize(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  return bucketize(scalar_to_tensor(self, vector_of(boundaries).device()), boundaries, out_int32,
                   right);
}

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  const char* const op = "bincount";
  check_defined(op, self);
  const bool weighted = weights && weights->defined();
  RAMET_CHECK(minlength >= 0, op, "minlength should be >= 0: got ", minlength);
  RAMET_CHECK(self.dim() == 1 && is_integral(self.scalar_type()) && self.scalar_type() != kBool, op,
              "only supports 1-d non-negative integral inputs: got ", describe(self));
  if (self.numel() == 0) return zeros_of(minlength, kLong, self.device());
  if (weighted) {
    check_same_device(op, self, *weights, "weights");
    RAMET_CHECK(weights->sizes() == self.sizes(), op,
                "weights should be 1-d and have the same length as input: got ", describe(*weights),
                " for ", describe(self));
  }
  capture::refuse(op, "the size of the result depends on values");
  const Tensor at = self.to(kLong);
  const int64_t least = at.min().item<int64_t>(), most = at.max().item<int64_t>();
  RAMET_CHECK(least >= 0, op, "only supports 1-d non-negative integral inputs: got ", least, " in ",
              describe(self));
  RAMET_CHECK(most < INT64_MAX, op, "too many counts: got an element ", most);
  const ScalarType dtype = !weighted ? kLong : weights->scalar_type() == kFloat ? kFloat : kDouble;
  const Tensor counts = zeros_of(std::max(minlength, most + 1), dtype, self.device());
  Tensor what;
  if (weighted) {
    what = weights->to(dtype);
  } else {
    what = Tensor(TensorBase::empty({}, kLong, self.device()));
    fill_values(what, 1);
    what = expand(what, self.sizes());
  }
  return counts.index_add_(0, at, what);
}

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  const char* const op = "histc";
  check_defined(op, self);
  const ScalarType dtype = self.scalar_type();
  RAMET_CHECK(is_floating(dtype), op, "only supports floating-point input: got ", describe(self));
  RAMET_CHECK(bins > 0, op, "bins must be > 0: got ", bins);
  const NoGradGuard off;
  // Compute in the compute type: a 16-bit product may exceed the range.
  const Tensor x = self.shallow().to(compute_type(dtype)).reshape({-1});
  double low = min.toDouble(), high = max.toDouble();
  if (low == high && x.numel() > 0) {
    capture::refuse(op, "the host reads the range; give min and max");
    low = x.min().item<double>(), high = x.max().item<double>();
  }
  if (low == high) low -= 1, high += 1;
  RAMET_CHECK(std::isfinite(low) && std::isfinite(high), op, "range of [", low, ", ", high,
              "] is not finite");
  RAMET_CHECK(low < high, op, "max must be larger than min: got [", low, ", ", high, "]");
  const auto number = [&](double v) {
    Tensor t(TensorBase::empty({}, x.scalar_type(), self.device()));
    fill_values(t, rounded(v, dtype));
    return t;
  };
  const Tensor first = number(low), last = number(high);
  const Tensor outside = x.ge(first).logical_and(x.le(last)).logical_not();
  const Tensor at = x.sub(first).mul(bins).div(last.sub(first)).masked_fill(outside, 0).to(kLong);
  Tensor counts = zeros_of(bins, kLong, self.device());
  counts.index_add_(0, at.clamp(0, bins - 1), outside.logical_not().to(kLong));
  return counts.to(dtype);
}

// ---- isin ---------------------------------------------------------------------------------------

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  const char* const op = "isin";
  check_defined(op, elements);
  check_defined(op, test_elements);
  check_same_device(op, elements, test_elements, "test_elements");
  const NoGradGuard off;
  ScalarType dtype = result_type(elements, test_elements);
  // A number next to small integers may be outside of their range: it must not wrap around.
  if (!is_floating(dtype))
    dtype = promote_types(elements.scalar_type(), test_elements.scalar_type());
  const Tensor x = elements.shallow().to(dtype), tests = test_elements.shallow().to(dtype);
  const int64_t n = tests.numel();
  constexpr int64_t kFew = 8;  // up to this many, comparing with each costs less than sorting
  Tensor found;
  if (n > kFew) {  // compare each with the first sorted one that is not below it
    const Tensor line =
        std::get<0>(ordered(tests.reshape({-1}).contiguous(), 0, kernels::OrderPick::kFirst, n,
                            /*descending=*/false, /*keepdim=*/true, Want::kValues));
    // NaNs come last in the order, so everything would be below them.
    const Tensor numbers =
        is_floating(dtype) ? line.masked_fill(line.isnan(), Scalar(INFINITY)) : line;
    const Tensor at = searchsorted(numbers, x).clamp_max_(n - 1);
    found = eq(line.index_select(0, at.reshape({-1})).view(x.sizes()), x);
  } else {
    const Tensor line = tests.reshape({-1});
    found = zeros(x.sizes(), x.options().dtype(kBool));
    for (int64_t i = 0; i < n; ++i) found.logical_or_(eq(x, line.select(0, i)));
  }
  return invert ? logical_not(found) : found;
}
Tensor isin(const Tensor& elements, const Scalar& test_element, bool, bool invert) {
  check_defined("isin", elements);
  return invert ? ne(elements, test_element) : eq(elements, test_element);
}
Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique, bool invert) {
  check_defined("isin", test_elements);
  return isin(scalar_to_tensor(element, test_elements.device()), test_elements, assume_unique,
              invert);
}

// ---- rules of out forms -------------------------------------------------------------------------

namespace {
struct Places : OutRule {
  template <class A, class B, class... T>
  void check(const char* op, const Tensor&, const A& a, const B& b, const T&...) const {
    defined(op, a);
    defined(op, b);
  }

 private:
  static void defined(const char* op, const Tensor& x) { check_defined(op, x); }
  template <class T> static void defined(const char*, const T&) {}
};
constexpr Places kPlaces{{OutType::kSame, /*recorded=*/false}};
}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/index/search.inc"

}  // namespace ramet
