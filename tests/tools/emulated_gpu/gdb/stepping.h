#pragma once
#include "runtime/cuda/gpu.h"

namespace ramet::testing {

/// x[8 b + i] = 8 b + 7 - i, in two blocks b.
cudaError_t turn_in_blocks_of_8(int* x, cudaStream_t stream);

}  // namespace ramet::testing
