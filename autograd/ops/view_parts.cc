#include "autograd/ops/view_parts.h"

#include <algorithm>

#include "autograd/graph/view.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/front/common.h"
#include "autograd/ops/index.h"
#include "runtime/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

using Sizes = std::vector<int64_t>;

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
  return record(name, {g}, std::move(out),
                [place](const Node&, const Tensor& gg) { return place(gg); });
}

// Where a part begins that starts at place `at` of dimension d, in elements. Strides of dimensions
// of one place and of empty tensors may be anything: nothing is multiplied by them.
int64_t offset_of(const Tensor& x, size_t d, int64_t at) {
  return x.numel() == 0 || x.sizes()[d] == 1 ? 0 : at * x.raw_strides()[d];
}

// A list of views costs memory of its own.
void check_parts(const char* op, int64_t parts) {
  check_room(op, "parts", static_cast<uint64_t>(parts),
             sizeof(TensorImpl) + sizeof(Tensor) + 2 * sizeof(int64_t));
}

}  // namespace

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
  sizes[d] = ceil_div(to - from, step);
  strides[d] = stepped_stride(strides[d], step);
  Tensor v = make_view(self, sizes, strides, offset_of(self, d, from));
  if (!recording(self)) return v;
  return record("SliceBackward0", {self}, std::move(v),
                [old = self.sizes().vec(), d, from, to, step](const Node&, const Tensor& g) {
                  return placed("SliceBackward0", g, old, [d, from, to, step](const Tensor& t) {
                    return slice(t, static_cast<int64_t>(d), from, to, step);
                  });
                });
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  check_defined("narrow", self);
  RAMET_CHECK(self.dim() > 0, "narrow", "narrow() cannot be applied to a 0-dim tensor.");
  RAMET_CHECK(length >= 0, "narrow", "narrow(): length must be non-negative: got ", length);
  const int64_t d = wrap_dim("narrow", dim, self.dim()), n = self.size(d),
                from = start < 0 ? start + n : start;
  if (from < 0 || from > n || length > n - from) {
    throw IndexError(detail::join("[narrow] start (", start, ") + length (", length,
                                  ") exceeds dimension size (", n, ")"));
  }
  return slice(self, d, from, from + length, 1);
}

Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  check_defined("narrow", start);
  RAMET_CHECK(start.dim() == 0 && is_integral(start.scalar_type(), false), "narrow",
              "start must be an 0-dim integral Tensor: got ", describe(start));
  return narrow(self, dim, start.item<int64_t>(), length);
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
  sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(d));
  strides.erase(strides.begin() + static_cast<ptrdiff_t>(d));
  Tensor v = make_view(self, sizes, strides, offset_of(self, d, index));
  if (!recording(self)) return v;
  return record("SelectBackward0", {self}, std::move(v),
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
                        : offset >= 0 ? offset_of(self, b, offset)
                                      : offset_of(self, a, -offset);
  int64_t step;  // more than an int64 holds only of one place at most: as in stepped_stride
  if (__builtin_add_overflow(strides[a], strides[b], &step)) step = strides[a];
  for (size_t d : {std::max(a, b), std::min(a, b)}) {
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(d));
    strides.erase(strides.begin() + static_cast<ptrdiff_t>(d));
  }
  sizes.push_back(length);
  strides.push_back(step);
  Tensor v = make_view(self, sizes, strides, first);
  if (!recording(self)) return v;
  return record("DiagonalBackward0", {self}, std::move(v),
                [old = self.sizes().vec(), offset, dim1, dim2](const Node&, const Tensor& g) {
                  return placed("DiagonalBackward0", g, old, [offset, dim1, dim2](const Tensor& t) {
                    return diagonal(t, offset, dim1, dim2);
                  });
                });
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  check_defined("unbind", self);
  RAMET_CHECK(self.dim() > 0, "unbind", "Dimension specified as ", dim,
              " but tensor has no dimensions");
  const int64_t n = self.size(wrap_dim("unbind", dim, self.dim()));
  check_parts("unbind", n);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(select(self, dim, i));
  return out;
}

