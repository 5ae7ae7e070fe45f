#include "autograd/ops/view.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/inplace.h"
#include "autograd/layout.h"
#include "autograd/view.h"

namespace ramet {

using namespace autograd;

namespace {

using Sizes = std::vector<int64_t>;

const Tensor& settled(const char* op, const Tensor& x) {
  RAMET_CHECK(x.defined(), op, "undefined tensor");
  if (RAMET_UNLIKELY(x->is(TensorImpl::kInternalLayout))) settle(x);
  return x;
}

// Sizes with the one -1 filled in.
Sizes inferred(const char* op, IntArrayRef sizes, int64_t numel) {
  Sizes out = sizes.vec();
  int64_t known = 1;
  ptrdiff_t hole = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == -1) {
      RAMET_CHECK(hole < 0, op, "only one dimension can be inferred: got ", sizes);
      hole = static_cast<ptrdiff_t>(i);
    } else {
      RAMET_CHECK(out[i] >= 0, op, "invalid shape dimension ", out[i], ": got ", sizes);
      known *= out[i];
    }
  }
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

// Strides that show the same memory with other sizes; false where no such strides exist. Old
// dimensions are grouped into runs that are contiguous among themselves; each new dimension must
// lie within one run.
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
  return record(name, {x}, v,
                [old = x.sizes().vec()](const Node&, const Tensor& g) { return reshape(g, old); });
}

// An adjoint of slicing: zeros of the given sizes with g at one place. Its own adjoint is the
// slicing.
template <class Place>
Tensor placed(const char* name, const Tensor& g, const Sizes& sizes, Place place) {
  Tensor out;
  {
    NoGradGuard off;
    out = Tensor(TensorBase::empty(sizes, g.scalar_type(), g.device()));
    out.zero_();
    place(out).copy_(g);
  }
  if (!recording(g)) return out;
  return record(name, {g}, out, [place](const Node&, const Tensor& gg) { return place(gg); });
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
  return record("TransposeBackward0", {self}, v,
                [dim0, dim1](const Node&, const Tensor& g) { return transpose(g, dim0, dim1); });
}

Tensor t(const Tensor& self) {
  RAMET_CHECK(self.defined(), "t", "undefined tensor");
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
  return record("PermuteBackward0", {self}, v,
                [inverse](const Node&, const Tensor& g) { return permute(g, inverse); });
}

Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  RAMET_CHECK(self.defined(), "movedim", "undefined tensor");
  const int64_t from = wrap_dim("movedim", source, self.dim()),
                to = wrap_dim("movedim", destination, self.dim());
  Sizes dims;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != from) dims.push_back(d);
  if (self.dim()) dims.insert(dims.begin() + to, from);
  return permute(self, dims);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  RAMET_CHECK(self.defined(), "flatten", "undefined tensor");
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

Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  RAMET_CHECK(self.defined(), "unflatten", "undefined tensor");
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
  RAMET_CHECK(self.defined(), "squeeze", "undefined tensor");
  return squeeze_where(self, std::vector<bool>(static_cast<size_t>(self.dim()), true));
}
Tensor squeeze(const Tensor& self, int64_t dim) { return squeeze(self, IntArrayRef(dim)); }
Tensor squeeze(const Tensor& self, IntArrayRef dims) {
  RAMET_CHECK(self.defined(), "squeeze", "undefined tensor");
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
  const int64_t stride = d < static_cast<ptrdiff_t>(sizes.size())
                             ? sizes[static_cast<size_t>(d)] * strides[static_cast<size_t>(d)]
                             : 1;
  sizes.insert(sizes.begin() + d, 1);
  strides.insert(strides.begin() + d, stride);
  return view_with("UnsqueezeBackward0", self, sizes, strides);
}

