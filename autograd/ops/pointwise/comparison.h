// Comparisons and logic: the result is bool and carries no gradient. They broadcast and promote, as
// LibTorch's functions of the same names. A NaN is unequal to everything. Out forms (resized where
// the shape differs) take any dtype and write 0 and 1, as the in-place methods do.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/pointwise/comparison.inc"

/// Do both have the same sizes?
inline bool is_same_size(const Tensor& self, const Tensor& other) {
  return self.is_same_size(other);
}
/// Is its element not 0? An Error unless it has exactly one element. Waits for its value.
inline bool is_nonzero(const Tensor& self) { return self.is_nonzero(); }

}  // namespace ramet
