// gather, scatter, index_select, index_add, index_copy. Masks are in mask.cc, x.index(...) in
// index_put.cc, the other writes in scatter_reduce.cc.
#include "autograd/ops/index/gather_scatter.h"

#include <algorithm>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/index_put.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;
using kernels::IndexMode;
using Pair = std::array<Tensor, 2>;

namespace {

Tensor zeros_of(IntArrayRef sizes, const Tensor& like) {
  Tensor z(TensorBase::empty(sizes, like.scalar_type(), like.device()));
  fill_values(z, 0);
  return z;
}
// A copy that an index kernel may write: no two elements share memory.
Tensor fresh(const Tensor& x) {
  const NoGradGuard off;
  return x.shallow().clone(MemoryFormat::Contiguous);
}

void write(IndexMode mode, const Tensor& out, int64_t d, const Tensor& index, const Tensor& src) {
  if (index.numel()) gather_loop(mode, at_least_1d(out.shallow()), d, at_least_1d(index), src);
}
// A number as a tensor of the index's sizes, which stores the number once.
Tensor repeated(const Scalar& value, const Tensor& like, const Tensor& index) {
  Tensor one(TensorBase::empty({}, like.scalar_type(), like.device()));
  fill_values(one, value);
  const NoGradGuard off;
  return expand(one, at_least_1d(index).sizes());
}

// scatter and scatter_add: in place where `into` is given.
Tensor scatter_any(const char* op, IndexMode mode, const Tensor& self, int64_t dim,
                   const Tensor& index_, const Tensor& src_, bool in_place) {
  const int64_t d = check_gather(op, self, dim, index_);
  const Tensor index = index_apart(gather_index(op, index_), self, in_place);
  same_place(op, self, src_);
  RAMET_CHECK(self.scalar_type() == src_.scalar_type(), op,
              "Expected self.dtype to be equal to src.dtype: got ", describe(src_), ", expected ",
              name_of(self.scalar_type()));
  const bool add = mode == IndexMode::kAdd;
  const Tensor src = corner(op, src_, index);
  Tensor source = src.shallow();
  if (in_place) {
    check_inplace(op, self, src);
    if (self.may_overlap(src)) source = fresh(src);
  }
  const bool history = recording(self, src);
  const Saved saved = save_if(history, index);
  Tensor out = in_place ? self : fresh(self);
  write(mode, out, d, index, source);
  if (in_place) wrote(op, self);
  if (!history) return out;
  auto backward = [d, add, at = saved, shape = src.sizes().vec()](const Node& node,
                                                                  const Tensor& g) {
    const Tensor& i = at.get(node);
    return Pair{!node.needs(0) ? Tensor()
                : add          ? g
                               : g.scatter(d, i, 0),
                !node.needs(1) ? Tensor()
                : i.numel()    ? g.gather(d, i).reshape(shape)
                               : zeros_of(shape, g)};
  };
  const char* name = add ? "ScatterAddBackward0" : "ScatterBackward0";
  if (!in_place) return record(name, {self, src}, std::move(out), std::move(backward));
  record_inplace(name, {self, src}, self, std::move(backward));
  return self;
}

Tensor scatter_value(const char* op, const Tensor& self, int64_t dim, const Tensor& index_,
                     const Scalar& value, bool in_place) {
  const int64_t d = check_gather(op, self, dim, index_);
  const Tensor index = index_apart(gather_index(op, index_), self, in_place);
  if (in_place) check_inplace(op, self);
  const bool history = recording(self);
  const Saved saved = save_if(history, index);
  Tensor out = in_place ? self : fresh(self);
  write(IndexMode::kPut, out, d, index, repeated(value, self, index));
  if (in_place) wrote(op, self);
  if (!history) return out;
  auto backward = [d, at = saved](const Node& node, const Tensor& g) {
    return g.scatter(d, at.get(node), 0);
  };
  if (!in_place) return record("ScatterBackward1", {self}, std::move(out), std::move(backward));
  record_inplace("ScatterBackward1", {self}, self, std::move(backward));
  return self;
}

// index_add and index_copy: in place where `in_place`.
Tensor index_write(const char* op, IndexMode mode, const Tensor& self, int64_t dim,
                   const Tensor& index_, const Tensor& source_, const Scalar& alpha,
                   bool in_place) {
  const int64_t d = check_select(op, self, dim, index_);
  const Tensor index = index_apart(index_as_long(op, index_), self, in_place);
  same_place(op, self, source_);
  RAMET_CHECK(self.scalar_type() == source_.scalar_type(), op,
              "self and source expected to have the same dtype: got ", describe(source_),
              ", expected ", name_of(self.scalar_type()));
  const int64_t count = source_.dim() == 0 ? 1 : source_.size(d);
  bool fits = source_.dim() == self.dim() && count == index.numel();
  for (int64_t i = 0; fits && i < self.dim(); ++i) fits = i == d || source_.size(i) == self.size(i);
  RAMET_CHECK(fits, op, "source: got ", describe(source_), ", expected the sizes of ",
              describe(self), " with ", index.numel(), " in dimension ", d);
  RAMET_CHECK(is_floating(self.scalar_type()) || !alpha.isFloatingPoint(), op,
              "For integral input tensors, argument alpha must not be a floating "
              "point number: got ",
              alpha);
  const Tensor source = alpha.equal(1) ? source_ : source_.mul(alpha).to(source_.scalar_type());
  Tensor from = source.shallow();
  if (in_place) {
    check_inplace(op, self, source);
    if (self.may_overlap(source)) from = fresh(source);
  }
  const bool history = recording(self, source);
  const Saved saved = save_if(history, index);
  Tensor out = in_place ? self : fresh(self);
  select_loop(mode, out, d, index, from);
  if (in_place) wrote(op, self);
  if (!history) return out;
  const bool add = mode == IndexMode::kAdd;
  auto backward = [d, add, at = saved, rank = source.dim()](const Node& node, const Tensor& g) {
    const Tensor part = node.needs(1) ? g.index_select(d, at.get(node)) : Tensor();
    return Pair{!node.needs(0) ? Tensor()
                : add          ? g
                               : g.index_fill(d, at.get(node), 0),
                part.defined() && rank == 0 ? part.reshape({}) : part};
  };
  const char* name = add ? "IndexAddBackward0" : "IndexCopyBackward0";
  if (!in_place) return record(name, {self, source}, std::move(out), std::move(backward));
  record_inplace(name, {self, source}, self, std::move(backward));
  return self;
}

}  // namespace