namespace {
// Sum over what expand repeated.
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
  return record(
      "ExpandBackward0", {self}, v,
      [old = self.sizes().vec()](const Node&, const Tensor& g) { return fold_to(g, old); });
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  settled("slice", self);
  RAMET_CHECK(self.dim() > 0, "slice", "slice() cannot be applied to a 0-dim tensor.");
  RAMET_CHECK(step > 0, "slice", "slice step must be positive: got ", step);
  const auto d = static_cast<size_t>(wrap_dim("slice", dim, self.dim()));
  const int64_t n = self.sizes()[d];
  auto clamped = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t from = clamped(start.value_or(0)), to = std::max(clamped(end.value_or(n)), from);
  Sizes sizes = self.sizes().vec(), strides = self.raw_strides().vec();
  const int64_t offset = from * strides[d];
  sizes[d] = (to - from + step - 1) / step;
  strides[d] *= step;
  Tensor v = make_view(self, sizes, strides, self.numel() ? offset : 0);
  if (!recording(self)) return v;
  return record("SliceBackward0", {self}, v,
                [old = self.sizes().vec(), d, from, to, step](const Node&, const Tensor& g) {
                  return placed("SliceBackward0", g, old, [d, from, to, step](const Tensor& t) {
                    return slice(t, static_cast<int64_t>(d), from, to, step);
                  });
                });
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  RAMET_CHECK(self.defined(), "narrow", "undefined tensor");
  RAMET_CHECK(self.dim() > 0, "narrow", "narrow() cannot be applied to a 0-dim tensor.");
  RAMET_CHECK(length >= 0, "narrow", "narrow(): length must be non-negative: got ", length);
  const int64_t d = wrap_dim("narrow", dim, self.dim()), n = self.size(d),
                from = start < 0 ? start + n : start;
  if (from < 0 || from > n || from + length > n) {
    throw IndexError(detail::join("[narrow] start (", start, ") + length (", length,
                                  ") exceeds dimension size (", n, ")"));
  }
  return slice(self, d, from, from + length, 1);
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  settled("select", self);
  if (self.dim() == 0) throw IndexError("[select] select() cannot be applied to a 0-dim tensor.");
  const auto d = static_cast<size_t>(wrap_dim("select", dim, self.dim()));
  const int64_t n = self.sizes()[d];
  if (index < -n || index >= n) {
    throw IndexError(detail::join("[select] index ", index, " out of range for tensor of size ",
                                  self.sizes(), " at dimension ", d));
  }
  if (index < 0) index += n;
  Sizes sizes = self.sizes().vec(), strides = self.raw_strides().vec();
  const int64_t offset = index * strides[d];
  sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(d));
  strides.erase(strides.begin() + static_cast<ptrdiff_t>(d));
  Tensor v = make_view(self, sizes, strides, self.numel() ? offset : 0);
  if (!recording(self)) return v;
  return record("SelectBackward0", {self}, v,
                [old = self.sizes().vec(), d, index](const Node&, const Tensor& g) {
                  return placed("SelectBackward0", g, old, [d, index](const Tensor& t) {
                    return select(t, static_cast<int64_t>(d), index);
                  });
                });
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  settled("diagonal", self);
  const auto a = static_cast<size_t>(wrap_dim("diagonal", dim1, self.dim())),
             b = static_cast<size_t>(wrap_dim("diagonal", dim2, self.dim()));
  RAMET_CHECK(a != b, "diagonal", "diagonal dimensions cannot be identical: got ", dim1, " and ",
              dim2);
  Sizes sizes = self.sizes().vec(), strides = self.raw_strides().vec();
  const int64_t length = std::max<int64_t>(
      offset >= 0 ? std::min(sizes[a], sizes[b] - offset) : std::min(sizes[a] + offset, sizes[b]),
      0);
  const int64_t first = length == 0   ? 0
                        : offset >= 0 ? offset * strides[b]
                                      : -offset * strides[a],
                step = strides[a] + strides[b];
  for (size_t d : {std::max(a, b), std::min(a, b)}) {
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(d));
    strides.erase(strides.begin() + static_cast<ptrdiff_t>(d));
  }
  sizes.push_back(length);
  strides.push_back(step);
  Tensor v = make_view(self, sizes, strides, first);
  if (!recording(self)) return v;
  return record("DiagonalBackward0", {self}, v,
                [old = self.sizes().vec(), offset, dim1, dim2](const Node&, const Tensor& g) {
                  return placed("DiagonalBackward0", g, old, [offset, dim1, dim2](const Tensor& t) {
                    return diagonal(t, offset, dim1, dim2);
                  });
                });
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  RAMET_CHECK(self.defined(), "unbind", "undefined tensor");
  RAMET_CHECK(self.dim() > 0, "unbind", "Dimension specified as ", dim,
              " but tensor has no dimensions");
  const int64_t n = self.size(wrap_dim("unbind", dim, self.dim()));
  std::vector<Tensor> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(select(self, dim, i));
  return out;
}

std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef sizes, int64_t dim) {
  RAMET_CHECK(self.defined(), "split_with_sizes", "undefined tensor");
  RAMET_CHECK(self.dim() > 0, "split_with_sizes", "split expects at least a 1-dimensional tensor");
  const int64_t n = self.size(wrap_dim("split_with_sizes", dim, self.dim()));
  int64_t sum = 0;
  for (int64_t s : sizes) {
    RAMET_CHECK(s >= 0, "split_with_sizes",
                "expects split_sizes have only non-negative entries: got ", sizes);
    sum += s;
  }
  RAMET_CHECK(sum == n, "split_with_sizes", "expects split_sizes to sum exactly to ", n,
              " (input tensor's size at dimension ", dim, "): got ", sizes);
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t s : sizes) {
    out.push_back(slice(self, dim, start, start + s, 1));
    start += s;
  }
  return out;
}

