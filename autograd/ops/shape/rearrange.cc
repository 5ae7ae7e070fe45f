#include "autograd/ops/shape/rearrange.h"

#include "autograd/graph/layout.h"
#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

Tensor tile(const Tensor& self, IntArrayRef dims) {
  check_defined("tile", self);
  std::vector<int64_t> repeats = dims.vec();
  while (static_cast<int64_t>(repeats.size()) < self.dim()) repeats.insert(repeats.begin(), 1);
  return repeat(self, repeats);
}

// ---- repeat_interleave --------------------------------------------------------------------------

namespace autograd {

// Puts a mark where each index begins; the running sum of the marks is the index.
Tensor repeated_positions(const Tensor& repeats, int64_t sum) {
  const TensorOptions on = TensorOptions(kLong).device(repeats.device());
  Tensor marks(TensorBase::empty(checked_add("repeat_interleave", "sum of repeats", sum, 1), kLong,
                                 repeats.device()));
  fill_values(marks, 0);
  // Clamp to the marks, whatever the repeats are: callers that may pass a wrong sum report it.
  const Tensor begins = repeats.cumsum(0).sub(repeats).clamp(0, sum);
  marks.index_add_(0, begins, ones(repeats.sizes(), on));
  return marks.narrow(0, 0, sum).cumsum(0).sub(1);
}

}  // namespace autograd

namespace {

constexpr const char* kInterleave = "repeat_interleave";

void check_repeats(const Tensor& repeats) {
  check_defined(kInterleave, repeats);
  RAMET_CHECK(is_integral(repeats.scalar_type(), /*includeBool=*/false), kInterleave,
              "repeats has to be a tensor of integers: got ", describe(repeats));
}

// The tensor to repeat: self, or without `dim` self flattened.
Tensor source(const Tensor& self, std::optional<int64_t> dim) {
  check_defined(kInterleave, self);
  if (dim && self.dim() == 0)
    throw IndexError(detail::join("[", kInterleave, "] Dimension specified as ", *dim,
                                  " but tensor has no dimensions"));
  return dim ? self : self.flatten();
}

}  // namespace

Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  check_repeats(repeats);
  RAMET_CHECK(repeats.dim() == 1, kInterleave, "only accept 1D vector as repeat: got ",
              describe(repeats));
  RAMET_CHECK(!output_size || *output_size >= 0, kInterleave, "output_size: got ", *output_size,
              ", expected 0 or more");
  const Tensor counts = repeats.to(kLong);
  report_unless(kInterleave, counts.ge(0), counts, "repeats can not be negative");
  int64_t sum = output_size.value_or(0);
  if (counts.numel() == 0) {
    RAMET_CHECK(sum == 0, kInterleave, "allocated size does not match required size: got ", sum,
                ", expected 0");
  } else {
    const Tensor ends = counts.cumsum(0);
    report_where(kInterleave, ends.lt(0), "the sum of repeats is more than an int64 holds");
    const Tensor last = ends.narrow(0, counts.numel() - 1, 1);
    if (output_size) {
      report_where(kInterleave, last.ne(sum), "allocated size does not match required size");
    } else {
      capture::refuse(kInterleave, "the size of the result depends on values; give output_size");
      sum = last.item<int64_t>();
    }
  }
  return repeated_positions(counts, sum).to(repeats.scalar_type());
}
Tensor& repeat_interleave_out(Tensor& out, const Tensor& repeats,
                              std::optional<int64_t> output_size) {
  return computed_out("repeat_interleave_out", out, false, OutType::kSame,
                      [&] { return repeat_interleave(repeats, output_size); });
}

Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  const Tensor x = source(self, dim);
  check_repeats(repeats);
  check_same_device(kInterleave, self, repeats);
  const int64_t d = wrap_dim(kInterleave, dim.value_or(0), x.dim());
  RAMET_CHECK(repeats.dim() <= 1, kInterleave, "repeats must be 0-dim or 1-dim tensor: got ",
              describe(repeats));
  const bool one = repeats.numel() == 1;
  RAMET_CHECK(one || repeats.size(0) == x.size(d), kInterleave,
              "repeats must have the same size as input along dim, but got repeats.size(0) = ",
              repeats.numel(), " and input.size(", d, ") = ", x.size(d));
  const Tensor counts = one ? repeats.reshape({1}).expand({x.size(d)}) : repeats;
  return x.index_select(d, repeat_interleave(counts.to(kLong), output_size));
}

Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  const Tensor x = source(self, dim);
  const int64_t d = wrap_dim(kInterleave, dim.value_or(0), x.dim());
  RAMET_CHECK(repeats >= 0, kInterleave, "Repeats must be non-negative: got ", repeats);
  std::vector<int64_t> sizes = x.sizes().vec();
  int64_t& extent = sizes[static_cast<size_t>(d)];
  extent = checked_mul(kInterleave, "size", repeats, extent);
  RAMET_CHECK(!output_size || *output_size == extent, kInterleave, "Invalid output_size, expected ",
              extent, " but got ", *output_size);
  std::vector<int64_t> apart = x.sizes().vec();
  apart.insert(apart.begin() + static_cast<ptrdiff_t>(d) + 1, repeats);
  return x.unsqueeze(d + 1).expand(apart).clone(MemoryFormat::Contiguous).reshape(sizes);
}