std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef sizes, int64_t dim) {
  check_defined("split_with_sizes", self);
  RAMET_CHECK(self.dim() > 0, "split_with_sizes", "split expects at least a 1-dimensional tensor");
  const int64_t n = self.size(wrap_dim("split_with_sizes", dim, self.dim()));
  int64_t sum = 0;
  for (int64_t s : sizes) {
    RAMET_CHECK(s >= 0, "split_with_sizes",
                "expects split_sizes have only non-negative entries: got ", sizes);
    sum = checked_add("split_with_sizes", "sum of split_sizes", sum, s);
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
  check_defined("split", self);
  RAMET_CHECK(self.dim() > 0, "split", "split expects at least a 1-dimensional tensor");
  RAMET_CHECK(split_size >= 0, "split", "split expects split_size be non-negative: got ",
              split_size);
  const int64_t n = self.size(wrap_dim("split", dim, self.dim()));
  RAMET_CHECK(split_size > 0 || n == 0, "split",
              "split_size can only be 0 if dimension size is 0: got a dimension of ", n);
  const int64_t parts = n == 0 ? 1 : ceil_div(n, split_size);
  check_parts("split", parts);
  Sizes sizes(static_cast<size_t>(parts), split_size);
  sizes.back() = n - (parts - 1) * split_size;
  return split_with_sizes(self, sizes, dim);
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  check_defined("chunk", self);
  RAMET_CHECK(self.dim() > 0, "chunk", "chunk expects at least a 1-dimensional tensor");
  RAMET_CHECK(chunks > 0, "chunk", "chunk expects `chunks` to be greater than 0: got ", chunks);
  const int64_t n = self.size(wrap_dim("chunk", dim, self.dim()));
  if (n > 0) return split(self, ceil_div(n, chunks), dim);
  check_parts("chunk", chunks);
  return split_with_sizes(self, Sizes(static_cast<size_t>(chunks), 0), dim);
}

namespace {

int64_t split_dim(const char* op, const Tensor& self, int64_t dim) {
  check_defined(op, self);
  RAMET_CHECK(self.dim() > 0, op,
              "expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  return wrap_dim(op, dim, self.dim());
}

// The dimension that hsplit, vsplit or dsplit cuts.
int64_t cut_dim(const char* op, const Tensor& self, int64_t dim) {
  check_defined(op, self);
  const int64_t least = dim == 1 ? 1 : dim == 0 ? 2 : 3;
  RAMET_CHECK(self.dim() >= least, op, "requires a tensor with at least ", least,
              " dimension, but got a tensor with ", self.dim(), " dimensions!");
  return self.dim() == 1 ? 0 : dim;
}
std::vector<Tensor> cut(const char* op, const Tensor& self, int64_t sections, int64_t dim) {
  const int64_t d = cut_dim(op, self, dim);
  RAMET_CHECK(sections != 0 && (sections < 0 || self.size(d) % sections == 0), op,
              "attempted to split along dimension ", d, ", but the size of the dimension ",
              self.size(d), " is not divisible by the split_size ", sections, "!");
  return tensor_split(self, sections, d);
}

}  // namespace

std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  const int64_t d = split_dim("tensor_split", self, dim);
  RAMET_CHECK(sections > 0, "tensor_split", "number of sections must be larger than 0, got ",
              sections);
  check_parts("tensor_split", sections);
  const int64_t each = self.size(d) / sections, longer = self.size(d) % sections;
  std::vector<Tensor> out;
  for (int64_t i = 0, start = 0; i < sections; ++i) {
    const int64_t end = start + each + (i < longer);
    out.push_back(slice(self, d, start, end, 1));
    start = end;
  }
  return out;
}
std::vector<Tensor> tensor_split(const Tensor& self, IntArrayRef indices, int64_t dim) {
  const int64_t d = split_dim("tensor_split", self, dim);
  std::vector<Tensor> out;
  int64_t start = 0;
  for (const int64_t end : indices) {
    out.push_back(slice(self, d, start, end, 1));
    start = end;
  }
  out.push_back(slice(self, d, start, std::nullopt, 1));
  return out;
}
std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& places, int64_t dim) {
  check_defined("tensor_split", places);
  RAMET_CHECK(places.is_cpu(), "tensor_split",
              "expected tensor_indices_or_sections to be on cpu, but it's on ", places.device());
  RAMET_CHECK(places.scalar_type() == kLong, "tensor_split",
              "expected tensor_indices_or_sections to have dtype of long, but got ",
              places.scalar_type());
  RAMET_CHECK(places.dim() < 2, "tensor_split",
              "expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
              "tensor, but got a tensor with ",
              places.dim(), " dims");
  if (places.dim() == 0) return tensor_split(self, places.item<int64_t>(), dim);
  const Tensor dense = places.contiguous();
  return tensor_split(
      self, IntArrayRef(dense.data_ptr<int64_t>(), static_cast<size_t>(dense.numel())), dim);
}

