#include "autograd/ops/matrix/triangle.h"

#include <algorithm>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/rearrange.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

// Which triangle an operation keeps.
struct Triangle {
  bool upper;
  const char *name, *in_place, *node;
};
const Triangle kUpper{true, "triu", "triu_", "TriuBackward0"},
    kLower{false, "tril", "tril_", "TrilBackward0"};

void check(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(x.dim() >= 2, op, "input tensor must have at least 2 dimensions: got ", describe(x));
}

// out = x with zeros outside the triangle; both may be one tensor.
void write(const Triangle& t, const Tensor& out, const Tensor& x, int64_t diagonal) {
  if (x.numel() == 0) return;
  const int64_t rows = x.size(-2), cols = x.size(-1), k = std::clamp(diagonal, -rows, cols);
  const TensorOptions on = TensorOptions(kLong).device(x.device());
  const Tensor columns = arange(cols, on), border = arange(rows, on).add(k).unsqueeze(1),
               outside = t.upper ? columns.lt(border) : columns.gt(border);
  pointwise_into(RAMET_POINTWISE(where), out, compute_type(x.scalar_type()), outside, Scalar(0), x);
}

Tensor kept(const Triangle& t, const Tensor& x, int64_t diagonal) {
  check(t.name, x);
  Tensor out = empty_like_layout(x, x.scalar_type());
  write(t, out, x, diagonal);
  if (!recording(x)) return out;
  return record(t.node, {x}, std::move(out),
                [&t, diagonal](const Node&, const Tensor& g) { return kept(t, g, diagonal); });
}

Tensor& keep(const Triangle& t, const Tensor& x, int64_t diagonal) {
  check(t.in_place, x);
  check_inplace(t.in_place, x);
  write(t, x, x, diagonal);
  wrote(t.in_place, x);
  if (recording(x)) {
    record_inplace(t.node, {x}, x,
                   [&t, diagonal](const Node&, const Tensor& g) { return kept(t, g, diagonal); });
  }
  return as_mutable(x);
}

// ---- positions ----------------------------------------------------------------------------------

// Rows first to last - 1 have elements in the triangle; `count` elements in all.
struct Extent {
  int64_t first, last, count;
};
Extent extent(const char* op, bool upper, int64_t rows, int64_t cols, int64_t k) {
  using Wide = __int128;
  Wide first = 0, last = rows, count;
  if (upper) {  // row r has cols - max(0, r + k)
    last = std::clamp<Wide>(Wide{cols} - k, 0, rows);
    const Wide whole = std::clamp<Wide>(-k, 0, last), cut = last - whole;
    count = last * cols - (cut * (whole + last - 1) / 2 + cut * k);
  } else {  // row r has min(cols, r + k + 1)
    first = std::clamp<Wide>(-k, 0, rows);
    const Wide full = std::clamp<Wide>(Wide{cols} - k, first, rows), cut = full - first;
    count = Wide{cols} * (rows - full) + cut * (first + full - 1) / 2 + cut * (Wide{k} + 1);
  }
  if (cols == 0) last = first, count = 0;
  RAMET_CHECK(count <= INT64_MAX / 2, op, "elements of the triangle: got ", rows, " x ", cols,
              ", more than an int64 holds");
  return {static_cast<int64_t>(first), static_cast<int64_t>(last), static_cast<int64_t>(count)};
}

Tensor positions(const char* op, bool upper, int64_t rows, int64_t cols, int64_t offset,
                 const TensorOptions& options) {
  RAMET_CHECK(rows >= 0, op, "row must be non-negative, got ", rows);
  RAMET_CHECK(cols >= 0, op, "col must be non-negative, got ", cols);
  const ScalarType dtype = options.has_dtype() ? options.dtype() : kLong;
  RAMET_CHECK(dtype == kLong || dtype == kInt, op, "not implemented for ", name_of(dtype),
              ": expected int64 or int32");
  RAMET_CHECK(!options.requires_grad(), op,
              "Only Tensors of floating point dtype can require gradients");
  const int64_t k = std::clamp(offset, -rows, cols);
  const Extent e = extent(op, upper, rows, cols, k);
  const TensorOptions on = options.dtype(kLong);
  // For each row: the first column that counts, and how many.
  const Tensor row = arange(e.first, e.last, on),
               from = upper ? row.add(k).clamp_min(0) : zeros_like(row),
               counts = upper ? from.neg().add(cols) : row.add(k).add(1).clamp_max(cols),
               nth = repeated_positions(counts, e.count),
               before = from.sub(counts.cumsum(0)).add(counts);
  const Tensor column = before.index_select(0, nth).add(arange(e.count, on));
  return stack({row.index_select(0, nth), column}).to(dtype);
}

Tensor& positions_out(const char* op, const char* name, bool upper, Tensor& out, int64_t rows,
                      int64_t cols, int64_t offset) {
  return computed_out(op, out, false, OutType::kSame, [&] {
    return positions(name, upper, rows, cols, offset,
                     TensorOptions(out.scalar_type()).device(out.device()));
  });
}

}  // namespace

Tensor triu(const Tensor& self, int64_t diagonal) { return kept(kUpper, self, diagonal); }
Tensor tril(const Tensor& self, int64_t diagonal) { return kept(kLower, self, diagonal); }
Tensor& Tensor::triu_(int64_t diagonal) const { return keep(kUpper, *this, diagonal); }
Tensor& Tensor::tril_(int64_t diagonal) const { return keep(kLower, *this, diagonal); }

Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  return positions("triu_indices", true, row, col, offset, options);
}
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  return positions("tril_indices", false, row, col, offset, options);
}
Tensor& triu_indices_out(Tensor& out, int64_t row, int64_t col, int64_t offset) {
  return positions_out("triu_indices_out", "triu_indices", true, out, row, col, offset);
}
Tensor& tril_indices_out(Tensor& out, int64_t row, int64_t col, int64_t offset) {
  return positions_out("tril_indices_out", "tril_indices", false, out, row, col, offset);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/matrix/triangle.inc"

}  // namespace ramet
