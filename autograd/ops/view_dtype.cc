// A tensor's bytes as elements of another dtype.
#include "autograd/ops/front/common.h"
#include "autograd/ops/view.h"
#include "runtime/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

// LibTorch's rules: `what` must be a multiple of the ratio of the item sizes.
void check_divisible(const Tensor& x, ScalarType dtype, const char* what, int64_t got,
                     int64_t ratio) {
  RAMET_CHECK(got % ratio == 0, "view", what, " must be divisible by ", ratio, " to view ",
              name_of(x.scalar_type()), " as ", name_of(dtype),
              " (different element sizes), but got ", got);
}

}  // namespace

// A leaf over the same storage and versions, as detach() makes one: bytes have no derivative.
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

}  // namespace ramet
