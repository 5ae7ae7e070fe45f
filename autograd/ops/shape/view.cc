#include "autograd/ops/shape/view.h"

#include <algorithm>

#include "autograd/graph/view.h"
#include "autograd/ops/front/common_internal.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

using Sizes = std::vector<int64_t>;

// Sizes with the one -1 filled in.
Sizes inferred(const char* op, IntArrayRef sizes, int64_t numel) {
  Sizes out = sizes.vec();
  int64_t known = 1;
  bool wrapped = false, empty = false;  // a product may overflow only where a size is 0
  ptrdiff_t hole = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == -1) {
      RAMET_CHECK(hole < 0, op, "only one dimension can be inferred: got ", sizes);
      hole = static_cast<ptrdiff_t>(i);
    } else {
      RAMET_CHECK(out[i] >= 0, op, "invalid shape dimension ", out[i], ": got ", sizes);
      empty |= out[i] == 0;
      wrapped |= __builtin_mul_overflow(known, out[i], &known);
    }
  }
  RAMET_CHECK(empty || !wrapped, op, "shape '", sizes, "' is invalid for input of size ", numel);
  if (empty) known = 0;
  if (hole >= 0) {
    RAMET_CHECK(known != 0, op, "cannot reshape tensor of 0 elements into shape ", sizes,
                " because the unspecified dimension size -1 "
                "can be any value and is ambiguous");
    out[static_cast<size_t>(hole)] = numel / known;
    known *= numel / known;
  }
  RAMET_CHECK(known == numel, op, "shape '", sizes, "' is invalid for input of size ", numel);
  return out;
}

// Strides for the same memory with other sizes; false where no such strides exist. Groups the old
// dimensions into runs that are contiguous in themselves. Each new dimension must lie within one
// run.
bool view_strides(const Tensor& x, const Sizes& sizes, Sizes& strides) {
  strides = contiguous_strides(sizes);
  if (x.numel() == 0 || x.raw_contiguous()) return true;
  const IntArrayRef old = x.sizes(), steps = x.raw_strides();
  ptrdiff_t v = static_cast<ptrdiff_t>(sizes.size()) - 1;
  int64_t run = 1, base = old.empty() ? 1 : steps.back(), seen = 1;
  for (ptrdiff_t d = static_cast<ptrdiff_t>(old.size()) - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    run *= old[i];
    const bool ends = d == 0 || (old[i - 1] != 1 && steps[i - 1] != run * base);
    if (!ends) continue;
    while (v >= 0 && (seen < run || sizes[static_cast<size_t>(v)] == 1)) {
      strides[static_cast<size_t>(v)] = seen * base;
      seen *= sizes[static_cast<size_t>(v)];
      --v;
    }
    if (seen != run) return false;
    if (d > 0) {
      base = steps[i - 1];
      run = seen = 1;
    }
  }
  return v == -1;
}

Tensor view_with(const char* name, const Tensor& x, const Sizes& sizes, const Sizes& strides) {
  Tensor v = make_view(x, sizes, strides, 0);
  if (!recording(x)) return v;
  return record(name, {x}, std::move(v),
                saves_nothing([old = x.sizes().vec()](const Node&, const Tensor& g) {
                  return reshape(g, old);
                }));
}

}  // namespace

std::vector<int64_t> broadcast_sizes(const char* op, IntArrayRef a, IntArrayRef b) {
  if (a.size() < b.size()) std::swap(a, b);
  Sizes out = a.vec();
  const size_t lead = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t& to = out[lead + i];
    if (to == b[i] || b[i] == 1) continue;
    RAMET_CHECK(to == 1, op,
                "The size of tensor a must match the size of tensor b at non-singleton dimension ",
                lead + i, ": got shapes ", a, " and ", b);
    to = b[i];
  }
  return out;
}

Tensor view(const Tensor& self, IntArrayRef size) {
  settled("view", self);
  const Sizes sizes = inferred("view", size, self.numel());
  Sizes strides;
  RAMET_CHECK(
      view_strides(self, sizes, strides), "view",
      "view size is not compatible with input tensor's size and stride (at least "
      "one dimension spans across two contiguous subspaces). Use .reshape(...) instead. Got ",
      describe(self), " with strides ", self.raw_strides(), ", expected one that can be seen as ",
      IntArrayRef(sizes));
  return view_with("ViewBackward0", self, sizes, strides);
}

