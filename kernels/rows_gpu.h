// Rows on a GPU: a group of kGroup threads, a warp or a whole block, has a row. For .cu files only.
#pragma once
#include "kernels/gpu_elements.h"
#include "kernels/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/row_tasks.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

constexpr int kWarp = 32, kWarps = kThreads / kWarp;
/// Rows up to this length have a warp each.
constexpr int64_t kWarpColumns = 1024;

struct Plus {
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct Larger {
  template <class T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

/// op over the values of a group, for all its threads, in an order that depends on kGroup alone.
/// REQUIRES: op is commutative; `shared` holds kWarps values; all threads of the block come here.
template <int kGroup, class T, class Op> __device__ T over_group(T value, const Op& op, T* shared) {
  for (int step = kWarp / 2; step > 0; step /= 2)
    value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
  if constexpr (kGroup == kWarp) return value;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  __syncthreads();  // what is in `shared` has been read
  if (threadIdx.x % kWarp == 0) shared[warp] = value;
  __syncthreads();
  T all = shared[0];
  for (int w = 1; w < kWarps; ++w) all = op(all, shared[w]);
  return all;
}

/// Calls f(row, place) for every row, place in [0, kGroup); with `row` < 0 where a group has none
/// left and goes along for the sake of over_group().
template <int kGroup, class F> __device__ void over_rows(int64_t rows, const F& f) {
  constexpr int kRowsAtOnce = kThreads / kGroup;
  const int place = static_cast<int>(threadIdx.x) % kGroup;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kRowsAtOnce; first < rows;
       first += static_cast<int64_t>(gridDim.x) * kRowsAtOnce) {
    const int64_t row = first + threadIdx.x / kGroup;
    f(row < rows ? row : -1, place);
  }
}

/// Starts a kernel of over_rows: the one for warps or the one for blocks.
template <class... Parameters, class... Arguments>
void start_rows(const char* name, Stream where, int64_t rows, int64_t cols,
                void (*by_warp)(Parameters...), void (*by_block)(Parameters...),
                Arguments&&... arguments) {
  const bool warps = cols <= kWarpColumns;
  const int64_t blocks = warps ? ceil_div(rows, kWarps) : rows;
  start(name, where, dim3(static_cast<unsigned>(imin(blocks, kMostBlocks))), kThreads, 0,
        warps ? by_warp : by_block, std::forward<Arguments>(arguments)...);
}

}  // namespace ramet::kernels::RAMET_VARIANT
