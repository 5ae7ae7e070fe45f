#include "autograd/ops/shape/view_parts.h"

#include <algorithm>

#include "autograd/graph/view.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/factory.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

namespace {

using Sizes = std::vector<int64_t>;

// An adjoint of slicing: zeros of the given sizes, with g at one place. Its own adjoint is the
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

}  // namespace

int64_t autograd::offset_of(const Tensor& x, size_t d, int64_t at) {
  return x.numel() == 0 || x.sizes()[d] == 1 ? 0 : at * x.raw_strides()[d];
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  settled("slice", self);
  RAMET_CHECK(self.dim() > 0, "slice", "slice() cannot be applied to a 0-dim tensor.");
  RAMET_CHECK(step > 0, "slice", "slice step must be positive: got ", step);
  const auto d = static_cast<size_t>(wrap_dim("slice", dim, self.dim()));
  const int64_t n = self.sizes()[d];
  auto clamped = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t from = clamped(start.value_or(0)), until = std::max(clamped(end.value_or(n)), from);
  Sizes sizes = self.sizes().vec(), strides = self.raw_strides().vec();
  sizes[d] = ceil_div(until - from, step);
  strides[d] = stepped_stride(strides[d], step);
  Tensor v = make_view(self, sizes, strides, offset_of(self, d, from));
  if (!recording(self)) return v;
  return record(
      "SliceBackward0", {self}, std::move(v),
      saves_nothing([old = self.sizes().vec(), d, from, until, step](const Node&, const Tensor& g) {
        return placed("SliceBackward0", g, old, [d, from, until, step](const Tensor& t) {
          return slice(t, static_cast<int64_t>(d), from, until, step);
        });
      }),
      [&](Arguments& to) { to("dim", d), to("start", from), to("end", until), to("step", step); });
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
  capture::refuse("narrow", "the host reads where to begin; give a number");
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
                saves_nothing([old = self.sizes().vec(), d, index](const Node&, const Tensor& g) {
                  return placed("SelectBackward0", g, old, [d, index](const Tensor& t) {
                    return select(t, static_cast<int64_t>(d), index);
                  });
                }),
                [&](Arguments& to) { to("dim", d), to("index", index); });
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
  int64_t step;  // overflows for at most one position: as in stepped_stride
  if (__builtin_add_overflow(strides[a], strides[b], &step)) step = strides[a];
  for (size_t d : {std::max(a, b), std::min(a, b)}) {
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(d));
    strides.erase(strides.begin() + static_cast<ptrdiff_t>(d));
  }
  sizes.push_back(length);
  strides.push_back(step);
  Tensor v = make_view(self, sizes, strides, first);
  if (!recording(self)) return v;
  return record(
      "DiagonalBackward0", {self}, std::move(v),
      saves_nothing([old = self.sizes().vec(), offset, dim1, dim2](const Node&, const Tensor& g) {
        return placed("DiagonalBackward0", g, old, [offset, dim1, dim2](const Tensor& t) {
          return diagonal(t, offset, dim1, dim2);
        });
      }));
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
                saves_nothing([old = this->sizes().vec(), d, windows, size, step](const Node&,
                                                                                  const Tensor& g) {
                  if (old.empty()) return g.sum();
                  // Add each window's elements at their original positions.
                  const TensorOptions on = TensorOptions().dtype(kLong).device(g.device());
                  const Tensor first = arange(windows, on).mul(step).unsqueeze(1);
                  const Tensor places = (first + arange(size, on)).flatten();
                  const Tensor laid = g.movedim(-1, d + 1).flatten(d, d + 1);
                  return index_add_zeros(old, d, places, laid);
                }));
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/shape/view_parts.inc"

}  // namespace ramet
