#include "autograd/ops/matrix/diagonals.h"

#include <algorithm>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  check_defined("diag_embed", self);
  const int64_t rank = self.dim() + 1, a = wrap_dim("diag_embed", dim1, rank),
                b = wrap_dim("diag_embed", dim2, rank);
  RAMET_CHECK(a != b, "diag_embed", "diagonal dimensions cannot be identical: got ", dim1, " and ",
              dim2);
  const int64_t extent =
      checked_add("diag_embed", "extent", self.size(-1),
                  offset < 0 ? checked_mul("diag_embed", "offset", offset, -1) : offset);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.pop_back();
  for (const int64_t d : {std::min(a, b), std::max(a, b)})
    sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(d), extent);
  Tensor out(TensorBase::empty(sizes, self.scalar_type(), self.device()));
  {
    const NoGradGuard off;
    out.zero_();
    diagonal(out, offset, a, b).copy_(self.shallow());
  }
  if (!recording(self)) return out;
  return record("DiagEmbedBackward0", {self}, std::move(out),
                [offset, a, b](const Node&, const Tensor& g) { return diagonal(g, offset, a, b); });
}

Tensor diag(const Tensor& self, int64_t offset) {
  check_defined("diag", self);
  RAMET_CHECK(self.dim() == 1 || self.dim() == 2, "diag", "Supports 1D or 2D tensors. Got ",
              self.dim(), "D");
  return self.dim() == 1 ? diag_embed(self, offset, 0, 1)
                         : diagonal(self, offset, 0, 1).clone(MemoryFormat::Contiguous);
}

Tensor diagflat(const Tensor& self, int64_t offset) {
  check_defined("diagflat", self);
  return diag_embed(self.reshape(-1), offset, 0, 1);
}

Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  check_defined("diagonal_scatter", self);
  check_defined("diagonal_scatter", src);
  Tensor out;
  {
    const NoGradGuard off;
    const Tensor old = self.shallow();
    const std::vector<int64_t> place = diagonal(old, offset, dim1, dim2).sizes().vec();
    RAMET_CHECK(src.sizes() == place, "diagonal_scatter",
                "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
                ", slice size = ", IntArrayRef(place));
    out = old.clone(MemoryFormat::Contiguous);
    diagonal(out, offset, dim1, dim2).copy_(src.shallow());
  }
  if (!recording(self, src)) return out;
  return record(
      "DiagonalScatterBackward0", {self, src}, std::move(out),
      saves_nothing([m = Meta(src), offset, dim1, dim2](const Node& node, const Tensor& g) {
        std::array<Tensor, 2> r;
        if (node.needs(0)) {
          Tensor none(TensorBase::empty(m.shape(), g.scalar_type(), g.device()));
          fill_values(none, 0);
          r[0] = diagonal_scatter(g, none, offset, dim1, dim2);
        }
        if (node.needs(1)) r[1] = m.reduce(diagonal(g, offset, dim1, dim2));
        return r;
      }));
}

Tensor& Tensor::fill_diagonal_(const Scalar& value, bool wrap) const {
  const char* op = "fill_diagonal_";
  const Tensor& x = settled(op, *this);
  RAMET_CHECK(x.dim() >= 2, op, "dimensions must larger than 1: got ", describe(x));
  for (int64_t d = 1; x.dim() > 2 && d < x.dim(); ++d)
    RAMET_CHECK(x.size(d) == x.size(0), op, "all dimensions of input must be of equal length: got ",
                describe(x));
  check_inplace(op, x);
  check_fits(value, scalar_type());
  const int64_t rows = x.size(0), columns = x.size(1);
  if (x.numel() == 0) {
    wrote(op, x);
    return as_mutable(x);
  }
  if (wrap && x.dim() == 2 && rows > columns + 1) {
    const TensorOptions on = TensorOptions(kLong).device(device());
    const Tensor row = arange(rows, on).remainder(columns + 1).unsqueeze(1);
    return x.masked_fill_(row.eq(arange(columns, on)), value);
  }
  int64_t step = 0;  // for a single position it is never used
  for (int64_t d = 0; d < x.dim(); ++d)
    step = checked_add(op, "stride", step, x.size(d) == 1 ? 0 : x.stride(d));
  x.as_strided(std::min(rows, columns), step).fill_(value);
  return as_mutable(x);
}

static Tensor trace_body(const Tensor& self) {
  check_defined("trace", self);
  RAMET_CHECK(self.dim() == 2, "trace", "expected a matrix, but got tensor with dim ", self.dim());
  RAMET_CHECK(self.scalar_type() != kBool, "trace", "not implemented for bool: got ",
              describe(self));
  return diagonal(self, 0, 0, 1).sum();
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/matrix/diagonals.inc"

}  // namespace ramet
