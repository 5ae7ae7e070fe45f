// How a view is made and tracked. The view operations themselves are in autograd/ops/shape/view.h.
#pragma once
#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

/// A tensor over x's memory with another geometry (`offset` in elements from x's first). Notes its
/// base when grad mode is on, so that an in-place operation finds it. Adds no history: `record`
/// does. REQUIRES: x has no internal layout.
RAMET_API Tensor make_view(const Tensor& x, IntArrayRef sizes, IntArrayRef strides, int64_t offset);

/// `v`, which shows memory of x's storage from `offset` elements behind x's first on: with the
/// history of that look, where x has one. What x does not show (v may reach further) has no
/// gradient; where x shows a place several times, each time has an equal part of its gradient.
RAMET_API Tensor record_strided(const Tensor& x, Tensor v, int64_t offset);

/// Is every element that v shows, `offset` elements behind x's first on, surely one of x's?
RAMET_API bool shown_by(const Tensor& x, const Tensor& v, int64_t offset);

/// Makes a view a tensor of its own where nobody else has its base: what operations return whose
/// last step is a look at what they have made. REQUIRES: x's history is not of the base, or goes.
RAMET_API void leave_lonely_base(const Tensor& x);

}  // namespace autograd
}  // namespace ramet
