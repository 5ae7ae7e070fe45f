#include "autograd/ops/index/scatter_reduce.h"

#include <algorithm>
#include <limits>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/index/index_put.h"
#include "autograd/ops/index/mask.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/multiply.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"

namespace ramet {

using namespace autograd;
using kernels::IndexMode;
using Pair = std::array<Tensor, 2>;

// ---- scatter_reduce, index_reduce ---------------------------------------------------------------

namespace {

enum class Join : uint8_t { kSum, kProd, kMean, kMax, kMin };

Join join_of(const char* op, std::string_view reduce, bool sums) {
  if (reduce == "sum" && sums) return Join::kSum;
  if (reduce == "prod") return Join::kProd;
  if (reduce == "mean") return Join::kMean;
  if (reduce == "amax") return Join::kMax;
  if (reduce == "amin") return Join::kMin;
  fail(op, "reduce argument must be ", sums ? "either sum, " : "one of ",
       "prod, mean, amax or amin, got ", reduce, ".");
}
IndexMode mode_of(Join join) {
  return join == Join::kProd  ? IndexMode::kMul
         : join == Join::kMax ? IndexMode::kMax
         : join == Join::kMin ? IndexMode::kMin
                              : IndexMode::kAdd;
}

template <class T> Scalar lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<double>::infinity();
  else return static_cast<int64_t>(std::numeric_limits<T>::min());
}
template <class T> Scalar highest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<double>::infinity();
  else return static_cast<int64_t>(std::numeric_limits<T>::max());
}
// The neutral element of a join.
Scalar neutral(Join join, ScalarType t) {
  if (join == Join::kSum || join == Join::kMean) return 0;
  if (join == Join::kProd) return 1;
  const bool low = join == Join::kMax;
  switch (t) {
    case kBool: return low ? 0 : 1;
    case kByte: return low ? lowest<uint8_t>() : highest<uint8_t>();
    case kChar: return low ? lowest<int8_t>() : highest<int8_t>();
    case kShort: return low ? lowest<int16_t>() : highest<int16_t>();
    case kInt: return low ? lowest<int32_t>() : highest<int32_t>();
    case kLong: return low ? lowest<int64_t>() : highest<int64_t>();
    case kUInt16: return low ? lowest<uint16_t>() : highest<uint16_t>();
    case kUInt32: return low ? lowest<uint32_t>() : highest<uint32_t>();
    default: return low ? lowest<double>() : highest<double>();
  }
}

// The number of values in each element of a mean, at least 1.
Tensor counts_of(IntArrayRef sizes, int64_t dim, const Tensor& index, bool include_self) {
  const TensorOptions on = TensorOptions(kLong).device(index.device());
  Tensor counts = full(sizes, include_self ? 1 : 0, on);
  counts.scatter_add_(dim, index, ones(index.sizes(), on));
  return include_self ? counts : counts.clamp_min_(1);
}

// self joined with the values, without history. The index is as long as src.
Tensor joined(Join join, const Tensor& self, int64_t d, const Tensor& index, const Tensor& src,
              bool include_self) {
  const NoGradGuard off;
  const ScalarType t = self.scalar_type();
  // 16-bit products and means are rounded once; for sums the kernel does that.
  const bool widens = is_narrow(t) && (join == Join::kProd || join == Join::kMean);
  Tensor out = widens ? self.to(kFloat) : self.shallow().clone(MemoryFormat::Contiguous);
  const Tensor values = widens ? src.to(kFloat) : src.shallow();
  if (index.numel() == 0) return out.to(t);
  if (!include_self) out.scatter_(d, index, neutral(join, t));
  gather_loop(mode_of(join), at_least_1d(out), d, at_least_1d(index), at_least_1d(values));
  if (join == Join::kMean) {
    const Tensor counts = counts_of(self.sizes(), d, index, include_self);
    if (is_integral(t)) out.copy_(out.to(kLong).div_(counts, "floor"));
    else out.div_(counts);
  }
  return out.to(t);
}

