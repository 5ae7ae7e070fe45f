// How a view is made and tracked. The view operations themselves are in autograd/ops/view.h.
#pragma once
#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

/// A tensor over x's memory with another geometry (`offset` in elements from x's first). Notes its
/// base when grad mode is on, so that an in-place operation finds it. Adds no history: `record`
/// does. REQUIRES: x has no internal layout.
RAMET_API Tensor make_view(const Tensor& x, IntArrayRef sizes, IntArrayRef strides, int64_t offset);

/// The elements of `base` that the geometry selects, as a recorded operation: adjoint of
/// scatter_strided.
RAMET_API Tensor as_strided(const Tensor& base, IntArrayRef sizes, IntArrayRef strides,
                            int64_t offset);

}  // namespace autograd
}  // namespace ramet
