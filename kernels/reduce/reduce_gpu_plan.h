// How a GPU cuts a reduction; Note [Cuts for a nominal GPU] in gpu_cuts.h. For plan_reduce, tests,
// and the kernel file, which starts the planned kernels.
#pragma once
#include "kernels/gpu/gpu_cuts.h"
#include "kernels/reduce/reduce.h"

namespace ramet {
namespace kernels {

/// Threads of a block; elements that a thread reads together. In the loop over columns: the columns
/// of a block, and the rows that it reads at once.
inline constexpr int64_t kReduceGpuThreads = 256, kReduceGpuPack = 8, kReduceGpuColumns = 32,
                         kReduceGpuRows = kReduceGpuThreads / kReduceGpuColumns * kReduceGpuPack;

/// A sequence of up to kReduceWarpCount elements has no more than a warp, if there are so many that
/// each nominal multiprocessor gets 16: kReduceWarpOutputs.
inline constexpr int64_t kReduceWarpCount = 4096, kReduceWarpOutputs = 16 * kNominalProcessors;

/// Blocks if nothing is cut and each has one long sequence, or a tile of columns.
RAMET_INLINE int64_t reduce_gpu_tasks(const ReduceArgs& a) {
  if (!a.columns || a.outputs == 0) return a.outputs;
  const int64_t columns = a.kept_sizes[a.kept_rank - 1];
  return a.outputs / columns * ((columns + kReduceGpuColumns - 1) / kReduceGpuColumns);
}
/// Sets segments, segment and workspace_bytes. A part that a block reads in eight turns is not cut.
RAMET_INLINE void cut_reduce_for_gpu(ReduceArgs& a) {
  const int64_t at_once = a.columns ? kReduceGpuRows : kReduceGpuThreads * kReduceGpuPack;
  const GpuCut cut = gpu_cut(a.count, reduce_gpu_tasks(a), at_once, 8 * at_once);
  a.segments = cut.pieces, a.segment = cut.length;
  a.workspace_bytes = a.segments > 1 ? a.segments * a.outputs * kReducePartial : 0;
}

/// The launch: `blocks` blocks, in which `group` threads have a sequence, or a segment of one. In
/// the loop over sequences each thread has every group-th pack. If it was cut, the join follows.
struct ReduceGrid {
  int group;
  int64_t blocks;
  GpuJoin join;
};
RAMET_INLINE ReduceGrid reduce_gpu_grid(const ReduceArgs& a) {
  ReduceGrid grid{1, 0, gpu_join(a.segments > 1 ? a.outputs : 0, a.segments)};
  // In a sequence that was not cut a thread has at least two packs, if there are. A segment has a
  // whole block.
  const bool by_warp = a.segments == 1 && a.count <= kReduceWarpCount &&
                       a.outputs >= kReduceWarpOutputs;
  while (grid.group < (by_warp ? 32 : kReduceGpuThreads) &&
         (a.segments > 1 || grid.group * 2 * kReduceGpuPack < a.segment))
    grid.group *= 2;
  const int64_t of_block = kReduceGpuThreads / grid.group;
  grid.blocks = a.columns ? reduce_gpu_tasks(a) * a.segments
                          : (a.outputs * a.segments + of_block - 1) / of_block;
  return grid;
}

}  // namespace kernels
}  // namespace ramet