Tensor recorded_join(const char* node, Join join, const Tensor& self, int64_t d,
                     const Tensor& index, const Tensor& src, bool include_self);

// The gradient of an input for extrema: its share of g, where it is an extremum.
Pair extremum_gradients(const Node& node, const Tensor& g, const Tensor& self, int64_t d,
                        const Tensor& index, const Tensor& src, const Tensor& result,
                        bool include_self) {
  Tensor self_wins, src_wins, shares;
  {
    const NoGradGuard off;
    const ScalarType t = compute_type(g.scalar_type());
    self_wins = eq(self, result).logical_or_(isnan(self)).to(t);
    if (!include_self) self_wins = self_wins.scatter(d, index, 0);
    src_wins = eq(src, result.gather(d, index)).logical_or_(isnan(src)).to(t);
    shares = self_wins.scatter_add(d, index, src_wins).clamp_min_(1).reciprocal_();
    self_wins.mul_(shares);
    src_wins.mul_(shares.gather(d, index));
  }
  const ScalarType t = g.scalar_type();
  return {node.needs(0) ? g.mul(self_wins).to(t) : Tensor(),
          node.needs(1) ? g.gather(d, index).mul(src_wins).to(t) : Tensor()};
}

// The gradient of a factor is g times the product of the other factors, computed by division. A
// factor of 0 is first replaced by 1, which is right where it is the only 0.
Pair product_gradients(const Node& node, const Tensor& g, const Tensor& self, int64_t d,
                       const Tensor& index, const Tensor& src, const Tensor& result,
                       bool include_self) {
  Pair r;
  if (node.needs(0) && !include_self) r[0] = g.scatter(d, index, 0);
  if (node.needs(0) && include_self) {
    const Tensor safe = self.masked_fill(eq(self, 0), 1);
    const Tensor others =
        recorded_join("ScatterReduceBackward0", Join::kProd, safe, d, index, src, true);
    r[0] = g.mul(others).div(safe);
  }
  if (node.needs(1)) {
    const Tensor zero = eq(src, 0);
    const TensorOptions on = TensorOptions(kLong).device(g.device());
    const Tensor zeros_there =
        full(self.sizes(), 0, on).scatter_add(d, index, zero.to(kLong)).gather(d, index);
    const Tensor only = zero.logical_and(eq(zeros_there, 1));
    const Tensor others = recorded_join("ScatterReduceBackward0", Join::kProd, self, d, index,
                                        src.masked_fill(only, 1), include_self);
    r[1] = where(only, g.mul(others).gather(d, index),
                 g.mul(result).gather(d, index).div(src.masked_fill(zero, 1)));
  }
  return r;
}

Pair join_gradients(const Node& node, Join join, const Tensor& g, const Tensor& self, int64_t d,
                    const Tensor& index, const Tensor& src, const Tensor& result,
                    bool include_self) {
  if (index.numel() == 0)
    return {node.needs(0) ? g : Tensor(), node.needs(1) ? zeros_like(src) : Tensor()};
  if (join == Join::kProd)
    return product_gradients(node, g, self, d, index, src, result, include_self);
  if (join == Join::kMax || join == Join::kMin)
    return extremum_gradients(node, g, self, d, index, src, result, include_self);
  const Tensor part = join == Join::kMean ? g.to(compute_type(g.scalar_type()))
                                                .div(counts_of(g.sizes(), d, index, include_self))
                                                .to(g.scalar_type())
                                          : g;
  return {!node.needs(0) ? Tensor()
          : include_self ? part
                         : g.scatter(d, index, 0),
          node.needs(1) ? part.gather(d, index) : Tensor()};
}

