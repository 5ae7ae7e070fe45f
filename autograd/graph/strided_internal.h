// Views of memory by sizes and strides, as operations with adjoints: the history of views and of
// writes through them. For autograd/graph.
#pragma once
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// Selects elements of some memory. The owner of a Geometry defines where the offset counts from.
struct Geometry {
  std::vector<int64_t> sizes, strides;
  int64_t offset;
};
inline Geometry geometry_of(const TensorBase& t, int64_t offset) {
  return {t.sizes().vec(), t.raw_strides().vec(), offset};
}

/// The elements of x that the geometry selects.
Tensor gathered(const Tensor& x, const Geometry& at);
/// g copied to the strides of `like`, so that a geometry relative to `like` is valid for it.
Tensor laid_out(const Tensor& g, const Geometry& like);
/// A copy of g in which the selected elements are zero: the gradient that an overwritten base
/// passes on. It is its own adjoint.
Tensor zero_at(const Tensor& g, const Geometry& at);

}  // namespace autograd
}  // namespace ramet