namespace autograd {

namespace {
Tensor written_zeros(IndexMode mode, IntArrayRef sizes, int64_t dim, const Tensor& index,
                     const Tensor& src) {
  Tensor out = zeros_of(sizes, src);
  write(mode, out, dim, index, at_least_1d(src.shallow()));
  if (!recording(src)) return out;
  return record("GatherBackward0", {src}, std::move(out),
                [dim, at = save(index)](const Node& node, const Tensor& g) {
                  return g.gather(dim, at.get(node));
                });
}
}  // namespace

Tensor scatter_zeros(IntArrayRef sizes, int64_t dim, const Tensor& index, const Tensor& src) {
  return written_zeros(IndexMode::kAdd, sizes, dim, index, src);
}
Tensor move_to_zeros(IntArrayRef sizes, int64_t dim, const Tensor& index, const Tensor& src) {
  return written_zeros(IndexMode::kMove, sizes, dim, index, src);
}

Tensor index_add_zeros(IntArrayRef sizes, int64_t dim, const Tensor& index, const Tensor& src) {
  Tensor out = zeros_of(sizes, src);
  select_loop(IndexMode::kAdd, out, dim, index, src.shallow());
  if (!recording(src)) return out;
  return record("IndexSelectBackward0", {src}, std::move(out),
                [dim, at = save(index)](const Node& node, const Tensor& g) {
                  return g.index_select(dim, at.get(node));
                });
}

}  // namespace autograd

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index_, bool) {
  const int64_t d = check_gather("gather", self, dim, index_);
  const Tensor index = gather_index("gather", index_);
  Tensor out(TensorBase::empty(index.sizes(), self.scalar_type(), self.device()));
  if (index.numel())
    gather_loop(IndexMode::kGet, at_least_1d(self.shallow()), d, at_least_1d(index),
                at_least_1d(out));
  if (!recording(self)) return out;
  return record("GatherBackward0", {self}, std::move(out),
                [d, m = Meta(self), at = save(index)](const Node& node, const Tensor& g) {
                  return scatter_zeros(m.shape(), d, at.get(node), g);
                });
}

Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_any("scatter", IndexMode::kPut, self, dim, index, src, false);
}
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return scatter_value("scatter", self, dim, index, value, false);
}
static Tensor scatter_add_body(const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& src) {
  return scatter_any("scatter_add", IndexMode::kAdd, self, dim, index, src, false);
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index_) {
  const int64_t d = check_select("index_select", self, dim, index_);
  const Tensor index = index_as_long("index_select", index_);
  std::vector<int64_t> sizes = self.sizes().vec();
  if (self.dim() > 0) sizes[static_cast<size_t>(d)] = index.numel();
  else
    RAMET_CHECK(index.numel() == 1, "index_select",
                "Index to a 0-dim tensor must have exactly one value: got ", describe(index));
  Tensor out(TensorBase::empty(sizes, self.scalar_type(), self.device()));
  select_loop(IndexMode::kGet, self.shallow(), d, index, out);
  if (!recording(self)) return out;
  return record("IndexSelectBackward0", {self}, std::move(out),
                [d, m = Meta(self), at = save(index)](const Node& node, const Tensor& g) {
                  return index_add_zeros(m.shape(), d, at.get(node), g);
                });
}

Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha) {
  return index_write("index_add", IndexMode::kAdd, self, dim, index, source, alpha, false);
}
static Tensor index_copy_body(const Tensor& self, int64_t dim, const Tensor& index,
                              const Tensor& source) {
  return index_write("index_copy", IndexMode::kPut, self, dim, index, source, 1, false);
}

