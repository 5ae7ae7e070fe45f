// Looks at memory by sizes and strides, as operations with adjoints: what views and what is written
// through them have as history. For autograd/graph.
#pragma once
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// Elements of some memory; the offset counts from wherever the holder of it says.
struct Geometry {
  std::vector<int64_t> sizes, strides;
  int64_t offset;
};
inline Geometry geometry_of(const TensorBase& t, int64_t offset) {
  return {t.sizes().vec(), t.raw_strides().vec(), offset};
}

/// The elements of x that the geometry selects.
Tensor gathered(const Tensor& x, const Geometry& at);
/// g with the strides of `like`, for which a geometry relative to `like` holds.
Tensor laid_out(const Tensor& g, const Geometry& like);
/// A copy of g with the selected elements zero: what an overwritten part of a base passes on. Its
/// own adjoint.
Tensor zero_at(const Tensor& g, const Geometry& at);

}  // namespace autograd
}  // namespace ramet
