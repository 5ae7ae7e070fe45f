// Positions of 64 bits, as operands need them that have more elements than a test has memory for.
#pragma once
#include "runtime/cuda/indices.h"

namespace ramet::kernels {

/// While it lives, kernels compute all positions in 64 bits.
struct WidePositions {
  WidePositions() { ::ramet::cuda::set_narrow_indices(false); }
  ~WidePositions() { ::ramet::cuda::set_narrow_indices(true); }
  WidePositions(const WidePositions&) = delete;
  WidePositions& operator=(const WidePositions&) = delete;
};

}  // namespace ramet::kernels
