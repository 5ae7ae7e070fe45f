// Sorting numbers, for fronts. Private to autograd/ops.
#pragma once
#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// The positions of the elements of each row of `keys`, smallest element first, equal ones in their
/// order. keys: int64 [rows, n], dense, compared as unsigned numbers below 2^bits; it is sorted
/// itself. The result is int64 [rows, n].
RAMET_API Tensor sorted_positions(const Tensor& keys, int bits = 64);

}  // namespace autograd
}  // namespace ramet
