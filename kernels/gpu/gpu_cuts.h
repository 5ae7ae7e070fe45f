// How a GPU cuts what it adds up into pieces for many blocks of threads, and by how many threads
// the pieces' results are joined. For fronts (workspaces), kernel files and tests.
//
// Note [Cuts for a nominal card]
// A cut decides who adds what, so it is part of the bits: it follows from the shape alone and is
// made for a card that does not change, one of 132 multiprocessors (an H100's or H200's), whatever
// card there is. About four blocks for each of them: at 256 threads half of what one can hold, so
// that all are under way at once and no last few run alone, and enough reads at a time to keep its
// memory busy. The CPU's cuts are others (a task there wants ten thousands of elements), as its
// sums have another order anyway: floats in lanes, where a GPU adds in double.
//
// The pieces' results are joined by a kernel of its own: one group of neighbouring threads for each
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
/// Cuts each of `tasks` sequences of `count` elements, which otherwise have one block each, so that
/// there are at most kNominalBlocks pieces in all. Pieces are multiples of `unit`; fewer than
/// `least` elements stay whole, because a second kernel costs more than it saves.
RAMET_INLINE GpuCut gpu_cut(int64_t count, int64_t tasks, int64_t unit, int64_t least) {
  const int64_t wanted = tasks > 0 ? kNominalBlocks / tasks : 1;
  if (wanted < 2 || count < least) return {1, count};
  const int64_t each = (count + wanted - 1) / wanted, length = (each + unit - 1) / unit * unit;
  return {(count + length - 1) / length, length};
}

/// Who joins the results of so many pieces for each output: a group of neighbouring threads, a
/// power of two and up to a block of 256. A thread has two of them at least, if there are: with
/// less it would only wait for others.
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
