// Sorting pairs of numbers: what permutations, choices without repetition and sums by index stand
// on.
#pragma once
#include <cstdint>

#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Sorts each of `rows` rows of n pairs by key, ascending as unsigned numbers, and stably: pairs of
/// one key keep their order. Values are positions 0, 1, ... n - 1 before, so afterwards values[i]
/// says where the i-th smallest key was. Dense rows. Least significant digit first (Knuth, The Art
/// of Computer Programming 3, 5.2.5): a digit in which all keys agree costs a look.
/// REQUIRES: no key has bits above the lowest `bits`; the workspace has sort_workspace(rows, n)
/// bytes.
struct SortArgs {
  uint64_t* keys;
  int64_t* values;  // written only
  int64_t rows, n;
  int32_t bits;
  void* workspace;
};
RAMET_KERNEL(sort_pairs, SortArgs);

/// Pairs that one block of GPU threads moves, and the digits it tells apart.
inline constexpr int64_t kSortTile = 2048, kSortDigits = 16;
/// Passes of a GPU over keys of so many bits, four at a time: an even number, so that the result
/// ends where it began.
constexpr int32_t sort_gpu_passes(int32_t bits) { return ((bits > 1 ? bits : 1) + 7) / 8 * 2; }

/// Bytes of workspace: another set of pairs, and counts of digits for each tile.
constexpr int64_t sort_workspace(int64_t rows, int64_t n) {
  return rows * (2 * n + (n + kSortTile - 1) / kSortTile * kSortDigits) * 8;
}

}  // namespace kernels
}  // namespace ramet