Tensor reshape(const Tensor& self, IntArrayRef shape) {
  settled("reshape", self);
  const Sizes sizes = inferred("reshape", shape, self.numel());
  Sizes strides;
  if (view_strides(self, sizes, strides)) return view_with("ViewBackward0", self, sizes, strides);
  const Tensor dense = self.clone(MemoryFormat::Contiguous);
  return view_with("ViewBackward0", dense, sizes, contiguous_strides(sizes));
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  settled("transpose", self);
  const auto a = static_cast<size_t>(wrap_dim("transpose", dim0, self.dim())),
             b = static_cast<size_t>(wrap_dim("transpose", dim1, self.dim()));
  Sizes sizes = self.sizes().vec(), strides = self.raw_strides().vec();
  if (a != b) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  Tensor v = make_view(self, sizes, strides, 0);
  if (!recording(self)) return v;
  return record("TransposeBackward0", {self}, std::move(v),
                [dim0, dim1](const Node&, const Tensor& g) { return transpose(g, dim0, dim1); },
                [&](Arguments& to) { to("dim0", a), to("dim1", b); });
}

Tensor t(const Tensor& self) {
  check_defined("t", self);
  RAMET_CHECK(self.dim() <= 2, "t", "t() expects a tensor with <= 2 dimensions: got ",
              describe(self));
  return self.dim() < 2 ? transpose(self, 0, 0) : transpose(self, 0, 1);
}

Tensor permute(const Tensor& self, IntArrayRef dims) {
  settled("permute", self);
  const size_t rank = static_cast<size_t>(self.dim());
  RAMET_CHECK(dims.size() == rank, "permute", "dimensions: got ", dims,
              ", expected a permutation of ", rank);
  Sizes sizes(rank), strides(rank), inverse(rank, -1);
  for (size_t i = 0; i < rank; ++i) {
    const auto from = static_cast<size_t>(wrap_dim("permute", dims[i], self.dim()));
    RAMET_CHECK(inverse[from] < 0, "permute", "duplicate dims are not allowed: got ", dims);
    inverse[from] = static_cast<int64_t>(i);
    sizes[i] = self.sizes()[from];
    strides[i] = self.raw_strides()[from];
  }
  Tensor v = make_view(self, sizes, strides, 0);
  if (!recording(self)) return v;
  return record(
      "PermuteBackward0", {self}, std::move(v),
      saves_nothing([inverse](const Node&, const Tensor& g) { return permute(g, inverse); }),
      [&](Arguments& to) { to("dims", dims); });
}

Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  check_defined("movedim", self);
  RAMET_CHECK(source.size() == destination.size(), "movedim", "got ", source.size(),
              " source dimensions and ", destination.size(), " destinations, expected as many");
  const auto rank = static_cast<size_t>(std::max<int64_t>(self.dim(), 1));
  std::vector<int64_t> comes_from(rank, -1);  // for each dimension of the result
  std::vector<bool> moved(rank);
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t from = wrap_dim("movedim", source[i], self.dim()),
                  to = wrap_dim("movedim", destination[i], self.dim());
    RAMET_CHECK(!moved[static_cast<size_t>(from)] && comes_from[static_cast<size_t>(to)] < 0,
                "movedim", "repeated dim in source ", source, " or destination ", destination);
    moved[static_cast<size_t>(from)] = true;
    comes_from[static_cast<size_t>(to)] = from;
  }
  int64_t next = 0;
  for (int64_t& from : comes_from) {
    if (from >= 0) continue;
    while (moved[static_cast<size_t>(next)]) ++next;
    from = next++;
  }
  if (self.dim() == 0) comes_from.clear();
  return permute(self, comes_from);
}
Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return movedim(self, IntArrayRef(source), IntArrayRef(destination));
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  check_defined("flatten", self);
  const int64_t start = wrap_dim("flatten", start_dim, self.dim()),
                end = wrap_dim("flatten", end_dim, self.dim());
  RAMET_CHECK(start <= end, "flatten",
              "flatten() has invalid args: start_dim cannot come after end_dim: got ", start_dim,
              " and ", end_dim);
  if (self.dim() == 0) return reshape(self, {1});
  if (start == end) return self;
  Sizes sizes;
  int64_t run = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < start || d > end) {
      sizes.push_back(self.size(d));
      continue;
    }
    run *= self.size(d);
    if (d == end) sizes.push_back(run);
  }
  return reshape(self, sizes);
}

