#include "autograd/ops/reduce/segment.h"

#include <cmath>
#include <string>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/index/scatter_reduce.h"
#include "autograd/ops/index/search.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/reduce/reduce.h"

namespace ramet {

using namespace autograd;

namespace {

constexpr const char* op = "segment_reduce";

// The segments as the caller gives them.
struct Given {
  const Tensor& numbers;  // their lengths, or their offsets
  bool lengths;
  int64_t dim, segments;
};

// How scatter_reduce calls the reduction.
std::string_view scatter_name(std::string_view reduce) {
  if (reduce == "max") return "amax";
  if (reduce == "min") return "amin";
  if (reduce == "mean") return "sum";
  RAMET_CHECK(reduce == "sum" || reduce == "prod", op,
              "reduce argument must be either sum, prod, mean, max or min, got ",
              std::string(reduce));
  return reduce;
}

Given check_given(const Tensor& data, const std::optional<Tensor>& lengths,
                  const std::optional<Tensor>& indices, const std::optional<Tensor>& offsets,
                  int64_t axis) {
  RAMET_CHECK(is_floating(data.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(data));
  RAMET_CHECK(!(indices && indices->defined()), op, "indices based reduction is not supported");
  const bool by_lengths = lengths && lengths->defined();
  RAMET_CHECK(by_lengths || (offsets && offsets->defined()), op,
              "Either lengths or offsets must be defined.");
  const Tensor& given = by_lengths ? *lengths : *offsets;
  RAMET_CHECK(given.scalar_type() == kLong || given.scalar_type() == kInt, op,
              "lengths or offsets: got ", describe(given), ", expected int64 or int32");
  check_same_device(op, data, given);
  RAMET_CHECK(given.dim() >= 1 && given.dim() <= data.dim(), op, "got ", describe(given), " for ",
              describe(data), ", expected 1 to ", data.dim(), " dimensions");
  const int64_t d = wrap_dim(op, axis, data.dim());
  RAMET_CHECK(d == given.dim() - 1, op,
              "Expected axis to be the last dimension of lengths but got ", axis, " for ",
              describe(given));
  for (int64_t k = 0; k < d; ++k)
    RAMET_CHECK(given.size(k) == data.size(k), op, "got ", describe(given), " for ", describe(data),
                ", expected the same extents before axis");
  const int64_t segments = given.size(d) - (by_lengths ? 0 : 1);
  RAMET_CHECK(segments >= 0, op, "offsets: got ", describe(given), ", expected one at least");
  return {given, by_lengths, d, segments};
}

// The number of each element's segment, `segments` for elements in none, in one dimension of
// data's. `numbers`: what is given, in int64.
Tensor segment_of_each(const Tensor& data, const Given& given, const Tensor& numbers) {
  const int64_t d = given.dim, n = data.size(d);
  const Tensor ends =
      given.lengths ? numbers.cumsum(d) : numbers.narrow(d, 1, given.segments).contiguous();
  const Tensor each = arange(n, TensorOptions(kLong).device(data.device()))
                          .expand(data.sizes().slice(0, static_cast<size_t>(d) + 1))
                          .contiguous();
  const Tensor place =
      given.segments == 0 ? zeros_like(each) : searchsorted(ends, each, false, /*right=*/true);
  return given.lengths ? place
                       : place.masked_fill(each.lt(numbers.narrow(d, 0, 1)), given.segments);
}

// How many elements each segment has.
Tensor lengths_of(const Tensor& place, const Given& given) {
  std::vector<int64_t> sizes = place.sizes().vec();
  sizes[static_cast<size_t>(given.dim)] = given.segments + 1;
  return zeros(sizes, place.options())
      .scatter_add(given.dim, place, ones_like(place))
      .narrow(given.dim, 0, given.segments);
}

Tensor with_dimensions(Tensor t, int64_t dim) {
  while (t.dim() < dim) t = t.unsqueeze(-1);
  return t;
}

// What a segment without elements has where the caller gives no `initial`.
double value_of_empty(std::string_view reduce) {
  return reduce == "max" ? -INFINITY : reduce == "min" ? INFINITY : reduce == "prod" ? 1 : 0;
}

}  // namespace

Tensor segment_reduce(const Tensor& data, std::string_view reduce,
                      const std::optional<Tensor>& lengths, const std::optional<Tensor>& indices,
                      const std::optional<Tensor>& offsets, int64_t axis, bool unsafe,
                      const std::optional<Scalar>& initial) {
  check_defined(op, data);
  const std::string_view joined = scatter_name(reduce);
  const Given given = check_given(data, lengths, indices, offsets, axis);
  const int64_t d = given.dim;
  const bool mean = reduce == "mean", extremum = reduce == "max" || reduce == "min";

  // A mean of 16-bit numbers is rounded once: its sum may exceed their range.
  if (mean && is_narrow(data.scalar_type()))
    return segment_reduce(data.to(kFloat), reduce, lengths, indices, offsets, axis, unsafe, initial)
        .to(data.scalar_type());

  Tensor place, count;
  {
    const NoGradGuard off;
    const Tensor numbers = given.numbers.to(kLong);
    if (given.lengths && !unsafe) {
      const int64_t n = data.size(d);
      report_where(op, numbers.lt(0), "lengths contains negative value!");
      report_where(op, numbers.sum(d).ne(n).logical_or(numbers.gt(n).any(d)),
                   "Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) "
                   "when !unsafe.");
    }
    place = segment_of_each(data, given, numbers);
    if (mean) {
      count = lengths_of(place, given);
      if (initial) count = count.clamp_min(1);
      count = with_dimensions(count, data.dim());
    }
    place = with_dimensions(place, data.dim()).expand(data.sizes());
  }
  std::vector<int64_t> sizes = data.sizes().vec();
  sizes[static_cast<size_t>(d)] = given.segments + 1;
  // Extrema share their gradient among data's elements alone: `initial`, or the value of an empty
  // segment, has none.
  Tensor y = data.new_full(sizes, initial.value_or(Scalar(value_of_empty(reduce))))
                 .scatter_reduce(d, place, data, joined, /*include_self=*/!extremum)
                 .narrow(d, 0, given.segments);
  if (extremum && initial) {
    const Tensor kept = reduce == "max" ? y.ge(*initial) : y.le(*initial);
    y = y.masked_fill(kept.logical_or(y.isnan()).logical_not(), *initial);
  }
  if (mean) y = y.div(count);
  return y.contiguous();
}

}  // namespace ramet
