// How a GPU cuts long sums into pieces for many blocks of threads, and how many threads join the
// results of the pieces. For fronts (workspaces), kernel files and tests.
//
// Note [Cuts for a nominal GPU]
// A cut decides which thread adds which elements, so it affects the bits. It follows from the shape
// alone and is made for a fixed nominal GPU of 132 multiprocessors (an H100's or H200's), whatever
// GPU is present. Each multiprocessor gets about four blocks, at 256 threads half of what it can
// hold. So all blocks are under way at once, and no last few run alone. There are also enough reads
// at a time to keep the memory busy. The CPU uses other cuts (a task there wants ten thousands of
// elements). Its sums have another order anyway: floats in lanes, where a GPU adds in double.
//
// A separate kernel joins the results of the pieces: one group of neighbouring threads for each
// output, as a tree.
#pragma once
#include <cstdint>

#include "kernels/simd/inline.h"

namespace ramet {
namespace kernels {

inline constexpr int64_t kNominalProcessors = 132, kNominalBlocks = 4 * kNominalProcessors;

struct GpuCut {
  int64_t pieces, length;  // the last one may be shorter
};
/// Cuts each of `tasks` sequences of `count` elements, which otherwise have one block each. There
/// are at most kNominalBlocks pieces in all. Pieces are multiples of `unit`. Sequences of fewer
/// than `least` elements stay whole, because a second kernel costs more than it saves.
RAMET_INLINE GpuCut gpu_cut(int64_t count, int64_t tasks, int64_t unit, int64_t least) {
  const int64_t wanted = tasks > 0 ? kNominalBlocks / tasks : 1;
  if (wanted < 2 || count < least) return {1, count};
  const int64_t each = (count + wanted - 1) / wanted, length = (each + unit - 1) / unit * unit;
  return {(count + length - 1) / length, length};
}

/// How many threads join the results of so many pieces for each output. It is a group of
/// neighbouring threads, a power of two and up to a block of 256. If possible a thread has at least
/// two results: with fewer it would only wait for other threads.
struct GpuJoin {
  int threads;
  int64_t blocks;
};
RAMET_INLINE GpuJoin gpu_join(int64_t outputs, int64_t pieces) {
  constexpr int block = 256;
  GpuJoin join{1, 0};
  while (join.threads < block && join.threads * 2 < pieces) join.threads *= 2;
  const int64_t of_block = block / join.threads;
  join.blocks = (outputs + of_block - 1) / of_block;
  return join;
}

}  // namespace kernels
}  // namespace ramet
