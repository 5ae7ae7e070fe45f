// The elements under a mask: counted, moved and located.
#include "kernels/index/running_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/index/mask.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// A block counts a block of the mask.
__global__ void mask_blocks_kernel(MaskCountArgs a) {
  __shared__ int64_t shared[kWarps];
  const auto* mask = static_cast<const uint8_t*>(a.mask);
  const int64_t blocks = ceil_div(a.n, kMaskBlock);
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    int64_t count = 0;
    for (int64_t i = b * kMaskBlock + threadIdx.x; i < imin(a.n, (b + 1) * kMaskBlock);
         i += kThreads)
      count += mask[i] != 0;
    count = over_group<kThreads>(count, Plus(), shared);
    if (threadIdx.x == 0) a.offsets[b] = count;
  }
}

// One block makes running sums of the counts. Each thread takes kRun neighbours at a time.
__global__ void mask_sums_kernel(MaskCountArgs a) {
  __shared__ int64_t shared[kWarps];
  constexpr int kRun = 4;
  const int64_t blocks = ceil_div(a.n, kMaskBlock);
  int64_t before = 0;
  for (int64_t b = 0; b < blocks; b += kThreads * kRun) {
    const int64_t first = b + static_cast<int>(threadIdx.x) * kRun;
    int64_t counts[kRun], sum = 0, all;
    RAMET_UNROLL
    for (int j = 0; j < kRun; ++j) {
      counts[j] = first + j < blocks ? a.offsets[first + j] : 0;
      sum += counts[j];
    }
    sum = before + sum_before(sum, shared, all);
    RAMET_UNROLL
    for (int j = 0; j < kRun; ++j) {
      if (first + j < blocks) a.offsets[first + j] = sum;
      sum += counts[j];
    }
    before += all;
  }
  if (threadIdx.x == 0) a.offsets[blocks] = before;
}

// Calls f(i, k) for the elements under a true mask: the k-th of all is element i. A thread has a
// run of the block and adds the counts of the threads before it.
template <class F>
__device__ void over_true(const uint8_t* mask, const int64_t* offsets, int64_t n, const F& f) {
  __shared__ int32_t shared[kWarps];
  constexpr int64_t kRun = kMaskBlock / kThreads;
  for (int64_t b = blockIdx.x; b * kMaskBlock < n; b += gridDim.x) {
    const int64_t begin = b * kMaskBlock + threadIdx.x * kRun, end = imin(n, begin + kRun);
    int32_t count = 0, all;
    for (int64_t i = begin; i < end; ++i) count += mask[i] != 0;
    int64_t k = offsets[b] + sum_before(count, shared, all);
    for (int64_t i = begin; i < end; ++i)
      if (mask[i] != 0) f(i, k++);
  }
}

template <class T> __global__ void mask_move_kernel(MaskMoveArgs a) {
  over_true(static_cast<const uint8_t*>(a.mask), a.offsets, a.n, [&](int64_t i, int64_t k) {
    T *dense = static_cast<T*>(a.dense), *packed = static_cast<T*>(a.packed);
    if (a.scatter) dense[i] = packed[k];
    else packed[k] = dense[i];
  });
}

struct Extents {
  Divisor<int64_t> by[kMaxKernelRank];
  explicit Extents(const NonzeroArgs& a) {
    for (int32_t d = 0; d < kMaxKernelRank; ++d)
      by[d] = Divisor<int64_t>(d < a.rank ? a.sizes[d] : 1);
  }
};
__global__ void nonzero_kernel(NonzeroArgs a, Extents extents, int64_t n) {
  over_true(static_cast<const uint8_t*>(a.mask), a.offsets, n, [&](int64_t i, int64_t k) {
    for (int32_t d = a.rank - 1; d >= 0; --d) a.out[k * a.rank + d] = extents.by[d].take(i);
  });
}

dim3 mask_grid(int64_t n) { return grid_of(mask_offsets(n) - 1); }

}  // namespace

void mask_count(const MaskCountArgs& a, Stream where) {
  start("mask_count", where, mask_grid(a.n), kThreads, 0, mask_blocks_kernel, a);
  start("mask_count", where, dim3(1), kThreads, 0, mask_sums_kernel, a);
}

void mask_move(const MaskMoveArgs& a, Stream where) {
  if (a.n == 0) return;
  by_word(a.bytes, [&](auto word) {
    start("mask_move", where, mask_grid(a.n), kThreads, 0, mask_move_kernel<decltype(word)>, a);
  });
}

void nonzero_positions(const NonzeroArgs& a, Stream where) {
  const int64_t n = product(a.sizes, a.rank);
  if (n > 0) start("nonzero", where, mask_grid(n), kThreads, 0, nonzero_kernel, a, Extents(a), n);
}

}  // namespace ramet::kernels::RAMET_VARIANT