Tensor ravel(const Tensor& self) { return reshape(self, {-1}); }

Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  check_defined("unflatten", self);
  if (self.dim() == 0)
    throw IndexError(
        detail::join("[unflatten] Dimension specified as ", dim, " but tensor has no dimensions"));
  const auto d = static_cast<size_t>(wrap_dim("unflatten", dim, self.dim()));
  RAMET_CHECK(!sizes.empty(), "unflatten", "sizes must be non-empty");
  const Sizes inner = inferred("unflatten", sizes, self.sizes()[d]);
  Sizes all = self.sizes().vec();
  all.erase(all.begin() + static_cast<ptrdiff_t>(d));
  all.insert(all.begin() + static_cast<ptrdiff_t>(d), inner.begin(), inner.end());
  return view(self, all);
}

namespace {
Tensor squeeze_where(const Tensor& self, const std::vector<bool>& drop) {
  settled("squeeze", self);
  Sizes sizes, strides;
  for (size_t d = 0; d < drop.size(); ++d) {
    if (drop[d] && self.sizes()[d] == 1) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.raw_strides()[d]);
  }
  return view_with("SqueezeBackward0", self, sizes, strides);
}
}  // namespace

Tensor squeeze(const Tensor& self) {
  check_defined("squeeze", self);
  return squeeze_where(self, std::vector<bool>(static_cast<size_t>(self.dim()), true));
}
Tensor squeeze(const Tensor& self, int64_t dim) { return squeeze(self, IntArrayRef(dim)); }
Tensor squeeze(const Tensor& self, IntArrayRef dims) {
  check_defined("squeeze", self);
  std::vector<bool> drop(static_cast<size_t>(self.dim()));
  for (int64_t d : dims) {
    const auto at = static_cast<size_t>(wrap_dim("squeeze", d, self.dim()));
    if (at >= drop.size()) continue;
    RAMET_CHECK(!drop[at], "squeeze", "dim ", at,
                " appears multiple times in the list of dims: got ", dims);
    drop[at] = true;
  }
  return squeeze_where(self, drop);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  settled("unsqueeze", self);
  const auto d = static_cast<ptrdiff_t>(wrap_dim("unsqueeze", dim, self.dim() + 1));
  Sizes sizes = self.sizes().vec(), strides = self.raw_strides().vec();
  const auto at = static_cast<size_t>(d);
  const int64_t stride = at < sizes.size() ? stepped_stride(strides[at], sizes[at]) : 1;
  sizes.insert(sizes.begin() + d, 1);
  strides.insert(strides.begin() + d, stride);
  return view_with("UnsqueezeBackward0", self, sizes, strides);
}

namespace {
// The sum over the elements that expand repeated.
Tensor fold_to(Tensor g, const Sizes& sizes) {
  while (g.dim() > static_cast<int64_t>(sizes.size())) g = g.sum(OptionalIntArrayRef(int64_t{0}));
  Sizes dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == 1 && g.sizes()[d] != 1) dims.push_back(static_cast<int64_t>(d));
  return dims.empty() ? g : g.sum(OptionalIntArrayRef(dims), /*keepdim=*/true);
}
}  // namespace

Tensor expand(const Tensor& self, IntArrayRef size) {
  settled("expand", self);
  const size_t rank = size.size(), own = static_cast<size_t>(self.dim());
  RAMET_CHECK(rank >= own, "expand", "the number of sizes provided (", rank,
              ") must be greater or equal to the number of dimensions in "
              "the tensor (",
              own, "): got ", describe(self), " and ", size);
  Sizes sizes(rank), strides(rank);
  for (size_t d = 0; d < rank; ++d) {
    const bool fresh = d < rank - own;
    const int64_t have = fresh ? 1 : self.sizes()[d - (rank - own)],
                  step = fresh ? 0 : self.raw_strides()[d - (rank - own)];
    RAMET_CHECK(size[d] >= 0 || (size[d] == -1 && !fresh), "expand",
                "the expanded size of the tensor (", size[d], ") isn't allowed in dimension ", d,
                ": got ", size);
    sizes[d] = size[d] == -1 ? have : size[d];
    RAMET_CHECK(have == 1 || have == sizes[d], "expand", "The expanded size of the tensor (",
                sizes[d], ") must match the existing size (", have, ") at non-singleton dimension ",
                d, ". Target sizes: ", size, ". Tensor sizes: ", self.sizes());
    strides[d] = have == 1 && sizes[d] != 1 ? 0 : step;
  }
  Tensor v = make_view(self, sizes, strides, 0);
  if (!recording(self)) return v;
  return record("ExpandBackward0", {self}, std::move(v),
                saves_nothing([old = self.sizes().vec()](const Node&, const Tensor& g) {
                  return fold_to(g, old);
                }));
}

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  Sizes sizes;
  for (const Tensor& x : tensors) sizes = broadcast_sizes("broadcast_tensors", sizes, x.sizes());
  std::vector<Tensor> out;
  for (const Tensor& x : tensors) out.push_back(expand(x, sizes));
  return out;
}

