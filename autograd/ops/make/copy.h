// Copies, conversions, fills.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// A copy with its own memory. Preserve (the default) keeps a dense layout. Differentiable.
RAMET_API Tensor clone(const Tensor& self, std::optional<MemoryFormat> format = std::nullopt);
/// The methods of these names, as functions:
inline Tensor detach(const Tensor& self) { return self.detach(); }
inline Tensor& detach_(Tensor& self) { return self.detach_(); }
inline Tensor& fill_(Tensor& self, const Scalar& value) { return self.fill_(value); }
inline Tensor& fill_(Tensor& self, const Tensor& value) { return self.fill_(value); }
inline Tensor& zero_(Tensor& self) { return self.zero_(); }
inline const Tensor& resize_as_(const Tensor& self, const Tensor& the_template,
                                std::optional<MemoryFormat> memory_format = std::nullopt) {
  return self.resize_as_(the_template, memory_format);
}
/// A 0-dim tensor of the number's type (double, int64 or bool) that counts as a number in
/// promotion.
RAMET_API Tensor scalar_to_tensor(const Scalar& value, Device device = Device(kCPU, 0));

namespace autograd {
/// dst = src, element by element: any strides, dtypes and CPU devices; src broadcasts to dst's
/// sizes. Adds no history and raises no version. REQUIRES: dst does not overlap itself; shapes
/// broadcast (the callers check that).
RAMET_API void copy_values(const TensorBase& dst, const TensorBase& src);
/// dst = src, with the dimensions reversed that have a bit in `dims`. Both have one shape, dtype
/// and device. Adds no history and raises no version. REQUIRES: they do not overlap.
RAMET_API void copy_reversed(const TensorBase& dst, const TensorBase& src, uint64_t dims);
/// copy_values() that does not wait where one side is in pinned memory and the other on a GPU, and
/// the host has nothing to convert. See Note [Copies that do not block the host] in
/// runtime/tensor/pinned.h. `fresh`: nothing has used dst since it was allocated.
RAMET_API void copy_values_later(const TensorBase& dst, const TensorBase& src, bool fresh);
/// An Error unless the number fits in this dtype. Fractions are cut off, and -1 is 255 as uint8.
/// But a number beyond the dtype's range does not wrap around: it is an Error.
RAMET_API void check_fits(const Scalar& value, ScalarType dtype);
/// Sets every element of dst to value, which must fit. Adds no history and raises no version.
RAMET_API void fill_values(const TensorBase& dst, const Scalar& value);
/// The value of a one-element tensor.
RAMET_API Scalar value_of(const TensorBase& t);
}  // namespace autograd

}  // namespace ramet
