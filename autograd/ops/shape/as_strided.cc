// Any view of a tensor's storage, by sizes and strides, and a few views that are composed of
// others.
#include "autograd/graph/view.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

int64_t width(const Tensor& x) { return static_cast<int64_t>(item_size(x.scalar_type())); }
// The number of elements of x's storage.
int64_t held(const Tensor& x) { return static_cast<int64_t>(x.storage_impl()->bytes) / width(x); }

// The start of a view of x's storage, from x's first element. An Error unless the view stays
// inside.
int64_t offset_from(const char* op, const Tensor& x, IntArrayRef sizes, IntArrayRef strides,
                    std::optional<int64_t> storage_offset) {
  RAMET_CHECK(sizes.size() == strides.size(), op, "mismatch in length of strides and shape: got ",
              sizes, " and ", strides);
  const int64_t own = x.storage_offset(), first = storage_offset.value_or(own);
  RAMET_CHECK(first >= 0, op, "invalid storage offset ", first, ", expected 0 or more");
  for (size_t d = 0; d < sizes.size(); ++d) {
    RAMET_CHECK(sizes[d] >= 0, op, "sizes: got ", sizes, ", expected none below 0");
    RAMET_CHECK(strides[d] >= 0, op, "Negative strides are not supported, got strides: ", strides);
  }
  const int64_t extent = strided_extent(sizes, strides, first);
  if (extent == 0) return 0;
  RAMET_CHECK(extent > 0 && extent <= held(x), op, "sizes ", sizes, ", strides ", strides,
              " and storage offset ", first, " are out of bounds for a storage of ", held(x),
              " elements");
  return first - own;
}

Tensor look(const Tensor& x, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  Tensor v = make_view(x, sizes, strides, offset);
  if (v->base && !shown_by(x, v, offset)) v->set(TensorImpl::kNoGradView, true);
  return record_strided(x, std::move(v), offset);
}

}  // namespace

Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                  std::optional<int64_t> storage_offset) {
  settled("as_strided", self);
  return look(self, size, stride, offset_from("as_strided", self, size, stride, storage_offset));
}
const Tensor& as_strided_(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset) {
  check_defined("as_strided_", self);
  return self.as_strided_(size, stride, storage_offset);
}

Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntArrayRef size,
                          IntArrayRef stride, std::optional<int64_t> storage_offset) {
  const char* op = "as_strided_scatter";
  settled(op, self);
  check_defined(op, src);
  const int64_t offset = offset_from(op, self, size, stride, storage_offset);
  RAMET_CHECK(src.sizes() == size, op,
              "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
              ", slice size = ", size);
  for (size_t d = 0; d < size.size(); ++d)
    RAMET_CHECK(stride[d] != 0 || size[d] <= 1 || src.numel() == 0, op,
                "unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory location. Got a slice of size ",
                size, " with strides ", stride);
  check_same_device(op, self, src);
  // Work on a copy of the whole storage, as the view may reach outside of self's elements. Where
  // self has elements several times, work on a row-major copy.
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self->strides()[d] != 0 || self->sizes()[d] <= 1) continue;
    const Tensor copy = self.clone(MemoryFormat::Contiguous);
    as_strided(copy, size, stride, storage_offset).copy_(src);
    return copy;
  }
  const int64_t own = self.storage_offset();
  const Tensor all = look(self, held(self), 1, -own).clone();
  look(all, size, stride, own + offset).copy_(src);
  return look(all, self.sizes(), self.raw_strides(), own);
}

// ---- methods ------------------------------------------------------------------------------------

namespace {
Tensor matrix_transposed(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(x.dim() != 1, op, "only supported on matrices or batches of matrices: got ",
              describe(x));
  return x.dim() == 0 ? x.permute({}) : x.transpose(-2, -1);
}
}  // namespace
Tensor Tensor::mT() const { return matrix_transposed("mT", *this); }
Tensor Tensor::mH() const { return matrix_transposed("mH", *this); }
Tensor adjoint(const Tensor& self) { return matrix_transposed("adjoint", self); }

Tensor Tensor::numpy_T() const {
  check_defined("numpy_T", *this);
  std::vector<int64_t> reversed;
  for (int64_t d = dim(); d-- > 0;) reversed.push_back(d);
  return permute(reversed);
}

Tensor Tensor::sum_to_size(IntArrayRef size) const {
  const char* op = "sum_to_size";
  check_defined(op, *this);
  const size_t rank = static_cast<size_t>(dim());
  bool fits = size.size() <= rank;
  for (size_t i = 1; fits && i <= size.size(); ++i) {
    const int64_t to = size[size.size() - i];
    fits = to == 1 || to == sizes()[rank - i];
  }
  RAMET_CHECK(fits, op, "size ", size, " is not expandable to size ", sizes());
  return size.empty() ? sum() : sum_to(*this, size);  // for integers an int64 then, as in LibTorch
}

}  // namespace ramet
