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

Tensor segment_reduce(const Tensor& data, std::string_view reduce,
                      const std::optional<Tensor>& lengths, const std::optional<Tensor>& indices,
                      const std::optional<Tensor>& offsets, int64_t axis, bool unsafe,
                      const std::optional<Scalar>& initial) {
  const char* op = "segment_reduce";
  check_defined(op, data);
  const bool by_lengths = lengths && lengths->defined(), mean = reduce == "mean";
  const std::string_view joined = reduce == "max"           ? "amax"
                                  : reduce == "min"         ? "amin"
                                  : reduce == "sum" || mean ? "sum"
                                  : reduce == "prod"        ? "prod"
                                                            : "";
  RAMET_CHECK(!joined.empty(), op,
              "reduce argument must be either sum, prod, mean, max or min, got ",
              std::string(reduce));
  RAMET_CHECK(is_floating(data.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(data));
  RAMET_CHECK(!(indices && indices->defined()), op, "indices based reduction is not supported");
  RAMET_CHECK(by_lengths || (offsets && offsets->defined()), op,
              "Either lengths or offsets must be defined.");
  const Tensor& given = by_lengths ? *lengths : *offsets;
  RAMET_CHECK(given.scalar_type() == kLong || given.scalar_type() == kInt, op,
              "lengths or offsets: got ", describe(given), ", expected int64 or int32");
  check_same_device(op, data, given);
  RAMET_CHECK(given.dim() >= 1 && given.dim() <= data.dim(), op, "got ", describe(given), " for ",
              describe(data), ", expected 1 to ", data.dim(), " dimensions");
  const int64_t d = wrap_dim(op, axis, data.dim()), n = data.size(d);
  RAMET_CHECK(d == given.dim() - 1, op,
              "Expected axis to be the last dimension of lengths but got ", axis, " for ",
              describe(given));
  for (int64_t k = 0; k < d; ++k)
    RAMET_CHECK(given.size(k) == data.size(k), op, "got ", describe(given), " for ", describe(data),
                ", expected the same extents before axis");
  const int64_t segments = given.size(d) - (by_lengths ? 0 : 1);
  RAMET_CHECK(segments >= 0, op, "offsets: got ", describe(given), ", expected one at least");

  // A mean of 16-bit numbers is rounded once: its sum may exceed their range.
  if (mean && is_narrow(data.scalar_type()))
    return segment_reduce(data.to(kFloat), reduce, lengths, indices, offsets, axis, unsafe, initial)
        .to(data.scalar_type());

  // Where each segment ends, and from that the segment of each element; `segments` for those in
  // none.
  Tensor ends, place, count;
  {
    const NoGradGuard off;
    const Tensor numbers = given.to(kLong);
    if (by_lengths && !unsafe) {
      report_where(op, numbers.lt(0), "lengths contains negative value!");
      report_where(op, numbers.sum(d).ne(n).logical_or(numbers.gt(n).any(d)),
                   "Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) "
                   "when !unsafe.");
    }
    ends = by_lengths ? numbers.cumsum(d) : numbers.narrow(d, 1, segments).contiguous();
    std::vector<int64_t> to = data.sizes().slice(0, static_cast<size_t>(d) + 1).vec();
    const Tensor each =
        arange(n, TensorOptions(kLong).device(data.device())).expand(to).contiguous();
    place = segments == 0 ? zeros_like(each) : searchsorted(ends, each, false, /*right=*/true);
    if (!by_lengths) place = place.masked_fill(each.lt(numbers.narrow(d, 0, 1)), segments);
    if (mean) {
      to[static_cast<size_t>(d)] = segments + 1;
      count =
          zeros(to, each.options()).scatter_add(d, place, ones_like(place)).narrow(d, 0, segments);
      if (initial) count = count.clamp_min(1);
    }
    for (; place.dim() < data.dim(); place = place.unsqueeze(-1))
      if (mean) count = count.unsqueeze(-1);
    place = place.expand(data.sizes());
  }
  const double nothing = reduce == "max"    ? -INFINITY
                         : reduce == "min"  ? INFINITY
                         : reduce == "prod" ? 1
                                            : 0;
  std::vector<int64_t> sizes = data.sizes().vec();
  sizes[static_cast<size_t>(d)] = segments + 1;
  const bool extremum = joined == "amax" || joined == "amin";
  // Extrema share their gradient among data's elements alone: `initial`, or the value of an empty
  // segment, has none.
  Tensor y = data.new_full(sizes, initial.value_or(Scalar(nothing)))
                 .scatter_reduce(d, place, data, joined, /*include_self=*/!extremum)
                 .narrow(d, 0, segments);
  if (extremum && initial) {
    const Tensor kept = joined == "amax" ? y.ge(*initial) : y.le(*initial);
    y = y.masked_fill(kept.logical_or(y.isnan()).logical_not(), *initial);
  }
  if (mean) y = y.div(count);
  return y.contiguous();
}

}  // namespace ramet