Tensor repeat(const Tensor& self, IntArrayRef repeats) {
  check_defined("repeat", self);
  const auto lead = static_cast<int64_t>(repeats.size()) - self.dim();
  RAMET_CHECK(lead >= 0, "repeat",
              "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
              "tensor: got ",
              repeats, " for ", describe(self));
  std::vector<int64_t> split, wide, out;
  for (size_t d = 0; d < repeats.size(); ++d) {
    const int64_t n =
        static_cast<int64_t>(d) < lead ? 1 : self.size(static_cast<int64_t>(d) - lead);
    RAMET_CHECK(repeats[d] >= 0, "repeat", "repeats: got ", repeats,
                ", expected no negative number");
    split.push_back(1), split.push_back(n);
    wide.push_back(repeats[d]), wide.push_back(n);
    out.push_back(checked_mul("repeat", "size", repeats[d], n));
  }
  const Tensor spread = self.reshape(split).expand(wide);
  return spread.clone(MemoryFormat::Contiguous).reshape(out);
}

Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src) const {
  scatter_any("scatter_", IndexMode::kPut, *this, dim, index, src, true);
  return as_mutable(*this);
}
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Scalar& value) const {
  scatter_value("scatter_", *this, dim, index, value, true);
  return as_mutable(*this);
}
Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) const {
  scatter_any("scatter_add_", IndexMode::kAdd, *this, dim, index, src, true);
  return as_mutable(*this);
}
Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source,
                           const Scalar& alpha) const {
  index_write("index_add_", IndexMode::kAdd, *this, dim, index, source, alpha, true);
  return as_mutable(*this);
}
Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const {
  index_write("index_copy_", IndexMode::kPut, *this, dim, index, source, 1, true);
  return as_mutable(*this);
}

Tensor take(const Tensor& self, const Tensor& at) {
  check_defined("take", self);
  const Tensor places = index_as_long("take", at);
  check_indices("take", places, -self.numel(), self.numel(), "number of elements");
  return index(self.reshape(-1), {places});
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  const char* op = "take_along_dim";
  check_defined(op, self);
  check_defined(op, indices);
  RAMET_CHECK(indices.scalar_type() == kLong, op, "dtype of indices should be Long but got ",
              indices.scalar_type());
  same_place(op, self, indices);
  if (!dim) return gather(self.reshape(-1), 0, indices.reshape(-1));
  RAMET_CHECK(self.dim() == indices.dim(), op,
              "input and indices should have the same number of dimensions, but got ", self.dim(),
              " dimensions for input, and ", indices.dim(), " dimensions for indices");
  if (self.dim() == 0)
    throw IndexError(
        detail::join("[", op, "] Dimension specified as ", *dim, " but tensor has no dimensions"));
  const auto d = static_cast<size_t>(wrap_dim(op, *dim, self.dim()));
  const int64_t extent = self.sizes()[d];
  std::vector<int64_t> whole = self.sizes().vec(), chosen = indices.sizes().vec();
  whole[d] = chosen[d];
  const std::vector<int64_t> to = broadcast_sizes(op, whole, chosen);
  chosen = to;
  chosen[d] = extent;
  const Tensor places = extent > 0 ? indices.remainder(extent) : indices;
  return gather(expand(self, chosen), static_cast<int64_t>(d), expand(places, to));
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/index/gather_scatter.inc"

}  // namespace ramet
