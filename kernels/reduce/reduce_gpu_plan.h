// How a GPU cuts a reduction; Note [Cuts for a nominal card] in gpu_cuts.h. For plan_reduce, tests,
// and the kernel file, which starts what is planned here.
#pragma once
#include "kernels/gpu/gpu_cuts.h"
#include "kernels/reduce/reduce.h"

namespace ramet {
namespace kernels {

/// Threads of a block; elements that a thread reads together; columns of a block where columns are
/// walked, and rows of them that it reads at once.
inline constexpr int64_t kReduceGpuThreads = 256, kReduceGpuPack = 8, kReduceGpuColumns = 32,
                         kReduceGpuRows = kReduceGpuThreads / kReduceGpuColumns * kReduceGpuPack;

/// Blocks where nothing is cut and each has one long sequence, or a tile of columns.
RAMET_INLINE int64_t reduce_gpu_tasks(const ReduceArgs& a) {
  if (!a.columns || a.outputs == 0) return a.outputs;
  const int64_t columns = a.kept_sizes[a.kept_rank - 1];
  return a.outputs / columns * ((columns + kReduceGpuColumns - 1) / kReduceGpuColumns);
}
/// Sets segments, segment and workspace_bytes. What a block reads in eight turns stays whole.
RAMET_INLINE void cut_reduce_for_gpu(ReduceArgs& a) {
  const int64_t at_once = a.columns ? kReduceGpuRows : kReduceGpuThreads * kReduceGpuPack;
  const GpuCut cut = gpu_cut(a.count, reduce_gpu_tasks(a), at_once, 8 * at_once);
  a.segments = cut.pieces, a.segment = cut.length;
  a.workspace_bytes = a.segments > 1 ? a.segments * a.outputs * kReducePartial : 0;
}

/// What is started: `blocks` blocks, in which `group` threads have a sequence, or a segment of one,
/// and (sequences walked) each of them every group-th pack; then, if it was cut, the join.
struct ReduceGrid {
  int group;
  int64_t blocks;
  GpuJoin join;
};
RAMET_INLINE ReduceGrid reduce_gpu_grid(const ReduceArgs& a) {
  ReduceGrid grid{1, 0, gpu_join(a.segments > 1 ? a.outputs : 0, a.segments)};
  // Of a sequence that was not cut a thread has two packs at least, if there are; a segment is a
  // block's.
  while (grid.group < kReduceGpuThreads &&
         (a.segments > 1 || grid.group * 2 * kReduceGpuPack < a.segment))
    grid.group *= 2;
  const int64_t of_block = kReduceGpuThreads / grid.group;
  grid.blocks = a.columns ? reduce_gpu_tasks(a) * a.segments
                          : (a.outputs * a.segments + of_block - 1) / of_block;
  return grid;
}

}  // namespace kernels
}  // namespace ramet
