// Fewer, longer dimensions for a loop over strided operands. Used by fronts before they fill an
// argument block.
#pragma once
#include <cstdint>

namespace ramet {
namespace kernels {

/// Dimensions a tensor can have, so what a front may pass in.
inline constexpr int kMaxTensorRank = 64;

/// Rewrites a loop over `rank` dimensions of N operands (strides[operand][dimension], in elements,
/// 0 where an operand is broadcast; operand 0 is the output) into one that visits the same element
/// tuples with the fewest dimensions:
///   1. dimensions of size 1 go,
///   2. dimensions are ordered so that the output's strides do not increase (the output is written
///       in memory order),
///   3. neighbours that every operand walks as one are merged.
/// Returns the new rank, 0 for a single tuple. REQUIRES: no size is 0.
template <int N> int coalesce(int rank, int64_t* sizes, int64_t (*strides)[kMaxTensorRank]) {
  int r = 0;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    const int64_t size = sizes[d];
    int64_t s[N];
    for (int o = 0; o < N; ++o) s[o] = strides[o][d];
    int at = r++;
    auto before = [&](int e) {  // does the new dimension belong outside dimension e?
      for (int o = 0; o < N; ++o)
        if (s[o] != strides[o][e]) return s[o] > strides[o][e];
      return false;
    };
    for (; at > 0 && before(at - 1); --at) {
      sizes[at] = sizes[at - 1];
      for (int o = 0; o < N; ++o) strides[o][at] = strides[o][at - 1];
    }
    sizes[at] = size;
    for (int o = 0; o < N; ++o) strides[o][at] = s[o];
  }
  int kept = 0;
  for (int d = 1; d < r; ++d) {
    bool merges = true;
    for (int o = 0; o < N; ++o) merges = merges && strides[o][kept] == strides[o][d] * sizes[d];
    if (merges) sizes[kept] *= sizes[d];
    else sizes[++kept] = sizes[d];
    for (int o = 0; o < N; ++o) strides[o][kept] = strides[o][d];
  }
  return r == 0 ? 0 : kept + 1;
}

}  // namespace kernels
}  // namespace ramet