std::vector<Tensor> hsplit(const Tensor& self, int64_t n) { return cut("hsplit", self, n, 1); }
std::vector<Tensor> vsplit(const Tensor& self, int64_t n) { return cut("vsplit", self, n, 0); }
std::vector<Tensor> dsplit(const Tensor& self, int64_t n) { return cut("dsplit", self, n, 2); }
std::vector<Tensor> hsplit(const Tensor& self, IntArrayRef indices) {
  return tensor_split(self, indices, cut_dim("hsplit", self, 1));
}
std::vector<Tensor> vsplit(const Tensor& self, IntArrayRef indices) {
  return tensor_split(self, indices, cut_dim("vsplit", self, 0));
}
std::vector<Tensor> dsplit(const Tensor& self, IntArrayRef indices) {
  return tensor_split(self, indices, cut_dim("dsplit", self, 2));
}

// Sliding windows. Elements share memory where windows overlap.
Tensor Tensor::unfold(int64_t dimension, int64_t size, int64_t step) const {
  RAMET_CHECK(defined(), "unfold", "undefined tensor");
  const int64_t d = wrap_dim("unfold", dimension, dim());
  // A 0-dim tensor counts as a vector of one element.
  const int64_t extent = dim() == 0 ? 1 : this->size(d);
  RAMET_CHECK(size >= 0, "unfold", "size: got ", size, ", expected at least 0");
  RAMET_CHECK(size <= extent, "unfold", "size: got ", size, ", expected at most ", extent,
              ", the extent of dimension ", d);
  RAMET_CHECK(step > 0, "unfold", "step: got ", step, ", expected more than 0");
  std::vector<int64_t> sizes = this->sizes().vec(), steps = strides().vec();
  const int64_t windows = (extent - size) / step + 1;
  const auto k = static_cast<size_t>(d);
  sizes.push_back(size);
  steps.push_back(dim() == 0 ? 1 : steps[k]);
  if (dim() > 0) {
    sizes[k] = windows;
    steps[k] = stepped_stride(steps[k], step);
  }
  Tensor v = make_view(*this, sizes, steps, 0);
  if (!recording(*this)) return v;
  return record("UnfoldBackward0", {*this}, std::move(v),
                [old = this->sizes().vec(), d, windows, size, step](const Node&, const Tensor& g) {
                  if (old.empty()) return g.sum();
                  // Each window's elements are added where they came from.
                  const TensorOptions on = TensorOptions().dtype(kLong).device(g.device());
                  const Tensor first = arange(windows, on).mul(step).unsqueeze(1);
                  const Tensor places = (first + arange(size, on)).flatten();
                  const Tensor laid = g.movedim(-1, d + 1).flatten(d, d + 1);
                  return index_add_zeros(old, d, places, laid);
                });
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/view_parts.inc"

}  // namespace ramet