Tensor recorded_join(const char* name, Join join, const Tensor& self, int64_t d,
                     const Tensor& index, const Tensor& src, bool include_self) {
  Tensor out = joined(join, self, d, index, src, include_self);
  if (!recording(self, src)) return out;
  // A sum's and a mean's gradients look at no value.
  const bool looks = join != Join::kSum && join != Join::kMean;
  return record(name, {self, src}, std::move(out),
                [join, d, include_self, looks, at = save(index), ss = save_if(looks, self),
                 sv = save_if(looks || index.numel() == 0, src),
                 sy = looks ? save_output(out) : SavedOutput()](const Node& node, const Tensor& g) {
                  return join_gradients(node, join, g, looks ? ss.get(node) : Tensor(), d,
                                        at.get(node), sv.get(node), looks ? sy.get(node) : Tensor(),
                                        include_self);
                });
}

}  // namespace

Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index_, const Tensor& src,
                      std::string_view reduce, bool include_self) {
  const char* op = "scatter_reduce";
  const Join join = join_of(op, reduce, true);
  check_defined(op, self);
  RAMET_CHECK(join != Join::kMean || self.scalar_type() != kBool, op,
              "not implemented for bool: got ", describe(self), " and mean");
  const int64_t d = check_gather(op, self, dim, index_);
  const Tensor index = gather_index(op, index_);
  same_place(op, self, src);
  RAMET_CHECK(self.scalar_type() == src.scalar_type(), op,
              "Expected self.dtype to be equal to src.dtype: got ", describe(src), ", expected ",
              name_of(self.scalar_type()));
  const Tensor values = corner(op, src, index);
  return recorded_join("ScatterReduceBackward0", join, self, d, at_least_1d(index), values,
                       include_self);
}

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index_, const Tensor& source,
                    std::string_view reduce, bool include_self) {
  const char* op = "index_reduce";
  const Join join = join_of(op, reduce, false);
  check_defined(op, self);
  RAMET_CHECK(self.scalar_type() != kBool, op, "not implemented for bool: got ", describe(self));
  const int64_t d = check_select(op, self, dim, index_);
  const Tensor index = index_as_long(op, index_);
  same_place(op, self, source);
  RAMET_CHECK(self.scalar_type() == source.scalar_type(), op,
              "self and source expected to have the same dtype: got ", describe(source),
              ", expected ", name_of(self.scalar_type()));
  const int64_t count = source.dim() == 0 ? 1 : source.size(d);
  bool fits = source.dim() == self.dim() && count == index.numel();
  for (int64_t i = 0; fits && i < self.dim(); ++i) fits = i == d || source.size(i) == self.size(i);
  RAMET_CHECK(fits, op, "source: got ", describe(source), ", expected the sizes of ",
              describe(self), " with ", index.numel(), " in dimension ", d);
  const Tensor values = at_least_1d(source);
  std::vector<int64_t> line(static_cast<size_t>(values.dim()), 1);
  line[static_cast<size_t>(d)] = index.numel();
  return recorded_join("IndexReduceBackward0", join, self, d,
                       expand(index.reshape(line), values.sizes()), values, include_self);
}

// ---- index_fill, put ----------------------------------------------------------------------------

