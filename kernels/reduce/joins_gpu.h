// Joins the states of a block's threads: partial sums, partial moments, extrema. For .cu files
// only.
//
// The order is a tree, the upper half joined to the lower one. It follows from the number of
// threads alone.
#pragma once
#include "kernels/rows/rows_gpu.h"
// clang-format off: the first decides what the other means
#include "kernels/gpu/gpu_cuts.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

/// Two sums that are formed together.
struct TwoSums {
  double first, second;
};
struct PlusTwo {
  __device__ TwoSums operator()(const TwoSums& a, const TwoSums& b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

/// The `value` of the lane `delta` above, word by word, because a shuffle takes no structures.
template <class State> __device__ __forceinline__ State from_above(const State& value, int delta) {
  using Word = typename std::conditional<sizeof(State) % 8 == 0, uint64_t, uint32_t>::type;
  static_assert(sizeof(State) % sizeof(Word) == 0);
  Word words[sizeof(State) / sizeof(Word)];
  memcpy(words, &value, sizeof value);
  RAMET_UNROLL
  for (Word& word : words) word = __shfl_down_sync(0xffffffffu, word, static_cast<unsigned>(delta));
  State above;
  memcpy(&above, words, sizeof above);
  return above;
}

/// The states of a thread and of those 32, 64 ... above it, `warps` in all (a power of two), as
/// one. Each thread in the first of so many warps gets one. REQUIRES: `shared` holds one for each
/// thread; all threads of the block call this.
template <class State, class Join>
__device__ __forceinline__ State join_warps(State mine, int warps, State* shared,
                                            const Join& join) {
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // what is in `shared` has been read
  shared[thread] = mine;
  __syncthreads();
  if (thread / kWarp % warps != 0) return mine;
  State* own = shared + thread;  // this one, and those 32, 64 ... above it: now ours alone
  for (int half = warps / 2; half > 0; half /= 2)
    for (int w = 0; w < half; ++w) own[w * kWarp] = join(own[w * kWarp], own[(w + half) * kWarp]);
  return *own;
}

/// The states of `group` neighbouring threads as one, in the first of them. REQUIRES: `group` is a
/// power of two, at most a block of kThreads; otherwise as for join_warps.
template <class State, class Join>
__device__ __forceinline__ State join_neighbours(State mine, int group, State* shared,
                                                 const Join& join) {
  const int place = static_cast<int>(threadIdx.x) % group;
  if (group > kWarp) {
    mine = join_warps(mine, group / kWarp, shared, join);
    if (place >= kWarp) return mine;
  }
  for (int half = (group < kWarp ? group : kWarp) / 2; half > 0; half /= 2) {
    const State above = from_above(mine, half);
    if (place < half) mine = join(mine, above);
  }
  return mine;
}

/// One result from `pieces` partial ones: get(k) is the k-th. A thread of the group takes every
/// group-th piece, from its place in the group on. The first thread of the group has the result.
template <class State, class Get, class Join>
__device__ __forceinline__ State join_pieces(State start, int64_t pieces, int group, State* shared,
                                             const Get& get, const Join& join) {
  for (int64_t k = static_cast<int>(threadIdx.x) % group; k < pieces; k += group)
    start = join(start, get(k));
  return join_neighbours(start, group, shared, join);
}

/// f(output, whether there is one), a group for each. All threads of a block call f.
template <class F> __device__ __forceinline__ void over_outputs(int64_t n, int group, const F& f) {
  const int64_t groups = static_cast<int>(blockDim.x) / group;
  for (int64_t b = blockIdx.x; b * groups < n; b += gridDim.x) {
    const int64_t output = b * groups + static_cast<int>(threadIdx.x) / group;
    f(output, output < n);
  }
}
/// Starts a kernel of over_outputs. The kernel's last parameter is the group.
template <class... Parameters, class... Arguments>
void start_join(const char* name, Stream where, int64_t outputs, int64_t pieces, size_t shared,
                void (*kernel)(Parameters...), Arguments&&... arguments) {
  const GpuJoin join = gpu_join(outputs, pieces);
  start(name, where, grid_of(join.blocks), kThreads, shared, kernel,
        std::forward<Arguments>(arguments)..., join.threads);
}
/// Threads of the one block that joins so many pieces into one output: whole warps.
inline int join_block(int64_t pieces) {
  return static_cast<int>(imax(kWarp, gpu_join(1, pieces).threads));
}

}  // namespace ramet::kernels::RAMET_VARIANT