// ---- roll, rot90, flips -------------------------------------------------------------------------

Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  check_defined("roll", self);
  RAMET_CHECK(!shifts.empty(), "roll", "`shifts` required");
  const bool flat = dims.empty() && shifts.size() == 1;
  RAMET_CHECK(flat || shifts.size() == dims.size(), "roll",
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  if (self.numel() == 0) return self.clone();  // with any dims, as LibTorch
  std::vector<int64_t> places, back;
  for (size_t i = 0; i < shifts.size(); ++i) {
    if (!flat && self.dim() == 0)
      throw IndexError(
          detail::join("[roll] Dimension specified as ", dims[i], " but tensor has no dimensions"));
    if (!flat) places.push_back(wrap_dim("roll", dims[i], self.dim()));
    const int64_t n = flat ? self.numel() : self.size(places.back()), s = shifts[i] % n;
    back.push_back(s > 0 ? n - s : -s);  // the first element now; a roll by it undoes this
  }
  Tensor out;
  {
    const NoGradGuard off;
    out = flat ? self.shallow().reshape(-1) : self.shallow();
    for (size_t i = 0; i < back.size(); ++i) {
      const int64_t d = flat ? 0 : places[i], n = out.size(d);
      if (back[i] > 0)
        out = cat({out.narrow(d, back[i], n - back[i]), out.narrow(d, 0, back[i])}, d);
    }
    if (out.may_overlap(self)) out = out.clone(MemoryFormat::Contiguous);
    if (flat) out = Tensor(out.reshape(self.sizes()).shallow());
  }
  if (!recording(self)) return out;
  return record("RollBackward0", {self}, std::move(out),
                saves_nothing([back, places](const Node&, const Tensor& g) {
                  return roll(g, back, places);
                }));
}

Tensor rot90(const Tensor& self, int64_t k, IntArrayRef dims) {
  check_defined("rot90", self);
  RAMET_CHECK(dims.size() == 2, "rot90",
              "expected total rotation dims == 2, but got dims = ", dims.size());
  RAMET_CHECK(self.dim() >= 2, "rot90",
              "expected total dims >= 2, but got total dims = ", self.dim());
  const int64_t a = wrap_dim("rot90", dims[0], self.dim()),
                b = wrap_dim("rot90", dims[1], self.dim());
  RAMET_CHECK(a != b, "rot90", "expected rotation dims to be different, but got dim0 = ", dims[0],
              " and dim1 = ", dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1: return flip(self, {b}).transpose(a, b);
    case 2: return flip(self, {a, b});
    case 3: return flip(self, {a}).transpose(a, b);
    default: return self.clone(MemoryFormat::Contiguous);
  }
}

Tensor flip(const Tensor& self, IntArrayRef dims) {
  check_defined("flip", self);
  uint64_t turned = 0;
  for (int64_t dim : dims) {
    const int64_t d = wrap_dim("flip", dim, self.dim());
    RAMET_CHECK(!(turned >> d & 1), "flip", "dim ", dim,
                " appears multiple times in the list of dims: got ", dims);
    turned |= uint64_t{1} << d;
  }
  if (self.dim() == 0) turned = 0;
  Tensor y = empty_like_layout(self, self.scalar_type());
  copy_reversed(y, self, turned);
  if (!recording(self)) return y;
  return record(
      "FlipBackward0", {self}, std::move(y),
      saves_nothing([dims = dims.vec()](const Node&, const Tensor& g) { return flip(g, dims); }));
}
Tensor fliplr(const Tensor& self) {
  check_defined("fliplr", self);
  RAMET_CHECK(self.dim() >= 2, "fliplr", "Input must be >= 2-d: got ", describe(self));
  return flip(self, {1});
}
Tensor flipud(const Tensor& self) {
  check_defined("flipud", self);
  RAMET_CHECK(self.dim() >= 1, "flipud", "Input must be >= 1-d: got ", describe(self));
  return flip(self, {0});
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/shape/rearrange.inc"

}  // namespace ramet
