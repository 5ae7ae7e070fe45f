// How a view is made and tracked. The view operations themselves are in autograd/ops/shape/view.h.
#pragma once
#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

/// A tensor that shares x's memory with another geometry (`offset` in elements from x's first).
/// Notes its base when grad mode is on, so that an in-place operation finds it. Adds no history:
/// `record` does. REQUIRES: x has no internal layout.
RAMET_API Tensor make_view(const Tensor& x, IntArrayRef sizes, IntArrayRef strides, int64_t offset);

/// Gives `v` the history of a view of x, where x has one. `v` shows memory of x's storage, from
/// `offset` elements after x's first. An element that x does not have (v may reach further) has no
/// gradient. Where several elements of x share a memory location, each gets an equal part of the
/// gradient.
RAMET_API Tensor record_strided(const Tensor& x, Tensor v, int64_t offset);

/// Is every element of v, which begins `offset` elements after x's first, surely one of x's?
RAMET_API bool shown_by(const Tensor& x, const Tensor& v, int64_t offset);

/// Makes a view a tensor of its own where nothing else refers to its base. For operations
/// that end with a view of their own result. REQUIRES: x's history is not of the base, or is
/// replaced.
RAMET_API void leave_lonely_base(const Tensor& x);

}  // namespace autograd
}  // namespace ramet