namespace {

// Checks the operands, and returns self's wrapped dimension. Negative indices count from the end.
int64_t fill_place(const char* op, const Tensor& self, int64_t dim, const Tensor& index_,
                   Tensor& index) {
  check_defined(op, self);
  index = index_as_long(op, index_);
  same_place(op, self, index);
  const int64_t d = wrap_dim(op, dim, self.dim()), n = self.dim() == 0 ? 1 : self.size(d);
  RAMET_CHECK(index.dim() <= 1, op, "Index has to be a vector/scalar: got ", describe(index));
  check_indices(op, index, -n, n, "extent of the dimension");
  return d;
}
// `value` is 0-dim and of self's dtype.
Tensor filled(const Tensor& self, int64_t d, const Tensor& index, const Tensor& value) {
  const NoGradGuard off;
  const Tensor out = self.shallow().clone(MemoryFormat::Contiguous);
  std::vector<int64_t> sizes = self.sizes().vec();
  if (self.dim() > 0) sizes[static_cast<size_t>(d)] = index.numel();
  if (index.numel() > 0) select_loop(IndexMode::kPut, out, d, index, expand(value, sizes));
  return out;
}

}  // namespace

Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index_, const Scalar& value) {
  Tensor index;
  const int64_t d = fill_place("index_fill", self, dim, index_, index);
  check_fits(value, self.scalar_type());
  Tensor number(TensorBase::empty({}, self.scalar_type(), self.device()));
  fill_values(number, value);
  Tensor out = filled(self, d, index, number);
  if (!recording(self)) return out;
  return record("IndexFillBackward0", {self}, std::move(out),
                [d, at = save(index)](const Node& node, const Tensor& g) {
                  return index_fill(g, d, at.get(node), 0);
                });
}

Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index_, const Tensor& value) {
  Tensor index;
  const int64_t d = fill_place("index_fill", self, dim, index_, index);
  check_defined("index_fill", value);
  RAMET_CHECK(value.dim() == 0, "index_fill",
              "only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
              " dimension(s).");
  if (!is_host_number(value)) check_same_device("index_fill", self, value);
  Tensor out = filled(self, d, index, value.detach().to(self.device()).to(self.scalar_type()));
  if (!recording(self, value)) return out;
  return record(
      "IndexFillBackward1", {self, value}, std::move(out),
      [d, m = Meta(value), at = save(index)](const Node& node, const Tensor& g) {
        const Tensor& index = at.get(node);
        Pair r;
        if (node.needs(0)) r[0] = index_fill(g, d, index, 0);
        if (node.needs(1)) {  // each replaced element once, however often it was named
          const Tensor others =
              ones(g.sizes(), TensorOptions(kBool).device(g.device())).index_fill_(d, index, false);
          r[1] = m.reduce(g.masked_fill(others, 0).sum());
        }
        return r;
      });
}

Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  const char* op = "put";
  check_defined(op, self);
  const Tensor places = index_as_long(op, index);
  same_place(op, self, index);
  same_place(op, self, source);
  RAMET_CHECK(self.scalar_type() == source.scalar_type(), op,
              "Expected source and self to have the same dtype, but got self ", describe(self),
              " and source ", describe(source));
  RAMET_CHECK(source.numel() == index.numel(), op,
              "Expected source and index to have the same number of elements, but got source ",
              describe(source), " and index ", describe(index));
  check_indices(op, places, -self.numel(), self.numel(), "number of elements");
  return index_put(self.reshape(-1), {places.reshape(-1)}, source.reshape(-1), accumulate)
      .reshape(self.sizes());
}

// ---- views written ------------------------------------------------------------------------------

namespace {

// self with src in place of the view that `part` makes.
template <class Part>
Tensor with_part(const char* op, const char* node, const Tensor& self, const Tensor& src,
                 Part part) {
  check_defined(op, self);
  same_place(op, self, src);
  Tensor out;
  {
    const NoGradGuard off;
    out = self.shallow().clone(MemoryFormat::Contiguous);
    const Tensor place = part(out);
    RAMET_CHECK(src.sizes() == place.sizes(), op,
                "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
                ", slice size = ", place.sizes());
    place.copy_(src.shallow());
  }
  if (!recording(self, src)) return out;
  return record(node, {self, src}, std::move(out),
                [op, node, m = Meta(src), part](const Node& self, const Tensor& g) {
                  Pair r;
                  if (self.needs(0)) {
                    const Tensor none =
                        zeros(m.shape(), TensorOptions(g.scalar_type()).device(g.device()));
                    r[0] = with_part(op, node, g, none, part);
                  }
                  if (self.needs(1)) r[1] = m.reduce(part(g));
                  return r;
                });
}

}  // namespace

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  return with_part("select_scatter", "SelectScatterBackward0", self, src,
                   [dim, index](const Tensor& t) { return select(t, dim, index); });
}
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  return with_part("slice_scatter", "SliceScatterBackward0", self, src,
                   [=](const Tensor& t) { return slice(t, dim, start, end, step); });
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/index/scatter_reduce.inc"

}  // namespace ramet
