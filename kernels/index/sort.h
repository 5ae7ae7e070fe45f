// Sorts pairs of numbers. Permutations, choices without repetition and sums by index use it.
#pragma once
#include <cstdint>

#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Sorts each of `rows` rows of n pairs by key, ascending as unsigned numbers. The sort is stable:
/// pairs of one key keep their order. Values are positions 0, 1, ... n - 1 before. So afterwards
/// values[i] is the original position of the i-th smallest key. Dense rows. Least significant digit
/// first (Knuth, The Art of Computer Programming 3, 5.2.5). A digit that is equal in all keys costs
/// only a count. REQUIRES: no key has bits above the lowest `bits`; the workspace has
/// sort_workspace(rows, n) bytes.
struct SortArgs {
  uint64_t* keys;
  int64_t* values;  // written only
  int64_t rows, n;
  int32_t bits;
  void* workspace;
};
RAMET_KERNEL(sort_pairs, SortArgs);

/// Pairs that one block of GPU threads moves, and the number of digit values.
inline constexpr int64_t kSortTile = 2048, kSortDigits = 16;
/// Passes of a GPU over keys of so many bits, four at a time. The number is even, so that the
/// result is at the original place.
constexpr int32_t sort_gpu_passes(int32_t bits) { return ((bits > 1 ? bits : 1) + 7) / 8 * 2; }

/// Bytes of workspace: another set of pairs, and counts of digits for each tile.
constexpr int64_t sort_workspace(int64_t rows, int64_t n) {
  return rows * (2 * n + (n + kSortTile - 1) / kSortTile * kSortDigits) * 8;
}

}  // namespace kernels
}  // namespace ramet