// ---- bytes as elements of another dtype
// -----------------------------------------------------------

namespace {

// Checks LibTorch's rule: `what` must be a multiple of the ratio of the item sizes.
void check_divisible(const Tensor& x, ScalarType dtype, const char* what, int64_t got,
                     int64_t ratio) {
  RAMET_CHECK(got % ratio == 0, "view", what, " must be divisible by ", ratio, " to view ",
              name_of(x.scalar_type()), " as ", name_of(dtype),
              " (different element sizes), but got ", got);
}

}  // namespace

// A leaf with the same storage and versions, as from detach(): bytes have no derivative.
Tensor Tensor::view(ScalarType dtype) const {
  const Tensor& x = settled("view", *this);
  const auto from = static_cast<int64_t>(item_size(x.scalar_type())),
             to = static_cast<int64_t>(item_size(dtype));
  std::vector<int64_t> sizes = x.sizes().vec(), strides = x.raw_strides().vec();
  if (from != to) {
    RAMET_CHECK(x.dim() > 0, "view", "self.dim() cannot be 0 to view ", name_of(x.scalar_type()),
                " as ", name_of(dtype), " (different element sizes)");
    RAMET_CHECK(strides.back() == 1, "view", "self.stride(-1) must be 1 to view ",
                name_of(x.scalar_type()), " as ", name_of(dtype),
                " (different element sizes), but got ", strides.back());
    if (from < to) {
      const int64_t ratio = to / from;
      check_divisible(x, dtype, "self.size(-1)", sizes.back(), ratio);
      check_divisible(x, dtype, "self.storage_offset()", x.storage_offset(), ratio);
      for (size_t d = 0; d + 1 < strides.size(); ++d) {
        check_divisible(x, dtype, "self.stride(d)", strides[d], ratio);
        strides[d] /= ratio;
      }
      sizes.back() /= ratio;
    } else {
      for (size_t d = 0; d + 1 < strides.size(); ++d)
        strides[d] = stepped_stride(strides[d], from / to);
      sizes.back() = checked_mul("view", "last size", sizes.back(), from / to);
    }
  }
  Tensor out(x.view_impl(sizes, strides, 0));
  out->dtype = dtype;
  return out;
}

// ---- methods ------------------------------------------------------------------------------------

Tensor Tensor::expand(IntArrayRef size, bool) const { return ramet::expand(*this, size); }

namespace {
// x takes over the geometry of v, a view of x, and v's history if it was recorded.
void take_over(const char* op, const Tensor& x, const Tensor& v, bool recorded) {
  check_inplace(op, x);
  RAMET_CHECK(v.dim() <= kInlineRank && x.dim() <= kInlineRank, op, "rank: got ", x.dim(),
              ", expected at most ", kInlineRank);
  x->rank = v->rank;
  x->numel = v->numel;
  x->data = v->data;
  for (int d = 0; d < v->rank; ++d) {
    x->sizes()[d] = v->sizes()[d];
    x->strides()[d] = v->strides()[d];
  }
  x->set(TensorImpl::kContiguous, v.raw_contiguous());
  if (recorded) {
    Node* node = edge_of(v.impl()).node;
    AutogradSlot::release(std::exchange(x->node, node));
    x->slot = v->slot;
    x->flags |= TensorImpl::kRequiresGrad;
    // Nothing was written: views of x keep their histories. A view is up to date with its base now.
    if (x->base) x->generation = v->generation;
  }
}
// x = f(x), which is a view of x: squeeze_, as_strided_ and similar ones. The values stay, so a
// history stays, in no_grad mode too. A tensor without history may be saved by a node: it counts as
// written.
template <class F> Tensor& become(const char* op, const Tensor& x, const F& f) {
  const bool has_history =
      x.defined() && x->node && !(static_cast<const Node*>(x->node)->flags & Node::kSink);
  bool recorded = false;
  const Tensor v = [&] {
    const AutoGradMode mode(GradMode::is_enabled() || has_history);
    const Tensor made = f(x);
    recorded = recording(made);
    return made;
  }();
  take_over(op, x, v, recorded);
  if (!has_history) wrote(op, x);
  return as_mutable(x);
}
}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/shape/view.inc"

}  // namespace ramet