std::vector<Tensor> split(const Tensor& self, IntArrayRef sizes, int64_t dim) {
  return split_with_sizes(self, sizes, dim);
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  RAMET_CHECK(self.defined(), "split", "undefined tensor");
  RAMET_CHECK(self.dim() > 0, "split", "split expects at least a 1-dimensional tensor");
  RAMET_CHECK(split_size >= 0, "split", "split expects split_size be non-negative: got ",
              split_size);
  const int64_t n = self.size(wrap_dim("split", dim, self.dim()));
  RAMET_CHECK(split_size > 0 || n == 0, "split",
              "split_size can only be 0 if dimension size is 0: got a dimension of ", n);
  Sizes sizes;
  for (int64_t at = 0; at < n; at += split_size) sizes.push_back(std::min(split_size, n - at));
  if (sizes.empty()) sizes.push_back(0);
  return split_with_sizes(self, sizes, dim);
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  RAMET_CHECK(self.defined(), "chunk", "undefined tensor");
  RAMET_CHECK(self.dim() > 0, "chunk", "chunk expects at least a 1-dimensional tensor");
  RAMET_CHECK(chunks > 0, "chunk", "chunk expects `chunks` to be greater than 0: got ", chunks);
  const int64_t n = self.size(wrap_dim("chunk", dim, self.dim())), each = (n + chunks - 1) / chunks;
  if (each == 0) return split_with_sizes(self, Sizes(static_cast<size_t>(chunks), 0), dim);
  return split(self, each, dim);
}

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  Sizes sizes;
  for (const Tensor& x : tensors) sizes = broadcast_sizes("broadcast_tensors", sizes, x.sizes());
  std::vector<Tensor> out;
  for (const Tensor& x : tensors) out.push_back(expand(x, sizes));
  return out;
}

// ---- methods ------------------------------------------------------------------------------------

Tensor Tensor::view(IntArrayRef size) const { return ramet::view(*this, size); }
Tensor Tensor::reshape(IntArrayRef shape) const { return ramet::reshape(*this, shape); }
Tensor Tensor::transpose(int64_t a, int64_t b) const { return ramet::transpose(*this, a, b); }
Tensor Tensor::t() const { return ramet::t(*this); }
Tensor Tensor::permute(IntArrayRef dims) const { return ramet::permute(*this, dims); }
Tensor Tensor::movedim(int64_t source, int64_t destination) const {
  return ramet::movedim(*this, source, destination);
}
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  return ramet::flatten(*this, start_dim, end_dim);
}
Tensor Tensor::unflatten(int64_t dim, IntArrayRef sizes) const {
  return ramet::unflatten(*this, dim, sizes);
}
Tensor Tensor::squeeze() const { return ramet::squeeze(*this); }
Tensor Tensor::squeeze(int64_t dim) const { return ramet::squeeze(*this, dim); }
Tensor Tensor::squeeze(IntArrayRef dims) const { return ramet::squeeze(*this, dims); }
Tensor Tensor::unsqueeze(int64_t dim) const { return ramet::unsqueeze(*this, dim); }
Tensor Tensor::expand(IntArrayRef size, bool) const { return ramet::expand(*this, size); }
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return ramet::narrow(*this, dim, start, length);
}
Tensor Tensor::select(int64_t dim, int64_t index) const { return ramet::select(*this, dim, index); }
Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) const {
  return ramet::slice(*this, dim, start, end, step);
}
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return ramet::diagonal(*this, offset, dim1, dim2);
}
std::vector<Tensor> Tensor::unbind(int64_t dim) const { return ramet::unbind(*this, dim); }
std::vector<Tensor> Tensor::split(int64_t split_size, int64_t dim) const {
  return ramet::split(*this, split_size, dim);
}
std::vector<Tensor> Tensor::split(IntArrayRef sizes, int64_t dim) const {
  return ramet::split_with_sizes(*this, sizes, dim);
}
std::vector<Tensor> Tensor::split_with_sizes(IntArrayRef sizes, int64_t dim) const {
  return ramet::split_with_sizes(*this, sizes, dim);
}
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const {
  return ramet::chunk(*this, chunks, dim);
}

namespace {
// x takes over the geometry and history of v, a view of x. For squeeze_ and its kin.
Tensor& become(const char* op, const Tensor& x, const Tensor& v) {
  check_inplace(op, x);
  RAMET_CHECK(v.dim() <= kInlineRank && x.dim() <= kInlineRank, op, "rank: got ", x.dim(),
              ", expected at most ", kInlineRank);
  x->rank = v->rank;
  for (int d = 0; d < v->rank; ++d) {
    x->sizes()[d] = v->sizes()[d];
    x->strides()[d] = v->strides()[d];
  }
  x->set(TensorImpl::kContiguous, v.raw_contiguous());
  if (wants_grad(v) && tls.grad_mode) {
    Node* node = edge_of(v.impl()).node;
    AutogradSlot::release(std::exchange(x->node, node));
    x->slot = v->slot;
    x->flags |= TensorImpl::kRequiresGrad;
    ++x->generation;
  }
  return as_mutable(x);
}
}  // namespace

Tensor& Tensor::squeeze_() const { return become("squeeze_", *this, ramet::squeeze(*this)); }
Tensor& Tensor::squeeze_(int64_t dim) const {
  return become("squeeze_", *this, ramet::squeeze(*this, dim));
}
Tensor& Tensor::unsqueeze_(int64_t dim) const {
  return become("unsqueeze_", *this, ramet::unsqueeze(*this, dim));
}
Tensor& Tensor::t_() const { return become("t_", *this, ramet::t(*this)); }
Tensor& Tensor::transpose_(int64_t a, int64_t b) const {
  return become("transpose_", *this, ramet::transpose(*this, a, b));
}

}  // namespace ramet
