// Running sums along an axis.
#pragma once
#include "kernels/gpu/gpu_cuts.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Running sums along the middle axis of a dense outer x n x inner block: out[o][k][i] = sum of
/// in[o][0..k][i]. Floating point in double; integers wrap. `reverse` sums from the end. On a GPU
/// the sum for each k may be rounded in other places. So sums of numbers that are not negative may
/// fall by a rounding, and those of zeros may grow.
struct CumulativeSumArgs {
  const void* in;
  void* out;
  int64_t outer, n, inner;
  ScalarType in_dtype, out_dtype;  // REQUIRES: of one compute type
  bool reverse;
  void* workspace;  // on a GPU cumulative_sum_workspace() bytes
};
RAMET_KERNEL(cumulative_sum, CumulativeSumArgs);

/// How a GPU goes along the middle axis. A thread has a line if lines are short, or so many that
/// threads fill a GPU. Otherwise a block of threads has a line, or several blocks if lines are few.
RAMET_INLINE bool cumulative_sum_by_threads(int64_t outer, int64_t n, int64_t inner) {
  return n <= 128 || outer * inner >= 32 * kNominalBlocks;
}
RAMET_INLINE GpuCut cumulative_sum_cut(int64_t outer, int64_t n, int64_t inner) {
  return gpu_cut(n, outer * inner, 1024, 2048);
}
/// Bytes of its workspace on a GPU: a sum of 8 bytes for each segment. A CPU needs none.
RAMET_INLINE int64_t cumulative_sum_workspace(int64_t outer, int64_t n, int64_t inner) {
  const int64_t segments = cumulative_sum_cut(outer, n, inner).pieces;
  return segments > 1 ? 8 * outer * inner * segments : 0;
}

}  // namespace kernels
}  // namespace ramet
