// Running sums over the threads of a block.
#pragma once
#include "kernels/rows/rows_gpu.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// The sum of the values of all threads before this one; `all` gets the sum of the block.
template <class Sum> __device__ Sum sum_before(Sum value, Sum* shared, Sum& all) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  Sum sum = value;
  for (int step = 1; step < kWarp; step *= 2) {
    const Sum other = __shfl_up_sync(0xffffffffu, sum, static_cast<unsigned>(step));
    if (lane >= step) sum += other;
  }
  Sum before = __shfl_up_sync(0xffffffffu, sum, 1u);
  if (lane == 0) before = 0;
  __syncthreads();  // what is in `shared` has been read
  if (lane == kWarp - 1) shared[warp] = sum;
  __syncthreads();
  Sum warps = 0;
  all = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) warps = all;
    all += shared[w];
  }
  return warps + before;
}

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
